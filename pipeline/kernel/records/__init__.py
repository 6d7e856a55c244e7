"""Records of the pipeline: memories as drafts, stored and digested, and queries. Frozen dataclasses, no I/O."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from pipeline.kernel.enums import (
    EdgeKind as EdgeKind,
    EntityKind as EntityKind,
    GoalStatus as GoalStatus,
    Kind as Kind,
    Outcome as Outcome,
    ScopeKind as ScopeKind,
    Sensitivity as Sensitivity,
    Source as Source,
    Stage as Stage,
    Tier as Tier,
    Trust as Trust,
)
from pipeline.kernel.records.extraction import NO_EXTRACTION, Extraction

MAX_CONTENT_CHARS = 10_000
MAX_METADATA_BYTES = 16 * 1024
MAX_TAGS = 20
MAX_SESSION_ID_CHARS = 256
MAX_BATCH = 1000
MAX_EDGES = 50
MAX_BRANCH_CHARS = 256
# The tag of a memory that was written on another git branch than the default one.
_IN_BRANCH_TAGS, _MOST_IN_BRANCH_TAGS = "A-Za-z0-9._/-", 43
BRANCH_TAG = rf"branch:[{_IN_BRANCH_TAGS}]{{1,{_MOST_IN_BRANCH_TAGS}}}"
MAX_PATH_CHARS = 1024
MAX_FOLDER_CHARS = 4096
UNSTORED = 0
# The metadata key of memories that were captured from a person's words.
CAPTURED_TAG = "said"
# The tag of memories that index a rule file, which agents read anyway.
RULE_FILE_TAG = "rule-file"
# The name of the data directory's owner as the author of statements; other people's statements have their id.
THE_USER = "user"


def branch_tag(name: str) -> str:
    """Return the tag of the memories that are written on a git branch."""
    return f"branch:{re.sub(f'[^{_IN_BRANCH_TAGS}]+', '-', name)[:_MOST_IN_BRANCH_TAGS]}"


@dataclass(frozen=True, slots=True)
class Scope:
    """A reach and, if the reach needs one, its owner."""

    kind: ScopeKind = ScopeKind.WORKSPACE
    id: str | None = None

    @property
    def is_personal(self) -> bool:
        """Return whether this is a personal scope: of the data directory's owner or of one of `records.people`."""
        return self.kind is ScopeKind.USER and (self.id is None or self.id.endswith(OWNED))


# Separates a person's id from their name for a session or an agent, so that names of two people never collide.
# Requests cannot contain it, so no client can name another person's session.
OWNED = "␟"
# Memories about the data directory's owner, for every workspace, in a store of their own.
PERSONAL = Scope(ScopeKind.USER)
# The subject of facts about the user, which belong to the personal store.
USER_SUBJECT = "user"


def list_session_names(scope: Scope | None, *sessions: str | None) -> frozenset[str]:
    """Return every session that an object names, directly or as the owner of its scope."""
    owner = scope.id if scope is not None and scope.kind is ScopeKind.SESSION else None
    return frozenset(session for session in (owner, *sessions) if session is not None)


@dataclass(frozen=True, slots=True)
class Viewer:
    """The caller: a memory of an owned scope is visible only to the owner that is named here.

    `everything` is for a person who browses, never for an agent: all memories but those of other people. `person` is
    the caller, None for the data directory's owner. With `only_normal`, private and secret-adjacent memories are
    hidden: an agent must not repeat them.
    """

    user: str | None = None
    agent: str | None = None
    session: str | None = None
    task: str | None = None
    everything: bool = False
    person: str | None = None
    only_normal: bool = False

    @property
    def personal(self) -> Scope:
        """Return the caller's personal scope."""
        return Scope(ScopeKind.USER, None if self.person is None else f"{self.person}{OWNED}")


