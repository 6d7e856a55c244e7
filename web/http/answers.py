"""The answers of the API. The OpenAPI document is generated from them, and tests compare real answers with them."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
    field_validator,
)
from pydantic_core import CoreSchema

from pipeline.features.review.store import Decision
from pipeline.kernel.anchors import is_stale
from pipeline.kernel.errors import FieldError
from pipeline.kernel.feature import Extension
from pipeline.kernel.records import Anchor, Kind, Memory, Receipt, Scope, Sensitivity, Source, Trust
from pipeline.kernel.records.people import display_name
from pipeline.kernel.records.recall import (
    Channel,
    ChannelReport,
    ChannelSignal,
    ChannelView,
    MemoryExplanation,
    SessionHit,
    Signals,
    Step,
    UsedBridge,
)
from pipeline.kernel.registry import find_extensions
from pipeline.kernel.store.edges import Edge
from pipeline.kernel.store.turns import Role as SpeakerRole
from pipeline.kernel.times import utc_text

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


@dataclass(frozen=True, slots=True)
class OfFeature:
    """Marks a list whose items a feature describes; without the feature it is empty."""

    model: Extension

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a list of the feature's model."""
        models = find_extensions(self.model)
        return handler.generate_schema(list[models[0]] if models else source)  # type: ignore[valid-type]


class Answer(BaseModel):
    """A JSON answer. It reads the attributes of a use case's result, and serializes them.

    `of` is the record whose fields it repeats, in their order: it declares only fields that differ. A record in a field
    becomes its answer. `flat` is a field that is replaced by the fields of its own record. `without` names the fields
    of the record that no answer shows, `optional` those that are omitted while they are missing. With `names_memory`,
    its `id` is the id of a memory: the access log lists the memories of an answer.
    """

    model_config = ConfigDict(
        extra="forbid", from_attributes=True, validate_by_name=True, validate_by_alias=True, defer_build=True
    )
    names_memory: ClassVar[bool] = False

    def __init_subclass__(
        cls,
        of: type | None = None,
        flat: str = "",
        names_memory: bool = False,
        without: Collection[str] = (),
        optional: Collection[str] = (),
        **config: Any,
    ) -> None:
        """Declare the fields of a record."""
        super().__init_subclass__(**config)
        cls.names_memory = cls.names_memory or names_memory
        if of is None:
            return
        own, copied = inspect.get_annotations(cls), dict[str, Any]()
        for path, hint in _list_fields(of, flat):
            name = path[-1]
            if name in without:
                continue
            copied[name] = own.get(name, _answer_hint(name, hint))
            if name not in own and (len(path) > 1 or name in optional):
                alias = AliasPath(*path) if len(path) > 1 else None
                options: Any = {"default": None, "exclude_if": is_missing} if name in optional else {}
                setattr(cls, name, Field(validation_alias=alias, **options))
        cls.__annotations__ = {**copied, **own}
        _ANSWERS.setdefault(of, cls)


# The answer of each record, for the fields that contain this record.
_ANSWERS: dict[type, type[Answer]] = {}


