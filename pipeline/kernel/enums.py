"""Closed lists of values that describe memories; in a module of their own because commands need no records for them."""

from enum import StrEnum


class Kind(StrEnum):
    """The kind of a memory."""

    FACT = "fact"
    DECISION = "decision"
    LESSON = "lesson"
    GOAL = "goal"
    ACTIVITY = "activity"
    MILESTONE = "milestone"
    QA = "qa"
    CODE = "code"
    DOCUMENT = "document"
    EPISODE = "episode"
    KEYED_FACT = "keyed_fact"


class GoalStatus(StrEnum):
    """The status of a goal."""

    OPEN = "open"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    DROPPED = "dropped"


# A goal with one of these statuses still needs work.
UNFINISHED = (GoalStatus.OPEN, GoalStatus.IN_PROGRESS)


class Source(StrEnum):
    """The origin of a memory."""

    USER = "user"
    AGENT = "agent"
    AMBIENT = "ambient"
    IMPORT = "import"
    SYNC = "sync"


class Trust(StrEnum):
    """Whether a memory may be shown as a rule, or only as quoted evidence."""

    TRUSTED = "trusted"
    EVIDENCE = "evidence"


class Tier(StrEnum):
    """How settled a memory is."""

    WORKING = "working"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"


class Sensitivity(StrEnum):
    """Whether a memory may be injected into a prompt, or appears only in searches."""

    NORMAL = "normal"
    PRIVATE = "private"
    # The text next to a removed secret.
    SECRET_ADJACENT = "secret-adjacent"  # noqa: S105 - it names no secret


class ScopeKind(StrEnum):
    """The reach of a memory."""

    USER = "user"
    WORKSPACE = "workspace"
    AGENT = "agent"
    SESSION = "session"
    TASK = "task"


class EdgeKind(StrEnum):
    """The relation of one memory to another, read from the first to the second."""

    CAUSE = "cause"
    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    DERIVED_FROM = "derived_from"
    NEXT_IN_SESSION = "next_in_session"


class Outcome(StrEnum):
    """The outcome of a write."""

    CREATED = "created"
    MERGED = "merged"
    CANDIDATE = "candidate"
    REJECTED = "rejected"


class Stage(StrEnum):
    """A stage of digestion that workers run on a stored memory, or on a turn."""

    EMBED = "embed"
    ENTITIES = "entities"
    DEDUP = "dedup"
    SCREEN = "screen"
    CAPTURE = "capture"
    CONCLUDE = "conclude"
    EMBED_TURNS = "embed_turns"
    PURGE = "purge"


class EntityKind(StrEnum):
    """The type of an entity."""

    FILE = "file"
    IDENTIFIER = "identifier"
    TICKET = "ticket"
    PULL_REQUEST = "pull_request"
    URL = "url"
    VERSION = "version"
    PACKAGE = "package"
    COMMAND = "command"
    PORT = "port"
    PERSON = "person"
    ORGANISATION = "organisation"
    PLACE = "place"
    PRODUCT = "product"
    DATE = "date"
    # A name of unknown type.
    NAME = "name"