OWNER = Viewer(everything=True)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The code that a memory refers to: a file, lines (1-based, inclusive), and the SHA-256 of their text.

    `checkout` is the root of the git checkout that contains the file on this machine.
    """

    path: str
    first_line: int | None = None
    last_line: int | None = None
    content_hash: str | None = None
    checkout: str | None = None

    @property
    def lines(self) -> tuple[int, int] | None:
        """Return the first and the last line, None for the entire file."""
        return None if self.first_line is None else (self.first_line, self.last_line or self.first_line)


@dataclass(frozen=True, slots=True)
class EdgeDraft:
    """An edge that a caller requests, from the memory being written to a stored memory."""

    kind: EdgeKind
    to: str


@dataclass(frozen=True, slots=True, order=True)
class FactKey:
    """The subject and attribute of a keyed fact, in canonical form."""

    subject: str
    attribute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalFields:
    """Optional fields of a memory that a caller can set and change; None if absent.

    Stored in the column of the same name, sent in `OptionalFieldsBody`, answered in `MemoryAnswer`.
    """

    anchor: Anchor | None = None
    branch: str | None = None
    expires_at: str | None = None
    sensitivity: Sensitivity | None = None


@dataclass(frozen=True, slots=True)
class Draft(OptionalFields):
    """A memory as a caller offers it, before validation. Times are RFC 3339 UTC text.

    A caller may choose the `id`: a write with an id that has a receipt returns that receipt.
    """

    content: str
    kind: Kind = Kind.FACT
    importance: float | None = None
    scope: Scope | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    session_id: str | None = None
    source: Source = Source.USER
    occurred_at: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    edges: tuple[EdgeDraft, ...] = ()
    id: str | None = None
    extraction: Extraction = NO_EXTRACTION


@dataclass(frozen=True, slots=True)
class Memory(OptionalFields):
    """A stored memory or, with the row number UNSTORED, a memory before its insertion.

    `seq` is its local row number, the key of derived indexes; `details` are the typed fields of its kind. A keyed
    fact has a key and is valid from `valid_from` until before `valid_to`. A candidate awaits review. `instructs`
    marks a text that tries to command its reader. From `expires_at` on, the memory appears in no answer. `author` is
    the person who wrote it, None for the data directory's owner; `shared_from` is the scope of a shared memory before
    it was shared.
    """

    seq: int
    id: str
    content: str
    kind: Kind
    scope: Scope
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    source: Source
    trust: Trust
    importance: float
    tier: Tier
    pinned: bool
    session_id: str | None
    created_at: str
    occurred_at: str
    updated_at: str
    archived_at: str | None
    content_hash: str
    recall_count: int = 0
    merge_count: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    candidate: bool = False
    instructs: bool = False
    key: FactKey | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    author: str | None = None
    shared_from: str | None = None

    @property
    def sessions(self) -> frozenset[str]:
        """Return every session of the memory."""
        return list_session_names(self.scope, self.session_id)

    @property
    def is_of_person(self) -> bool:
        """Return whether the memory is about a person rather than a workspace.

        Goals, and facts about other subjects than the user, always belong to a workspace.
        """
        if self.kind is Kind.KEYED_FACT:
            return self.scope.is_personal and self.key is not None and self.key.subject == USER_SUBJECT
        return self.scope.is_personal and self.kind is not Kind.GOAL

    @property
    def said_by(self) -> str | None:
        """Return who said a statement that capture read in a turn; None for other memories.

        Text that may be pasted names no turn. A note about a reverted edit names one, but only quotes the person.
        """
        is_statement = self.source is Source.AMBIENT and CAPTURED_TAG in self.tags and "turn" in self.metadata
        return (self.author or THE_USER) if is_statement and self.metadata.get("reason") != "reverted" else None

    @property
    def may_be_injected(self) -> bool:
        """Return whether the memory may be injected into a prompt."""
        return self.sensitivity in (None, Sensitivity.NORMAL) and not self.is_of_rule_file

    @property
    def is_of_rule_file(self) -> bool:
        """Return whether the memory indexes a rule file, which agents read anyway."""
        return self.source is Source.IMPORT and RULE_FILE_TAG in self.tags


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to a write: the memory's id, the outcome, and the keyed fact that it ended, if any.

    `renamed_tags` has the stored form of each tag that was not stored as given. `kept` has the stronger value of each
    field in which a repetition differs from the stored memory.
    """

    id: str
    outcome: Outcome
    duplicate_of: str | None = None
    reason: str | None = None
    replaced: str | None = None
    renamed_tags: Mapping[str, str] | None = None
    kept: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """An earlier state of a memory, stored when an edit or a merge replaced it; `author` is the person who did that."""

    at: str
    event: str
    content: str | None
    detail: Mapping[str, Any]
    author: str | None = None


