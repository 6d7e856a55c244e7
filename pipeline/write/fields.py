"""Validate the fields of a memory: text, ids, metadata, scope, and the fields of its kind."""

import json
from collections import ChainMap
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    field_validator,
)
from pydantic_core import PydanticCustomError

from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.records import MAX_CONTENT_CHARS, MAX_METADATA_BYTES, Kind, Scope, ScopeKind
from pipeline.kernel.registry import find_extensions
from pipeline.kernel.times import normalize_time
from pipeline.text.normalize import normalize_id, normalize_json, normalize_tag, normalize_text
from pipeline.text.redaction import redact_json

# Text and metadata


def normalize_content(text: str, loc: str) -> str:
    """Normalize a memory's text; raise InvalidField if it is empty or too long."""
    content = normalize_text(text)
    if not content:
        raise InvalidField(FieldError(loc, "must contain more than white space"))
    if len(content) > MAX_CONTENT_CHARS:
        raise InvalidField(FieldError(loc, f"must have at most {MAX_CONTENT_CHARS} characters"))
    return content


def clean_metadata(raw: Mapping[str, Any], loc: str) -> Any:
    """Normalize metadata and remove secrets; raise InvalidField if it is too large before or after."""
    if not raw:
        return {}
    # Reject large metadata first, because the search for secrets is slow.
    check_metadata(raw, loc)
    metadata, _ = redact_json(normalize_json(raw))
    check_metadata(metadata, loc)
    return metadata


def check_metadata(value: Any, loc: str, most: int = MAX_METADATA_BYTES) -> None:
    """Raise InvalidField if metadata or details are larger than the limit as JSON."""
    if len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) > most:
        raise InvalidField(FieldError(loc, f"must have at most {most} bytes as JSON"))


# The scope

_OWNED = frozenset({ScopeKind.AGENT, ScopeKind.SESSION, ScopeKind.TASK})


def resolve_scope(scope: Scope | None, session_id: str | None, loc: str) -> Scope:
    """Return the scope to store: the workspace by default; a session scope without an id gets the memory's session."""
    if scope is None:
        return Scope()
    if scope.kind is ScopeKind.WORKSPACE:
        return Scope(ScopeKind.WORKSPACE)
    owner = None if scope.id is None else normalize_id(scope.id) or None
    if scope.kind is ScopeKind.SESSION and owner is None:
        owner = session_id
    if scope.kind in _OWNED and owner is None:
        raise InvalidField(FieldError(loc, f"a scope of kind {scope.kind} needs an id"))
    return Scope(scope.kind, owner)


# The fields of each kind

MAX_ALTERNATIVES = 20
# More than all fields of any kind together, in any script.
MAX_DETAILS_BYTES = 64 * 1024


class Severity(StrEnum):
    """The cost of ignoring a lesson."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


def check_finite(value: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object; raise a validation error for NaN and Infinity, which Python's parser accepts."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise PydanticCustomError("not_finite", "must contain only finite numbers") from error
    return value


def check_tag(text: str) -> str:
    """Return a tag unchanged; raise a validation error if nothing of it can be stored."""
    if not normalize_tag(text):
        raise PydanticCustomError("tag", "must contain a letter from a to z or a digit")
    return text


def _to_utc_text(text: str) -> str:
    try:
        return normalize_time(text)
    except ValueError as error:
        raise PydanticCustomError("time", "{reason}", {"reason": str(error)}) from error


def _one_problem(raw: Any, take: ValidatorFunctionWrapHandler) -> Any:
    try:
        return take(raw)
    except ValidationError as error:
        raise PydanticCustomError(
            "no_value", "must be a text (1 to 2000 characters), a number, true or false"
        ) from error


Phrase = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Paragraph = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Moment = Annotated[
    str,
    AfterValidator(_to_utc_text),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "description": "RFC 3339; a date means 00:00 UTC on that day"}
    ),
]
Value = Annotated[Paragraph | bool | int | float, WrapValidator(_one_problem)]


class Details(BaseModel):
    """The fields of a kind without fields."""

    # Built at the first memory of the kind: a start need not wait for eleven schemas.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class DecisionDetails(Details):
    """The reason for a decision, and the alternatives."""

    reason: Paragraph | None = None
    alternatives: Annotated[tuple[Phrase, ...], Field(max_length=MAX_ALTERNATIVES)] | None = None


class LessonDetails(Details):
    """A lesson's rule and when it applies."""

    rule: Paragraph | None = None
    applies_when: Paragraph | None = None
    severity: Severity = Severity.WARNING


