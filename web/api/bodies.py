"""What callers may send."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, StringConstraints
from pydantic_core import PydanticCustomError

from pipeline.records import (
    MAX_BATCH,
    MAX_CONTENT_CHARS,
    MAX_SESSION_ID_CHARS,
    MAX_TAGS,
    Draft,
    Kind,
    Scope,
    ScopeKind,
    Source,
    Stage,
)
from pipeline.store.memories import Filter
from pipeline.times import utc_text
from pipeline.write.normalize import normalize_id
from pipeline.write.revise import Revision
from pipeline.write.scope import resolve_scope

MAX_QUERY_CHARS = 4000
MAX_PAGE = 200


def _to_utc_text(moment: datetime) -> str:
    try:
        return utc_text(moment)
    except OverflowError as error:
        raise PydanticCustomError("out_of_range", "must lie in the years 1 to 9999 in UTC") from error


def _not_blank(text: str) -> str:
    if text and not text.strip():
        raise PydanticCustomError("blank", "must hold more than white space")
    return text


def _finite(value: dict[str, Any]) -> dict[str, Any]:
    # Python's parser takes NaN and Infinity, which no JSON answer could carry back.
    try:
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise PydanticCustomError("not_finite", "must hold finite numbers only") from error
    return value


def _as_stored(name: str) -> str:
    # Questions and writes say the same name in the same way, or one would not find the other.
    stored = normalize_id(name)
    if not stored:
        raise PydanticCustomError("blank", "must hold more than white space")
    return stored


Moment = Annotated[AwareDatetime, AfterValidator(_to_utc_text)]
Tag = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,50}$")]
Tags = Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS)]
Content = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS), AfterValidator(_not_blank)]
Importance = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Metadata = Annotated[dict[str, JsonValue], AfterValidator(_finite)]
SessionId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SESSION_ID_CHARS), AfterValidator(_as_stored)]


class Body(BaseModel):
    """A JSON body: no unknown fields, no silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class ScopeBody(Body):
    """How far a memory reaches."""

    kind: Annotated[ScopeKind, Field(strict=False)]
    id: SessionId | None = None

    def record(self) -> Scope:
        """Return the record."""
        return Scope(self.kind, self.id)


class MemoryBody(Body):
    """A memory to store."""

    content: Content
    kind: Annotated[Kind, Field(strict=False)] = Kind.FACT
    importance: Importance | None = None
    scope: ScopeBody | None = None
    tags: Annotated[Tags, Field(strict=False)] = ()
    metadata: Metadata = Field(default_factory=dict)
    session_id: SessionId | None = None
    source: Annotated[Source, Field(strict=False)] = Source.USER
    occurred_at: Moment | None = None

    def record(self) -> Draft:
        """Return the record."""
        return Draft(
            content=self.content,
            kind=self.kind,
            importance=self.importance,
            scope=None if self.scope is None else self.scope.record(),
            tags=self.tags,
            metadata=self.metadata,
            session_id=self.session_id,
            source=self.source,
            occurred_at=_text(self.occurred_at),
        )


class BatchBody(Body):
    """Memories to store in one transaction."""

    items: Annotated[list[MemoryBody], Field(max_length=MAX_BATCH)]


class PatchBody(Body):
    """The fields of a memory to change."""

    pinned: bool | None = None
    importance: Importance | None = None
    tags: Annotated[Tags, Field(strict=False)] | None = None
    metadata: Metadata | None = None
    content: Content | None = None

    def record(self) -> Revision:
        """Return the record."""
        return Revision(self.content, self.importance, self.tags, self.metadata, self.pinned)


class RecallBody(Body):
    """A question to the memory; an empty query lists by importance and recency."""

    query: Annotated[str, StringConstraints(max_length=MAX_QUERY_CHARS), AfterValidator(_not_blank)]
    k: Annotated[int, Field(ge=1, le=100)] = 10
    kinds: Annotated[tuple[Annotated[Kind, Field(strict=False)], ...], Field(strict=False)] = ()
    scope: ScopeBody | None = None
    session_id: SessionId | None = None
    since: Moment | None = None
    until: Moment | None = None
    group: Literal["memory", "session"] = "memory"
    budget_ms: Annotated[int, Field(ge=1, le=10_000)] | None = None
    explain: bool = False

    def filter(self) -> Filter:
        """Return the record of what may be answered."""
        return Filter(
            kinds=self.kinds,
            scope=None if self.scope is None else resolve_scope(self.scope.record(), self.session_id, "scope.id"),
            session_id=self.session_id,
            since=_text(self.since),
            until=_text(self.until),
        )


class WhyBody(RecallBody):
    """A question to the memory, and the memory that should be explained."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARS), AfterValidator(_not_blank)]
    id: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class RetryBody(Body):
    """Which dead letters to retry; all without a stage."""

    stage: Annotated[Stage, Field(strict=False)] | None = None


class QueryString(BaseModel):
    """A query string: text throughout, no unknown names."""

    model_config = ConfigDict(extra="forbid")


class PageQuery(QueryString):
    """A page of a list."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50
    cursor: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")] | None = None

    @property
    def before(self) -> int | None:
        """Return the row number that the page lies below."""
        return None if self.cursor is None else int(self.cursor)


class ListQuery(PageQuery):
    """Which memories to list; `scope` is `<kind>` or `<kind>:<id>`."""

    kind: Kind | None = None
    scope: Annotated[str, StringConstraints(pattern=rf"^({'|'.join(ScopeKind)})(:.{{1,256}})?$")] | None = None
    session_id: SessionId | None = None
    archived: bool = False

    def filter(self) -> Filter:
        """Return the record of what may be listed."""
        scope = None
        if self.scope is not None:
            kind, _, owner = self.scope.partition(":")
            scope = resolve_scope(Scope(ScopeKind(kind), owner or None), self.session_id, "scope")
        kinds = () if self.kind is None else (self.kind,)
        return Filter(kinds=kinds, scope=scope, session_id=self.session_id, archived=self.archived)


class DeleteQuery(QueryString):
    """Whether to archive or to purge."""

    hard: bool = False


def _text(moment: Any) -> str | None:
    # The validator has turned the moment into text; the annotation describes what callers send.
    return None if moment is None else str(moment)