# The one-line form of a memory: hooks and tools render it, and it is recognized when an agent writes it back.
# RULES_HEADER precedes rules, SAID_HEADER a person's statements, TEAM_HEADER memories of a team server, HEADER others.
HEADER = "From this project's memory (recorded earlier; check before relying on it):"
RULES_HEADER = "Rules to follow (each from a trusted source):"
SAID_HEADER = "What the user said in earlier sessions:"
TEAM_HEADER = "From the team's memory (recorded by others; check before relying on it):"
# The end of a ULID is random; its start is the time, which neighbors share.
SHORT_ID = 8
CUT = "…"
# A quotation mark in the text, or a lookalike, would end the quotation early.
INNER_QUOTES = str.maketrans(dict.fromkeys("“”„‟❝❞〝〞〟＂🙶🙷🙸", "'"))


@dataclass(frozen=True, slots=True)
class Filter:
    """Restrictions of a listing or a recall. Times are RFC 3339 UTC text, `since` inclusive, `until` exclusive.

    `as_of` asks for the memories that were valid at a time; without it, only currently valid memories are returned.
    A memory must have all `tags`. `candidates` returns only memories that await review; `chain` returns the
    milestones of a chain. With `current`, memories that a newer one supersedes are left out.
    """

    kinds: tuple[Kind, ...] = ()
    scope: Scope | None = None
    session_id: str | None = None
    since: str | None = None
    until: str | None = None
    archived: bool = False
    as_of: str | None = None
    branch: str | None = None
    tags: tuple[str, ...] = ()
    candidates: bool = False
    chain: str | None = None
    current: bool = False
    viewer: Viewer = field(default_factory=Viewer)

    @property
    def narrows(self) -> bool:
        """Return whether the filter excludes more than invisible memories and other people's memories."""
        times = self.since, self.until, self.as_of
        return any((self.kinds, self.scope, self.session_id, *times, self.branch, self.tags, self.chain))

    @property
    def sessions(self) -> frozenset[str]:
        """Return every session that the query names."""
        return list_session_names(self.scope, self.session_id, self.viewer.session)

    @property
    def owns(self) -> bool:
        """Return whether the caller has owned scopes that it can see."""
        return replace(self.viewer, only_normal=False) != Viewer()


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Revision(OptionalFields):
    """The fields of a memory to set; None leaves a field unchanged.

    `given_importance` is the importance before decay: the importance itself, unless it decayed before.
    """

    content: str | None = None
    importance: float | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] | None = None
    pinned: bool | None = None
    details: Mapping[str, Any] | None = None
    trust: Trust | None = None
    given_importance: float | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of a memory that a client saw before it changed the memory; None for fields that it did not see.

    `text` is the mark of the text, `given_importance` the importance before decay, so that decay causes no conflict.
    """

    text: str | None = None
    tags: tuple[str, ...] | None = None
    given_importance: float | None = None


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a list, and the cursor of the next page; None on the last page."""

    items: Sequence[T]
    next_cursor: int | None = None


def page_of(rows: Sequence[T], limit: int, cursor: Callable[[T], int]) -> Page[T]:
    """Return a page from a query for one item more than the page has."""
    items = rows[:limit]
    return Page(items, cursor(items[-1]) if len(rows) > len(items) else None)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check, and a remedy; `repair` applies the remedy and reports what it did."""

    check: str
    state: Literal["ok", "warn", "fail"]
    says: str
    hint: str | None = None
    repair: Callable[[], str] | None = None
