"""The answers of the API. The OpenAPI document is generated from them, and tests compare real answers with them."""

import inspect
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_type_hints

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
)

from pipeline.anchors import is_stale
from pipeline.errors import FieldError
from pipeline.records import Anchor, EdgeKind, Kind, Outcome, ScopeKind, Sensitivity, Source, Tier, Trust
from pipeline.records.people import display_name
from pipeline.records.recall import Channel, ChannelReport, Step, UsedBridge
from pipeline.records.sessions import SessionHit
from pipeline.store.review import Decision
from pipeline.store.turns import Role as SpeakerRole
from pipeline.times import utc_text

Item = TypeVar("Item")
# Cursors are row numbers; callers send them back unchanged.
Cursor = Annotated[str | None, BeforeValidator(lambda seq: None if seq is None else str(seq))]
Rounded = Annotated[float, AfterValidator(lambda value: round(value, 6))]
# A time that is stored as seconds since the epoch.
SecondsText = Annotated[
    str, BeforeValidator(lambda at: at if isinstance(at, str) else utc_text(datetime.fromtimestamp(at, UTC)))
]


# The name of a session, an agent or an owner as its own person uses it.
Name = Annotated[str, BeforeValidator(display_name)]


def is_missing(value: Any) -> bool:
    """Return whether a part of an answer does not apply and is omitted."""
    return value is None or value == []


class Answer(BaseModel):
    """A JSON answer. It reads the attributes of a use case's result, and serializes them.

    `of` is the record whose fields it repeats, in their order: it declares only fields that differ. `without` names the
    fields of the record that no answer shows.
    """

    model_config = ConfigDict(
        extra="forbid", from_attributes=True, validate_by_name=True, validate_by_alias=True, defer_build=True
    )
    # Whether its `id` is the id of a memory. The access log lists the memories of an answer.
    names_memory: ClassVar[bool] = False

    def __init_subclass__(cls, of: type | None = None, without: Collection[str] = (), **config: Any) -> None:
        """Declare the fields of a record."""
        super().__init_subclass__(**config)
        if of is not None:
            own = inspect.get_annotations(cls)
            copied = {name: own.get(name, hint) for name, hint in get_type_hints(of).items() if name not in without}
            cls.__annotations__ = {**copied, **own}


class PageAnswer(Answer, Generic[Item]):
    """A page of a list."""

    items: list[Item]
    next_cursor: Cursor


class FieldProblem(Answer, of=FieldError):
    """One rejected field."""


