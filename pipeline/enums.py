"""The closed lists of words that memories are described with; apart, since a command needs no record for them."""

from enum import StrEnum


class Kind(StrEnum):
    """What a memory is."""

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
    """How far a goal has come."""

    OPEN = "open"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    DROPPED = "dropped"


class Source(StrEnum):
    """Where a memory came from."""

    USER = "user"
    AGENT = "agent"
    AMBIENT = "ambient"
    IMPORT = "import"
    SYNC = "sync"


class Trust(StrEnum):
    """Whether a memory may speak as a rule or is shown as quoted evidence only."""

    TRUSTED = "trusted"
    EVIDENCE = "evidence"


class Tier(StrEnum):
    """How settled a memory is."""

    WORKING = "working"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"


class Sensitivity(StrEnum):
    """Whether a memory may be told to an agent unasked, or only to who asks for it."""

    NORMAL = "normal"
    PRIVATE = "private"
    # What stood beside a secret that was cut out.
    SECRET_ADJACENT = "secret-adjacent"  # noqa: S105 - it names no secret


class ScopeKind(StrEnum):
    """How far a memory reaches."""

    USER = "user"
    WORKSPACE = "workspace"
    AGENT = "agent"
    SESSION = "session"
    TASK = "task"


class EdgeKind(StrEnum):
    """How one memory bears on another; read from the first to the second."""

    CAUSE = "cause"
    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    DERIVED_FROM = "derived_from"
    NEXT_IN_SESSION = "next_in_session"


class Outcome(StrEnum):
    """What became of a write."""

    CREATED = "created"
    MERGED = "merged"
    CANDIDATE = "candidate"
    REJECTED = "rejected"


class Stage(StrEnum):
    """A step of digestion that workers run on a written memory."""

    EMBED = "embed"
    ENTITIES = "entities"
    DEDUP = "dedup"
    SCREEN = "screen"
    CAPTURE = "capture"
    PURGE = "purge"


class EntityKind(StrEnum):
    """What an entity is."""

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
    # A name of which nobody can tell what it names.
    NAME = "name"
