"""The records that travel through the pipeline: a memory as it is offered, stored and digested, and what is asked.

Frozen dataclasses, no I/O.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from pipeline.enums import (
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

MAX_CONTENT_CHARS = 10_000
MAX_METADATA_BYTES = 16 * 1024
MAX_TAGS = 20
MAX_SESSION_ID_CHARS = 256
MAX_BATCH = 1000
MAX_EDGES = 50
MAX_BRANCH_CHARS = 256
MAX_PATH_CHARS = 1024
MAX_FOLDER_CHARS = 4096
UNSTORED = 0
# Of what was captured of a person's words.
SAID_TAG = "said"


@dataclass(frozen=True, slots=True)
class Scope:
    """A reach and, where the reach needs one, whose it is."""

    kind: ScopeKind = ScopeKind.WORKSPACE
    id: str | None = None

    @property
    def is_personal(self) -> bool:
        """Return whether it is that of what is about a person: the home's owner, or one of `records.people`."""
        return self.kind is ScopeKind.USER and (self.id is None or self.id.endswith(OWNED))


# Between a person and what they call a session or an agent: names of two people are never the same name. Nobody may
# send it, so that nobody can name what is another person's.
OWNED = "␟"
# What is about the person whose home this is, in whatever workspace: kept once, in a store of its own.
PERSONAL = Scope(ScopeKind.USER)


def sessions_named(scope: Scope | None, *sessions: str | None) -> frozenset[str]:
    """Return every session that something names: by itself, or as the owner of its scope."""
    owner = scope.id if scope is not None and scope.kind is ScopeKind.SESSION else None
    return frozenset(session for session in (owner, *sessions) if session is not None)


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who asks: a memory of an owned scope is visible only to the owner that is named here.

    `everything` is for somebody who looks on, never for an agent: all that no other person's is. `person` is who asks,
    None for the data directory's owner.
    """

    user: str | None = None
    agent: str | None = None
    session: str | None = None
    task: str | None = None
    everything: bool = False
    person: str | None = None

    @property
    def personal(self) -> Scope:
        """Return the scope of what is about the person who asks."""
        return Scope(ScopeKind.USER, None if self.person is None else f"{self.person}{OWNED}")


OWNER = Viewer(everything=True)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The code that a memory is about: a file, lines of it (1-based, inclusive), and the SHA-256 of that text.

    `checkout` is the root of the git checkout that the file is in on this machine.
    """

    path: str
    first_line: int | None = None
    last_line: int | None = None
    content_hash: str | None = None
    checkout: str | None = None

    @property
    def lines(self) -> tuple[int, int] | None:
        """Return the first and the last line, None for the whole file."""
        return None if self.first_line is None else (self.first_line, self.last_line or self.first_line)


@dataclass(frozen=True, slots=True)
class EdgeDraft:
    """An edge that a caller asks for, from the memory being written to a stored one."""

    kind: EdgeKind
    to: str


@dataclass(frozen=True, slots=True, order=True)
class FactKey:
    """What a keyed fact is about, in canonical names."""

    subject: str
    attribute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalFields:
    """What a memory may have beside its text, and what a caller may give and change; None is nothing of the kind.

    Stored in the column of the same name, sent in `OptionalFieldsBody`, answered in `MemoryAnswer`.
    """

    anchor: Anchor | None = None
    branch: str | None = None
    expires_at: str | None = None
    sensitivity: Sensitivity | None = None


@dataclass(frozen=True, slots=True)
class Draft(OptionalFields):
    """A memory as a caller offers it, before validation. Times are RFC 3339 UTC text."""

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