class Problem(Answer):
    """An error, after RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem]
    instance: str = ""


class ReceiptAnswer(Answer):
    """The result of a write."""

    names_memory: ClassVar[bool] = True

    id: str
    outcome: Outcome
    duplicate_of: str | None = Field(default=None, exclude_if=is_missing)
    reason: str | None = Field(default=None, exclude_if=is_missing)
    replaced: str | None = Field(default=None, exclude_if=is_missing)
    renamed_tags: dict[str, str] | None = Field(default=None, exclude_if=is_missing)
    kept: dict[str, str | bool | None] | None = Field(default=None, exclude_if=is_missing)


class ScopeAnswer(Answer):
    """The scope of a memory: who can see it."""

    kind: ScopeKind
    id: Annotated[str | None, BeforeValidator(display_name)]


class AnchorAnswer(Answer):
    """The code that a memory is about, its hash at that time, and whether it changed since; null if unknown."""

    path: str
    lines: tuple[int, int] | None
    content_hash: str | None
    stale: bool | None = None


def _anchor_answer(anchor: Anchor | AnchorAnswer | None) -> AnchorAnswer | None:
    # Only the code itself shows whether it changed.
    if not isinstance(anchor, Anchor):
        return anchor
    return AnchorAnswer.model_validate(anchor).model_copy(update={"stale": is_stale(anchor)})


class MemoryAnswer(Answer):
    """A memory. A keyed fact has a `valid_from`; a `candidate` waits for review; `shared` means shared by its `author`.

    `details` are the typed fields of its kind. `instructs` marks a text with instructions to its reader. `said_by`
    names who said a statement that capture read: `user` or a person.
    """

    names_memory: ClassVar[bool] = True

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
    session_id: Name | None
    created_at: str
    occurred_at: str
    updated_at: str
    archived_at: str | None
    content_hash: str
    recall_count: int
    merge_count: int
    details: dict[str, Any]
    anchor: Annotated[AnchorAnswer | None, BeforeValidator(_anchor_answer)]
    branch: str | None
    candidate: bool
    instructs: bool
    valid_from: str | None
    valid_to: str | None
    expires_at: str | None
    sensitivity: Sensitivity
    author: str | None = Field(default=None, exclude_if=is_missing)
    said_by: str | None = Field(default=None, exclude_if=is_missing)
    shared: bool = Field(default=False, validation_alias="shared_from", exclude_if=lambda shared: not shared)

    @field_validator("shared", mode="before")
    @classmethod
    def _is_shared(cls, before: Any) -> bool:
        return bool(before)


class MemoryPage(PageAnswer[MemoryAnswer]):
    """A page of memories."""


class AdmissionAnswer(Answer, of=Decision, without=("content_hash",)):
    """The decision of admission about a write: its score from 0 to 1 and the reasons, without the text."""


class EdgeAnswer(Answer):
    """An edge from a memory (`out`) or to it (`in`), and who created it."""

    names_memory: ClassVar[bool] = True

    kind: EdgeKind
    direction: Literal["out", "in"]
    id: str = Field(validation_alias="other_id")
    made_by: str
    at: str


class ChannelSignalAnswer(Answer):
    """A hit in one channel."""

    rank: int | None
    score: Rounded
    contribution: Rounded


class LiftAnswer(Answer):
    """A memory of the same session that raised the score of a hit: by which part of the ranking, and by how much."""

    part: str
    id: str = Field(validation_alias="memory_id")
    contribution: Rounded


class UsedBridgeAnswer(Answer, of=UsedBridge):
    """A vocabulary bridge: the question's term, the hit's name for it, and the memory that shows it, if any."""


class SignalsAnswer(Answer):
    """Why a hit has its rank. The parts add up to its score; the contribution of a channel is the sum of some parts.

    `coverage` is the share of the question's information that the memory's words hold, `closeness` its cosine on a
    scale where unrelated texts are at 0, `relevance` the probability that it answers the question.
    """

    channels: dict[Channel, ChannelSignalAnswer]
    parts: Annotated[
        dict[str, Rounded], BeforeValidator(lambda parts: {name: value for name, value in parts.items() if value})
    ]
    lifted_by: list[LiftAnswer]
    coverage: Rounded
    closeness: Rounded
    relevance: Rounded
    bridges: list[UsedBridgeAnswer] = Field(default_factory=list, exclude_if=is_missing)


class HitAnswer(Answer):
    """A memory in the results; `relevance` is the probability that it, or a neighboring turn, answers the question.

    It is `stale` when the code that it is about changed; `broken` lists what it cites that is no longer true in the
    checkout; `contradicted_by` names who denies it, `superseded_by` what
    replaced it. If teams are asked too, `from` is the name of the memory's team, or `local`.
    """

    names_memory: ClassVar[bool] = True

    id: str = Field(validation_alias=AliasPath("memory", "id"))
    content: str = Field(validation_alias=AliasPath("memory", "content"))
    kind: Kind = Field(validation_alias=AliasPath("memory", "kind"))
    score: Rounded
    relevance: Rounded
    created_at: str = Field(validation_alias=AliasPath("memory", "created_at"))
    occurred_at: str = Field(validation_alias=AliasPath("memory", "occurred_at"))
    session_id: Name | None = Field(validation_alias=AliasPath("memory", "session_id"))
    source: Source = Field(validation_alias=AliasPath("memory", "source"))
    trust: Trust = Field(validation_alias=AliasPath("memory", "trust"))
    instructs: bool = Field(validation_alias=AliasPath("memory", "instructs"))
    stale: bool | None = Field(default=None, validation_alias=AliasPath("annotations", "stale"), exclude_if=is_missing)
    contradicted_by: list[str] = Field(
        default_factory=list, validation_alias=AliasPath("annotations", "contradicted_by"), exclude_if=is_missing
    )
    superseded_by: str | None = Field(
        default=None, validation_alias=AliasPath("annotations", "superseded_by"), exclude_if=is_missing
    )
    broken: list[str] = Field(
        default_factory=list, validation_alias=AliasPath("annotations", "broken"), exclude_if=is_missing
    )
    signals: SignalsAnswer | None = Field(default=None, exclude_if=is_missing)
    author: str | None = Field(default=None, validation_alias=AliasPath("memory", "author"), exclude_if=is_missing)
    said_by: str | None = Field(default=None, validation_alias=AliasPath("memory", "said_by"), exclude_if=is_missing)
    origin: str | None = Field(
        default=None,
        validation_alias=AliasChoices("origin", "from"),
        serialization_alias="from",
        exclude_if=is_missing,
    )


class SessionHitAnswer(Answer):
    """A session in the results, with its best memories."""

    session_id: Name
    score: Rounded
    best: list[HitAnswer]


class FoundSessionAnswer(Answer, of=SessionHit, without=("turn_seq", "is_relevant")):
    """A past session, and the message in it that says most about the query; `score` orders sessions only.

    `relevance` is the probability that the session is about the query.
    """

    session_id: Name
    role: SpeakerRole
    score: Rounded
    relevance: Rounded


class ChannelAnswer(Answer, of=ChannelReport):
    """The state of a channel."""


TeamChannel = Annotated[str, StringConstraints(pattern=r"^team:.+")]


class RecallAnswer(Answer):
    """The answer to a recall. A team is a channel named `team:` and its name; a skipped step is a channel too.

    `sessions` quotes past sessions that are surely about the query and say something that the results do not.
    """

    results: list[HitAnswer] | list[SessionHitAnswer]
    sessions: list[FoundSessionAnswer] = Field(default_factory=list, exclude_if=is_missing)
    took_ms: float
    channels: dict[Channel | Step | TeamChannel, ChannelAnswer]
    degraded: bool


class ChannelVerdictAnswer(Answer):
    """The verdict of a channel on a memory: its rank among all scored memories, and whether it was considered."""

    rank: int | None
    score: Rounded
    considered: bool


class ChainLink(Answer):
    """One memory in a chain of causes and consequences."""

    id: str
    kind: Kind
    content: str
    occurred_at: str


class WhyAnswer(Answer):
    """Why a memory is or is not among the results; `chain` lists its causes and its consequences."""

    names_memory: ClassVar[bool] = True

    id: str = Field(validation_alias=AliasPath("memory", "id"))
    rank: int | None
    score: Rounded | None
    channels: dict[Channel, ChannelVerdictAnswer]
    reasons: list[str]
    signals: SignalsAnswer | None
    chain: list[ChainLink] = Field(default_factory=list, exclude_if=is_missing)
