"""What the API answers; the OpenAPI document is generated from these, and tests hold real answers against them."""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from pipeline.recall.query import Channel, ChannelState
from pipeline.records import EdgeKind, EntityKind, Kind, Outcome, ScopeKind, Source, Stage, Tier, Trust

Item = TypeVar("Item")
# Cursors are row numbers; callers hand them back as they are.
Cursor = Annotated[str | None, BeforeValidator(lambda seq: None if seq is None else str(seq))]


class Answer(BaseModel):
    """A JSON answer: what a use case returns is read into it by its attributes, and it is what serializes."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, validate_by_name=True, validate_by_alias=True)


class PageAnswer(Answer, Generic[Item]):
    """A page of a list."""

    items: list[Item]
    next_cursor: Cursor


class FieldProblem(Answer):
    """One rejected field."""

    loc: str
    msg: str


class Problem(Answer):
    """An error, after RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem]


class ReceiptAnswer(Answer):
    """What became of a write."""

    id: str
    outcome: Outcome
    duplicate_of: str | None = None
    reason: str | None = None
    replaced: str | None = None


class BatchAnswer(Answer):
    """What became of each write of a batch, in its order."""

    results: list[ReceiptAnswer]


class ScopeAnswer(Answer):
    """How far a memory reaches."""

    kind: ScopeKind
    id: str | None


class AnchorAnswer(Answer):
    """The code that a memory is about, the hash that it had, and whether it changed; null when nobody can say."""

    path: str
    lines: tuple[int, int] | None
    content_hash: str | None
    stale: bool | None


class MemoryAnswer(Answer):
    """A memory; one with a `valid_from` is a keyed fact, and a `candidate` waits for review.

    `details` are the typed fields of its kind. `instructs` marks a text that tries to command its reader.
    """

    id: str
    content: str
    kind: Kind
    scope: ScopeAnswer
    tags: list[str]
    metadata: dict[str, Any]
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
    recall_count: int
    merge_count: int
    details: dict[str, Any]
    anchor: AnchorAnswer | None
    branch: str | None
    candidate: bool
    instructs: bool
    valid_from: str | None
    valid_to: str | None


class MemoryPage(Answer):
    """A page of memories."""

    items: list[MemoryAnswer]
    next_cursor: str | None


class AdmissionAnswer(Answer):
    """What the door decided about a write, 0 to 1 how much spoke for it, and why; never the text itself."""

    id: str
    at: str
    outcome: Outcome
    score: float
    reasons: list[str]
    source: Source
    kind: Kind


class EdgeAnswer(Answer):
    """An edge from a memory (`out`) or to it (`in`), and who drew it."""

    kind: EdgeKind
    direction: Literal["out", "in"]
    id: str
    made_by: str
    at: str


class ProvenanceAnswer(Answer):
    """Where a memory came from."""

    source: Source
    trust: Trust
    session_id: str | None
    written_at: str
    admission: AdmissionAnswer | None


class EntityAnswer(Answer):
    """An entity as a memory mentions it."""

    id: str
    kind: EntityKind
    name: str
    surface: str


class HistoryAnswer(Answer):
    """An earlier state of a memory."""

    at: str
    event: str
    content: str | None
    detail: dict[str, Any]


class RecordAnswer(MemoryAnswer):
    """A memory with everything that is known of it."""

    provenance: ProvenanceAnswer
    edges: list[EdgeAnswer]
    entities: list[EntityAnswer]
    history: list[HistoryAnswer]


class ForgottenAnswer(Answer):
    """What became of a deletion."""

    id: str
    purged: bool
    archived_at: str | None


class ChannelSignalAnswer(Answer):
    """A hit in one channel."""

    rank: int | None
    score: float
    contribution: float


class LiftAnswer(Answer):
    """A memory of the same session that lifted a hit, by which part of the ranking, and by how much."""

    part: str
    id: str
    contribution: float