def _list_fields(record: type, flat: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the type of each field; those of a record that it extends come last."""
    hints = get_type_hints(record)
    for name in [name for kind in record.__mro__ for name in inspect.get_annotations(kind)]:
        if name == flat:
            yield from (((name, *path), hint) for path, hint in _list_fields(hints[name], ""))
        else:
            yield (name,), hints[name]


def _answer_hint(name: str, hint: Any) -> Any:
    """Return the type of an answer's field for the type of a record's field."""
    hint = _replace_records(hint)
    return Annotated[hint, BeforeValidator(display_name)] if name in ("session_id", "agent_id") else hint


def _replace_records(hint: Any) -> Any:
    """Return a type with the answers of its records, and with JSON's lists and objects."""
    if isinstance(hint, type) and not get_args(hint):
        return next((_ANSWERS[kind] for kind in hint.__mro__ if kind in _ANSWERS), hint)
    origin, arguments = get_origin(hint), [_replace_records(part) for part in get_args(hint)]
    if origin is UnionType:
        return reduce(or_, arguments)
    if origin is Sequence or (origin is tuple and Ellipsis in arguments):
        return list[arguments[0]]  # type: ignore[valid-type]
    return dict[arguments[0], arguments[1]] if origin is Mapping else hint  # type: ignore[valid-type]


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


class ReceiptAnswer(
    Answer, of=Receipt, optional=("duplicate_of", "reason", "replaced", "renamed_tags"), names_memory=True
):
    """The result of a write."""

    kept: dict[str, str | bool | None] | None = Field(default=None, exclude_if=is_missing)


class ScopeAnswer(Answer, of=Scope):
    """The scope of a memory: who can see it."""

    id: Annotated[str | None, BeforeValidator(display_name)]


class StatementAnswer(Answer, names_memory=True):
    """A memory in a form of its own: who can see it, and who stated it."""

    id: str
    scope: ScopeAnswer
    source: Source
    trust: Trust
    instructs: bool
    author: str | None = Field(default=None, exclude_if=is_missing)


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


class MemoryAnswer(Answer, of=Memory, without=("seq", "key", "shared_from"), optional=("author",), names_memory=True):
    """A memory. A keyed fact has a `valid_from`; a `candidate` waits for review; `shared` means shared by its `author`.

    `details` are the typed fields of its kind. `instructs` marks a text with instructions to its reader. `said_by`
    names who said a statement that capture read: `user` or a person.
    """

    anchor: Annotated[AnchorAnswer | None, BeforeValidator(_anchor_answer)]
    sensitivity: Sensitivity
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


class EdgeAnswer(Answer, of=Edge, without=("outgoing", "other_id", "other_scope"), names_memory=True):
    """An edge from a memory (`out`) or to it (`in`), and who created it."""

    direction: Literal["out", "in"]
    id: str = Field(validation_alias="other_id")


class ChannelSignalAnswer(Answer, of=ChannelSignal):
    """A hit in one channel."""

    score: Rounded
    contribution: Rounded


class LiftAnswer(Answer):
    """A memory of the same session that raised the score of a hit: by which part of the ranking, and by how much."""

    part: str
    id: str = Field(validation_alias="memory_id")
    contribution: Rounded


class UsedBridgeAnswer(Answer, of=UsedBridge):
    """A vocabulary bridge: the question's term, the hit's name for it, and the memory that shows it, if any."""


class SignalsAnswer(Answer, of=Signals):
    """Why a hit has its rank. The parts add up to its score; the contribution of a channel is the sum of some parts.

    `coverage` is the share of the question's information that the memory's words hold, `closeness` its cosine on a
    scale where unrelated texts are at 0, `relevance` the probability that it answers the question.
    """

    parts: Annotated[
        dict[str, Rounded], BeforeValidator(lambda parts: {name: value for name, value in parts.items() if value})
    ]
    lifted_by: list[LiftAnswer]
    coverage: Rounded
    closeness: Rounded
    relevance: Rounded
    bridges: list[UsedBridgeAnswer] = Field(default_factory=list, exclude_if=is_missing)


class HitAnswer(Answer, names_memory=True):
    """A memory in the results; `relevance` is the probability that it, or a neighboring turn, answers the question.

    It is `stale` when the code that it is about changed; `broken` lists what it cites that is no longer true in the
    checkout; `contradicted_by` names who denies it, `superseded_by` what
    replaced it. If teams are asked too, `from` is the name of the memory's team, or `local`.
    """

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


class ChannelVerdictAnswer(Answer, of=ChannelView):
    """The verdict of a channel on a memory: its rank among all scored memories, and whether it was considered."""

    score: Rounded


class ChainLink(Answer):
    """A memory in short, as in a chain of causes and consequences."""

    id: str
    kind: Kind
    content: str
    occurred_at: str


class WhyAnswer(Answer, of=MemoryExplanation, without=("memory", "relevance"), names_memory=True):
    """Why a memory is or is not among the results; `chain` lists its causes and its consequences."""

    id: str = Field(validation_alias=AliasPath("memory", "id"))
    score: Rounded | None
    chain: list[ChainLink] = Field(default_factory=list, exclude_if=is_missing)