@dataclass(frozen=True, slots=True)
class Memory(OptionalFields):
    """A stored memory, or with the row number UNSTORED one that is about to be.

    `seq` is its local row number, which derived indexes key on; `details` are the typed fields of its kind. A keyed
    fact has a key and holds from `valid_from` to before `valid_to`. A candidate waits for review. `instructs` marks a
    text that tries to command its reader. From `expires_at` on no answer holds it. `author` is the person who wrote it,
    None for the data directory's owner; what was shared with the workspace was of the scope `shared_from` before.
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
        """Return every session that it is of."""
        return sessions_named(self.scope, self.session_id)

    @property
    def is_of_person(self) -> bool:
        """Return whether it is about a person, in whatever workspace.

        Goals and keyed facts are a workspace's: what is under way and what holds there.
        """
        return self.scope.is_personal and self.kind not in (Kind.GOAL, Kind.KEYED_FACT)

    @property
    def is_told_unasked(self) -> bool:
        """Return whether an agent may be told it although nobody asked for it."""
        return self.sensitivity in (None, Sensitivity.NORMAL)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write answers: the memory's id, what became of it, and for a keyed fact which one it ended."""

    id: str
    outcome: Outcome
    duplicate_of: str | None = None
    reason: str | None = None
    replaced: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """An earlier state of a memory, kept when an edit or a merge replaced it; `author` is the person who did that."""

    at: str
    event: str
    content: str | None
    detail: Mapping[str, Any]
    author: str | None = None


# The form in which a memory is shown in one line: hooks and tools write it, and an echo of it is recognised.
# RULES_HEADER stands above the rules that a hook shows, TEAM_HEADER above what a team's server knows, HEADER above all
# else.
HEADER = "From this project's memory (recorded earlier; check before relying on it):"
RULES_HEADER = "Rules to follow (somebody vouches for each of them):"
TEAM_HEADER = "From the team's memory (recorded by others; check before relying on it):"
# The end of a ULID is random; its beginning is the time, which neighbours share.
SHORT_ID = 8
CUT = "…"
# A quotation mark of its own, or what may be taken for one, would end the quotation early.
INNER_QUOTES = str.maketrans(dict.fromkeys("“”„‟❝❞〝〞〟＂🙶🙷🙸", "'"))


@dataclass(frozen=True, slots=True)
class Filter:
    """What a listing or a recall may return. Times are RFC 3339 UTC text, `since` inclusive, `until` exclusive.

    `as_of` asks for what was believed at a moment; without it only what holds now is returned. `candidates` asks for
    what waits for review, and for nothing else; `chain` for the milestones of one chain.
    """

    kinds: tuple[Kind, ...] = ()
    scope: Scope | None = None
    session_id: str | None = None
    since: str | None = None
    until: str | None = None
    archived: bool = False
    as_of: str | None = None
    branch: str | None = None
    candidates: bool = False
    chain: str | None = None
    viewer: Viewer = field(default_factory=Viewer)

    @property
    def narrows(self) -> bool:
        """Return whether the filter leaves out more than what nobody sees and what others own."""
        times = self.since, self.until, self.as_of
        return any((self.kinds, self.scope, self.session_id, *times, self.branch, self.chain))

    @property
    def sessions(self) -> frozenset[str]:
        """Return every session that the question names."""
        return sessions_named(self.scope, self.session_id, self.viewer.session)

    @property
    def owns(self) -> bool:
        """Return whether the caller has scopes of its own to see into."""
        return self.viewer != Viewer()


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Revision(OptionalFields):
    """The fields of a memory to set; None leaves a field as it is.

    `given_importance` is what decay lets the importance fade from: the importance itself, unless that faded before.
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
    """What somebody saw of a memory before they changed it; None for what they did not look at.

    `text` is the mark of its text, `given_importance` what it was given: that it faded since changes nothing.
    """

    text: str | None = None
    tags: tuple[str, ...] | None = None
    given_importance: float | None = None


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a list, and below which cursor the next page begins; None on the last one."""

    items: Sequence[T]
    next_cursor: int | None = None


def page_of(found: Sequence[T], limit: int, cursor: Callable[[T], int]) -> Page[T]:
    """Return a page of a list that was asked for one item more than the page holds."""
    items = found[:limit]
    return Page(items, cursor(items[-1]) if len(found) > len(items) else None)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found, and what helps; `repair` does it and says what was done."""

    check: str
    state: Literal["ok", "warn", "fail"]
    says: str
    hint: str | None = None
    repair: Callable[[], str] | None = None