class ActivityDetails(Details):
    """An activity's tool and success."""

    tool: Phrase | None = None
    succeeded: bool | None = None


class MilestoneDetails(Details):
    """The chain of a milestone."""

    chain: Phrase | None = None


class QuestionAndAnswerDetails(Details):
    """A question and its answer in separate fields."""

    question: Paragraph | None = None
    answer: Paragraph | None = None


class CodeDetails(Details):
    """The code at the anchor."""

    language: Phrase | None = None
    symbol: Phrase | None = None


class DocumentDetails(Details):
    """The location of a document."""

    title: Phrase | None = None
    uri: Paragraph | None = None


class EpisodeDetails(Details):
    """The start and end of an episode."""

    started_at: Moment | None = None
    ended_at: Moment | None = None

    @field_validator("ended_at")
    @classmethod
    def _not_before_it_began(cls, ended: str | None, info: ValidationInfo) -> str | None:
        began = info.data.get("started_at")
        if ended is not None and began is not None and ended < began:
            raise PydanticCustomError("reversed", "must not be before started_at")
        return ended


class KeyedFactDetails(Details):
    """Subject, attribute and value of a fact."""

    subject: Phrase
    attribute: Phrase
    value: Value


_DETAILS: Mapping[Kind, type[Details]] = {
    Kind.FACT: Details,
    Kind.DECISION: DecisionDetails,
    Kind.LESSON: LessonDetails,
    Kind.ACTIVITY: ActivityDetails,
    Kind.MILESTONE: MilestoneDetails,
    Kind.QA: QuestionAndAnswerDetails,
    Kind.CODE: CodeDetails,
    Kind.DOCUMENT: DocumentDetails,
    Kind.EPISODE: EpisodeDetails,
    Kind.KEYED_FACT: KeyedFactDetails,
}


def find_details(kind: Kind) -> type[Details]:
    """Return the model of a kind's typed fields. Features add theirs; a kind without a model has no fields."""
    return _DETAILS.get(kind) or ChainMap(*find_extensions("DETAILS")).get(kind, Details)


def check_details(kind: Kind, raw: Mapping[str, Any], loc: str) -> dict[str, Any]:
    """Return a kind's typed fields, normalized, redacted and with defaults; raise InvalidField if one is invalid."""
    check_metadata(raw, loc, MAX_DETAILS_BYTES)
    try:
        details = _validate_details(kind, redact_json(normalize_json(raw))[0]) if raw else _default_details(kind)
    except ValidationError as error:
        errors = error.errors(include_input=False, include_url=False, include_context=False)
        raise InvalidField(
            *(
                FieldError(".".join(map(str, (loc, *item["loc"]))), _format_problem(kind, item["type"], item["msg"]))
                for item in errors
            )
        ) from error
    return details.model_dump(mode="json", exclude_none=True)


def _validate_details(kind: Kind, clean: Any) -> BaseModel:
    # Validate as JSON: only then does a strict model accept enum values as text, and reject 1 for a boolean.
    return find_details(kind).model_validate_json(json.dumps(clean))


@cache
def _default_details(kind: Kind) -> BaseModel:
    """Return the fields of a memory that states none; raise ValidationError if its kind needs some."""
    return _validate_details(kind, {})


def _format_problem(kind: Kind, problem: str, message: str) -> str:
    if problem == "missing":
        return f"a {kind} needs this field"
    return f"a {kind} has no such field" if problem == "extra_forbidden" else message
