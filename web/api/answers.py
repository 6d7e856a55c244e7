"""What the API answers; the OpenAPI document is generated from these, and tests hold real answers against them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

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
from pipeline.records import Anchor, EdgeKind, Kind, Outcome, ScopeKind, Sensitivity, Source, Tier, Trust
from pipeline.records.people import shown_name
from pipeline.records.recall import Channel, ChannelState, Step
from pipeline.times import utc_text

Item = TypeVar("Item")
# Cursors are row numbers; callers hand them back as they are.
Cursor = Annotated[str | None, BeforeValidator(lambda seq: None if seq is None else str(seq))]
Rounded = Annotated[float, AfterValidator(lambda value: round(value, 6))]
# What is kept as seconds since the epoch.
SecondsText = Annotated[
    str, BeforeValidator(lambda at: at if isinstance(at, str) else utc_text(datetime.fromtimestamp(at, UTC)))
]


# What a session, an agent or an owner is called by whose it is.
Name = Annotated[str, BeforeValidator(shown_name)]


def is_missing(value: Any) -> bool:
    """Tell whether a part of an answer does not apply and is left out."""
    return value is None or value == []


def _without_zeros(parts: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in parts.items() if value}


class Answer(BaseModel):
    """A JSON answer: what a use case returns is read into it by its attributes, and it is what serializes."""

    model_config = ConfigDict(
        extra="forbid", from_attributes=True, validate_by_name=True, validate_by_alias=True, defer_build=True
    )
    # Whether its `id` is a memory's: the access log notes who was told of which.
    names_memory: ClassVar[bool] = False


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
    instance: str = ""


class ReceiptAnswer(Answer):
    """What became of a write."""

    names_memory: ClassVar[bool] = True

    id: str
    outcome: Outcome
    duplicate_of: str | None = Field(default=None, exclude_if=is_missing)
    reason: str | None = Field(default=None, exclude_if=is_missing)
    replaced: str | None = Field(default=None, exclude_if=is_missing)


class ScopeAnswer(Answer):
    """How far a memory reaches."""

    kind: ScopeKind
    id: Annotated[str | None, BeforeValidator(shown_name)]


class AnchorAnswer(Answer):
    """The code that a memory is about, the hash that it had, and whether it changed; null when nobody can say."""

    path: str
    lines: tuple[int, int] | None
    content_hash: str | None
    stale: bool | None = None


def _anchor_answer(anchor: Anchor | AnchorAnswer | None) -> AnchorAnswer | None:
    # Whether the code changed is seen in the code, of which no record knows.
    if not isinstance(anchor, Anchor):
        return anchor
    return AnchorAnswer.model_validate(anchor).model_copy(update={"stale": is_stale(anchor)})


class MemoryAnswer(Answer):
    """A memory; one with a `valid_from` is a keyed fact, and a `candidate` waits for review; `shared` by its `author`.

    `details` are the typed fields of its kind. `instructs` marks a text that tries to command its reader.
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
    shared: bool = Field(default=False, validation_alias="shared_from", exclude_if=lambda shared: not shared)

    @field_validator("shared", mode="before")
    @classmethod
    def _is_shared(cls, before: Any) -> bool:
        return bool(before)


class MemoryPage(PageAnswer[MemoryAnswer]):
    """A page of memories."""


class AdmissionAnswer(Answer):
    """What admission decided about a write, 0 to 1 how much spoke for it, and why; never the text itself."""

    id: str
    at: str
    outcome: Outcome
    score: float
    reasons: list[str]
    source: Source
    kind: Kind


class EdgeAnswer(Answer):
    """An edge from a memory (`out`) or to it (`in`), and who drew it."""

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
    """A memory of the same session that lifted a hit, by which part of the ranking, and by how much."""

    part: str
    id: str = Field(validation_alias="memory_id")
    contribution: Rounded


class SignalsAnswer(Answer):
    """Why a hit stands where it stands; the parts add up to its score, and each channel's contribution is some of them.

    `coverage` is the share of the question's information that the memory's words hold, `closeness` its cosine on a
    scale where unrelated texts are at 0, `relevance` how probably it is about the question.
    """

    channels: dict[Channel, ChannelSignalAnswer]
    parts: Annotated[dict[str, Rounded], BeforeValidator(_without_zeros)]
    lifted_by: list[LiftAnswer]
    coverage: Rounded
    closeness: Rounded
    relevance: Rounded


class HitAnswer(Answer):
    """A memory that was found; `relevance` tells how probably it, or a turn beside it, is about the question.

    It is `stale` when the code that it is about changed; `contradicted_by` names who denies it, `superseded_by` what
    was said later of the same thing. Where teams are asked too, `from` tells whose it is: `local` or a team's name.
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
    signals: SignalsAnswer | None = Field(default=None, exclude_if=is_missing)
    author: str | None = Field(default=None, validation_alias=AliasPath("memory", "author"), exclude_if=is_missing)
    origin: str | None = Field(
        default=None,
        validation_alias=AliasChoices("origin", "from"),
        serialization_alias="from",
        exclude_if=is_missing,
    )


class SessionHitAnswer(Answer):
    """A session that was found, with its best memories."""

    session_id: Name
    score: Rounded
    best: list[HitAnswer]


class ChannelAnswer(Answer):
    """How a channel fared."""

    state: ChannelState
    took_ms: float


TeamChannel = Annotated[str, StringConstraints(pattern=r"^team:.+")]


class RecallAnswer(Answer):
    """The answer to a recall; a team that was asked is a channel, `team:` and its name, and so is a step left out."""

    results: list[HitAnswer] | list[SessionHitAnswer]
    took_ms: float
    channels: dict[Channel | Step | TeamChannel, ChannelAnswer]
    degraded: bool


class ChannelVerdictAnswer(Answer):
    """How a channel saw a memory: its rank among all that it scored, and whether that was considered."""

    rank: int | None
    score: Rounded
    considered: bool


class ChainLink(Answer):
    """One of what led to a memory and what it came to."""

    id: str
    kind: Kind
    content: str
    occurred_at: str


class WhyAnswer(Answer):
    """Why a memory is or is not among the results; its `chain` tells what led to it and what it came to."""

    names_memory: ClassVar[bool] = True

    id: str = Field(validation_alias=AliasPath("memory", "id"))
    rank: int | None
    score: Rounded | None
    channels: dict[Channel, ChannelVerdictAnswer]
    reasons: list[str]
    signals: SignalsAnswer | None
    chain: list[ChainLink] = Field(default_factory=list, exclude_if=is_missing)
