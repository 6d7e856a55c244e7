"""The answers of the server as dataclasses. Times are timezone-aware datetimes; enum values are plain texts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The version of the server, whether it can encode queries yet, and how long it has been idle."""

    status: str
    version: str
    encoder: str
    uptime_s: float
    idle_s: float
    build: str = ""
    proof: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The scope of a memory: who can see it."""

    kind: str
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The result of a write."""

    id: str
    outcome: str
    duplicate_of: str | None = None
    reason: str | None = None
    replaced: str | None = None
    renamed_tags: Mapping[str, str] | None = None
    kept: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The code that a memory is about, its hash at that time, and whether it changed since; None if unknown."""

    path: str
    lines: tuple[Any, ...] | None
    content_hash: str | None
    stale: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory. A keyed fact has a `valid_from`; a `candidate` waits for review.

    On a shared server it has an `author`, who may have `shared` it. `said_by` names who said a captured statement.
    """

    id: str
    content: str
    kind: str
    scope: Scope
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    source: str
    trust: str
    importance: float
    tier: str
    pinned: bool
    session_id: str | None
    created_at: datetime
    occurred_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    content_hash: str
    recall_count: int
    merge_count: int
    details: Mapping[str, Any]
    anchor: Anchor | None
    branch: str | None
    candidate: bool
    instructs: bool
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None = None
    sensitivity: str = "normal"
    author: str | None = None
    said_by: str | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of a memory."""

    source: str
    trust: str
    session_id: str | None
    written_at: datetime
    admission: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An edge from a memory (`out`) or to it (`in`), and who created it."""

    kind: str
    direction: str
    id: str
    made_by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMention:
    """An entity as a memory mentions it."""

    id: str
    kind: str
    name: str
    surface: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """An earlier state of a memory."""

    at: datetime
    event: str
    content: str | None
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """One of what led to a memory and what it came to."""

    id: str
    kind: str
    content: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord(Memory):
    """A memory with everything that is known of it."""

    provenance: Provenance
    edges: tuple[Edge, ...]
    entities: tuple[EntityMention, ...]
    history: tuple[HistoryEntry, ...]
    chain: tuple[ChainLink, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What became of a deletion."""

    id: str
    purged: bool
    archived_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory in the results; `relevance` is the probability that it, or a neighboring turn, answers the question.

    Where teams are asked too, `from_` tells whose it is: `local` or a team's name.
    """

    id: str
    content: str
    kind: str
    score: float
    relevance: float
    created_at: datetime
    occurred_at: datetime
    session_id: str | None
    source: str
    trust: str
    instructs: bool
    stale: bool | None = None
    contradicted_by: tuple[str, ...] = ()
    superseded_by: str | None = None
    broken: tuple[str, ...] = ()
    signals: Mapping[str, Any] | None = None
    from_: str | None = None
    author: str | None = None
    said_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonHit(Hit):
    """A lesson that applies; say by its `surface_id` whether it was followed."""

    surface_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHit:
    """A session that was found, with its best memories."""

    session_id: str
    score: float
    best: tuple[Hit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSession:
    """A past session, and the message in it that says most about a query."""

    session_id: str
    agent: str | None
    title: str | None
    at: datetime
    role: str
    quote: str
    score: float
    relevance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallAnswer:
    """The answer to a recall: memories, best first, and past sessions that say what they do not."""

    results: tuple[Hit, ...]
    took_ms: float
    channels: Mapping[str, Mapping[str, Any]]
    degraded: bool
    sessions: tuple[FoundSession, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsAnswer:
    """The answer to a recall of sessions, best first."""

    results: tuple[SessionHit, ...]
    took_ms: float
    channels: Mapping[str, Mapping[str, Any]]
    degraded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAnswer:
    """What became of each write of a batch, in its order."""

    results: tuple[Receipt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A value and when it is valid: from `valid_from` to before `valid_to`."""

    id: str
    subject: str
    attribute: str
    value: str | int | float | bool
    valid_from: datetime
    valid_to: datetime | None
    source: str
    trust: str
    instructs: bool
    scope: Scope
    author: str | None = None
    said_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactReceipt:
    """The result of setting a value: the fact that it replaced, and other names that may mean the same fact."""

    id: str
    subject: str
    attribute: str
    value: str | int | float | bool
    outcome: str
    similar: tuple[Mapping[str, Any], ...]
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    replaced: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A goal; `outcome` is the result of setting it."""

    id: str
    title: str
    status: str = "open"
    progress: float = 0.0
    due_at: datetime | None = None
    importance: float
    scope: Scope
    tags: tuple[str, ...]
    session_id: str | None
    source: str
    trust: str
    instructs: bool
    created_at: datetime
    updated_at: datetime
    outcome: str | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A lesson and its record; `low` and `high` are the 95 % interval of how often it is followed."""

    id: str
    content: str
    rule: str | None = None
    applies_when: str | None = None
    severity: str = "warning"
    source: str
    trust: str
    instructs: bool
    created_at: datetime
    shown: int
    followed: int
    ignored: int
    low: float
    high: float
    usefulness: str
    surface_id: str | None = None
    said_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonOutcome:
    """The reported outcome of one time that a lesson was shown, and the lesson."""

    surface_id: str
    lesson_id: str
    followed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The workspace that a message belongs to, and the branch that its folder has checked out."""

    workspace: str
    branch: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A recent action."""

    id: str
    kind: str
    content: str
    occurred_at: datetime
    session_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """An arc; title and summary quote its members, `members` are the last ones in order of time, `size` counts all."""

    id: str
    title: str
    summary: str
    status: str
    scope: Scope
    trust: str
    first_at: datetime
    last_at: datetime
    updated_at: datetime
    size: int
    members: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """The memories about a message, by kind; `text` contains all of them in a form for an agent.

    `start` is the text of a session's start, with its first message.
    """

    relevant: bool
    project: Project
    lessons: tuple[LessonHit, ...]
    decisions: tuple[Hit, ...]
    facts: tuple[Hit, ...]
    open_goals: tuple[Goal, ...]
    recent_activity: tuple[Activity, ...]
    active_arcs: tuple[Arc, ...]
    memories: tuple[Hit, ...]
    person: tuple[Hit, ...] = ()
    team: tuple[Hit, ...] = ()
    start: str = ""
    text: str
    took_ms: float
    degraded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceSummary:
    """A workspace, its number of active memories and its encoder; or why it cannot be read."""

    model: str
    languages: str | None
    next_model: str | None
    embedded: int | None
    id: str
    memories: int | None
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The statistics of a workspace."""

    workspace: str
    generation: int
    memories: Mapping[str, Any]
    graph: Mapping[str, Any]
    index: Mapping[str, Any]
    predictions: Mapping[str, Any]
    bytes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Pending work, dead-lettered work (failed permanently), and running workers."""

    pending: Mapping[str, int]
    dead: Mapping[str, int]
    oldest_pending_s: float | None
    workers: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a workspace. After `reset`, events were missed: list the memories again.

    `cursor` is the position after the event. `memory_id` and `kind` name a memory; `job` and `ok` a finished job.
    """

    cursor: str
    type: str
    at: datetime
    workspace: str
    memory_id: str | None = None
    kind: str | None = None
    title: str | None = None
    job: str | None = None
    ok: bool | None = None