class SignalsAnswer(Answer):
    """Why a hit stands where it stands; the parts add up to its score, and each channel's contribution is some of them.

    `coverage` is the share of the question's information that the memory's words hold, `closeness` its cosine on a
    scale where unrelated texts are at 0, `relevance` how probably it is about the question.
    """

    channels: dict[Channel, ChannelSignalAnswer]
    parts: dict[str, float]
    lifted_by: list[LiftAnswer]
    coverage: float
    closeness: float
    relevance: float


class HitAnswer(Answer):
    """A memory that was found; `stale` when the code that it is about changed, `contradicted_by` who denies it."""

    id: str
    content: str
    kind: Kind
    score: float
    created_at: str
    occurred_at: str
    session_id: str | None
    source: Source
    trust: Trust
    instructs: bool
    stale: bool | None = None
    contradicted_by: list[str] | None = None
    signals: SignalsAnswer | None = None


class SessionHitAnswer(Answer):
    """A session that was found, with its best memories."""

    session_id: str
    score: float
    best: list[HitAnswer]


class ChannelAnswer(Answer):
    """How a channel fared."""

    state: ChannelState
    took_ms: float


class RecallAnswer(Answer):
    """The answer to a recall."""

    results: list[HitAnswer] | list[SessionHitAnswer]
    took_ms: float
    channels: dict[Channel, ChannelAnswer]
    degraded: bool


class ChannelVerdictAnswer(Answer):
    """How a channel saw a memory: its rank among all that it scored, and whether that was considered."""

    rank: int | None
    score: float
    considered: bool


class WhyAnswer(Answer):
    """Why a memory is or is not among the results."""

    id: str
    rank: int | None
    score: float | None
    channels: dict[Channel, ChannelVerdictAnswer]
    reasons: list[str]
    signals: SignalsAnswer | None


class WorkerAnswer(Answer):
    """A living worker process."""

    owner: str
    started_at: str
    seen_at: str


class QueueAnswer(Answer):
    """What waits, what failed for good, who works."""

    pending: dict[Stage, int]
    dead: dict[Stage, int]
    oldest_pending_s: float | None
    workers: list[WorkerAnswer]


class RetriedAnswer(Answer):
    """How many dead letters were given a fresh start."""

    retried: int


class RebuildAnswer(Answer):
    """How many memories were queued to be indexed again."""

    queued: int


class HealthAnswer(Answer):
    """That the server answers, whether it can encode queries yet, and how long nobody has asked it for anything."""

    status: Literal["ok"]
    version: str
    encoder: Literal["ready", "loading"]
    uptime_s: float
    idle_s: float


class WorkspaceAnswer(Answer):
    """A workspace and its number of active memories."""

    id: str
    memories: int


class WorkspacePage(Answer):
    """The workspaces of the home."""

    items: list[WorkspaceAnswer]
    next_cursor: str | None


class MemoryCounts(Answer):
    """Memories by state, kind and source."""

    active: int
    archived: int
    sessions: int
    by_kind: dict[Kind, int]
    by_source: dict[Source, int]


class GraphCounts(Answer):
    """Entities and their links."""

    entities: int
    mentions: int
    co_mentions: int


class IndexStats(Answer):
    """The derived indexes."""

    segment: str | None
    tail_rows: int
    passages: int
    model: str
    encoder: Literal["ready", "loading"]


class PredictionStats(Answer):
    """How many questions of the last seven days had been foreseen; no rate where nobody asked."""

    asked: int
    foreseen: int
    hit_rate: float | None


class StatsAnswer(Answer):
    """What a workspace holds."""

    workspace: str
    generation: int
    memories: MemoryCounts
    graph: GraphCounts
    index: IndexStats
    predictions: PredictionStats
    bytes: dict[str, int]


class ErrorAnswer(Answer):
    """A background error."""

    id: int
    at: str
    workspace: str | None
    component: str
    message: str


class ErrorPage(Answer):
    """A page of background errors."""

    items: list[ErrorAnswer]
    next_cursor: str | None
