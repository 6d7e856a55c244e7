"""The bodies and query strings of requests."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PositiveInt,
    StringConstraints,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError

from pipeline.kernel.records import (
    MAX_BRANCH_CHARS,
    MAX_CONTENT_CHARS,
    MAX_EDGES,
    MAX_FOLDER_CHARS,
    MAX_METADATA_BYTES,
    MAX_PATH_CHARS,
    MAX_SESSION_ID_CHARS,
    MAX_TAGS,
    OWNED,
    Anchor,
    Draft,
    EdgeDraft,
    EdgeKind,
    Filter,
    Kind,
    Revision,
    Scope,
    ScopeKind,
    Sensitivity,
    Source,
    Trust,
    Viewer,
)
from pipeline.kernel.records.extraction import Disposition, Extraction
from pipeline.kernel.records.people import Caller
from pipeline.text.normalize import normalize_id, normalize_tag
from pipeline.write.fields import Moment, Paragraph, Value, check_finite, check_tag, resolve_scope
from web.http.access import ClientId, scope_of_caller, scope_of_text, session_of, viewer_of

MAX_QUERY_CHARS = 4000
MAX_PAGE = 200
MAX_TAG_INPUT_CHARS = 200


def _not_blank(text: str) -> str:
    if text and not text.strip():
        raise PydanticCustomError("blank", "must contain more than white space")
    return text


def _absolute_or_empty(folder: str) -> str:
    # A relative path would be resolved against the folder of the server.
    if folder and not Path(folder).is_absolute():
        raise PydanticCustomError("relative", "must be an absolute path")
    return folder


def _as_stored(name: str) -> str:
    # Queries and writes must normalize a name in the same way, or a query would miss the written name.
    if OWNED in name:
        raise PydanticCustomError("reserved", f"must not contain {OWNED}")
    stored = normalize_id(name)
    if not stored:
        raise PydanticCustomError("blank", "must contain more than white space")
    return stored


def _not_a_peers(source: Source) -> Source:
    if source is Source.SYNC:
        raise PydanticCustomError("reserved", "is reserved for memories of other machines; choose another source")
    return source


# JSON has one kind of number: 1.0 is an integer there.
Whole = BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
GivenSource = Annotated[
    Source,
    Field(strict=False),
    AfterValidator(_not_a_peers),
    WithJsonSchema({"type": "string", "enum": [source.value for source in Source if source is not Source.SYNC]}),
]
# No system has a folder whose path contains this character.
Folder = Annotated[
    str, StringConstraints(max_length=MAX_FOLDER_CHARS, pattern=r"^[^\x00]*$"), AfterValidator(_absolute_or_empty)
]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TAG_INPUT_CHARS), AfterValidator(check_tag)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS)]
Content = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS), AfterValidator(_not_blank)]
Query = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARS), AfterValidator(_not_blank)]
Importance = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Branch = Annotated[str, StringConstraints(min_length=1, max_length=MAX_BRANCH_CHARS), AfterValidator(_as_stored)]
# The size as JSON is checked when it is stored; more fields than these always exceed it.
Metadata = Annotated[dict[str, JsonValue], Field(max_length=MAX_METADATA_BYTES // 6), AfterValidator(check_finite)]
Kinds = Annotated[tuple[Annotated[Kind, Field(strict=False)], ...], Field(strict=False, max_length=len(Kind))]
MemoryId = Annotated[str, StringConstraints(min_length=1, max_length=64)]
SessionId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SESSION_ID_CHARS), AfterValidator(_as_stored)]


ScopeText = Annotated[str, StringConstraints(pattern=rf"^({'|'.join(ScopeKind)})(:[^{OWNED}]{{1,256}})?$")]


class Body(BaseModel):
    """A JSON body: no unknown fields, no silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    def values(self) -> dict[str, Any]:
        """Return the fields as arguments of a record; nested bodies become their records."""
        return {name: _record_of(value) for name, value in self}


def _record_of(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_record_of, value))
    return value.record() if isinstance(value, AnchorBody | EdgeBody) else value


# The memory to use: a team's by the team's name, this machine's as `local`.
TeamName = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class ScopeBody(Body):
    """How far a memory reaches."""

    kind: Annotated[ScopeKind, Field(strict=False)]
    id: SessionId | None = None

    def record(self, caller: Caller, session_id: str | None = None, loc: str = "scope.id") -> Scope:
        """Return the record; a session's scope without a name is the scope of the session that the caller names."""
        named = Scope(self.kind, self.id)
        if self.kind is ScopeKind.SESSION and self.id is None:
            named = Scope(self.kind, session_id)
        return scope_of_caller(named, caller, loc)


class ViewerFields(BaseModel):
    """The viewer of a request."""

    user: SessionId | None = None
    agent: SessionId | None = None
    session: SessionId | None = None
    task: SessionId | None = None

    def viewer(self, caller: Caller) -> Viewer:
        """Return the viewer as a record."""
        return viewer_of(Viewer(self.user, self.agent, self.session, self.task), caller)


class ViewerBody(Body, ViewerFields):
    """The viewer: a memory with an owner is visible only to its owner."""


class AnchorBody(Body):
    """The code that a memory is about; without a hash, the current hash of that code is used."""

    path: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PATH_CHARS), AfterValidator(_not_blank)]
    lines: Annotated[tuple[PositiveInt, PositiveInt], Field(strict=False)] | None = None
    content_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None

    @field_validator("lines")
    @classmethod
    def _check_ascending(cls, lines: tuple[int, int] | None) -> tuple[int, int] | None:
        if lines is not None and lines[0] > lines[1]:
            raise PydanticCustomError("descending", "must name the first line before the last")
        return lines

    def record(self) -> Anchor:
        """Return the record."""
        first, last = self.lines or (None, None)
        return Anchor(self.path, first, last, self.content_hash)


class EdgeBody(Body):
    """An edge to a stored memory. The order within a session needs no edges."""

    kind: Annotated[EdgeKind, Field(strict=False)]
    to: MemoryId

    @field_validator("kind")
    @classmethod
    def _refuse_derived(cls, kind: EdgeKind) -> EdgeKind:
        if kind is EdgeKind.NEXT_IN_SESSION:
            raise PydanticCustomError("derived", "next_in_session follows from session_id and occurred_at")
        return kind

    def record(self) -> EdgeDraft:
        """Return the record."""
        return EdgeDraft(self.kind, self.to)


class OptionalFieldsBody(Body):
    """The fields of a memory other than its text that a caller may set and change."""

    anchor: AnchorBody | None = None
    branch: Branch | None = None
    expires_at: Moment | None = None
    sensitivity: Annotated[Sensitivity, Field(strict=False)] | None = None


class DraftBody(OptionalFieldsBody):
    """A memory to store, from any source, and what an extractor knows about it."""

    content: Content
    kind: Annotated[Kind, Field(strict=False)] = Kind.FACT
    importance: Importance | None = None
    scope: ScopeBody | None = None
    tags: Annotated[Tags, Field(strict=False)] = ()
    metadata: Metadata = Field(default_factory=dict)
    session_id: SessionId | None = None
    occurred_at: Moment | None = None
    details: Metadata = Field(default_factory=dict)
    edges: Annotated[list[EdgeBody], Field(max_length=MAX_EDGES)] = Field(default_factory=list)
    value: Value | None = None
    evidence: Annotated[Paragraph, AfterValidator(_not_blank)] | None = None
    confidence: Importance | None = None
    disposition: Annotated[Disposition, Field(strict=False)] | None = None

    def draft(self, source: Source, caller: Caller) -> Draft:
        """Return the record."""
        values = {**self.values(), "source": source}
        values["extraction"] = Extraction(**{field.name: values.pop(field.name) for field in fields(Extraction)})
        if self.scope is not None:
            values["scope"] = self.scope.record(caller, self.session_id)
        if self.session_id is not None:
            values["session_id"] = session_of(self.session_id, caller)
        return Draft(**values)


class MemoryBody(DraftBody):
    """A memory to store. A request with an `id` that was sent before returns the first receipt and changes nothing."""

    id: ClientId | None = None
    source: GivenSource = Source.USER

    def record(self, caller: Caller) -> Draft:
        """Return the record."""
        return self.draft(self.source, caller)


class RememberBody(MemoryBody):
    """A memory to store; `to` names a team to store it for, otherwise it is stored on this machine."""

    team: TeamName | None = Field(default=None, alias="to")

    def values(self) -> dict[str, Any]:
        """Return the fields as arguments of a record."""
        return {name: value for name, value in super().values().items() if name != "team"}


class PatchBody(OptionalFieldsBody):
    """The fields of a memory to change."""

    pinned: bool | None = None
    importance: Importance | None = None
    tags: Annotated[Tags, Field(strict=False)] | None = None
    metadata: Metadata | None = None
    content: Content | None = None
    details: Metadata | None = None
    trust: Annotated[Trust, Field(strict=False)] | None = None

    def record(self) -> Revision:
        """Return the record."""
        return Revision(**self.values())


class RecallBody(Body):
    """A recall; an empty query lists memories by importance and recency."""

    query: Annotated[str, StringConstraints(max_length=MAX_QUERY_CHARS), AfterValidator(_not_blank)]
    k: Annotated[int, Field(ge=1, le=100), Whole] = 10
    kinds: Kinds = ()
    scope: ScopeBody | None = None
    session_id: SessionId | None = None
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None
    branch: Branch | None = None
    tags: Annotated[Tags, Field(strict=False)] = ()
    viewer: ViewerBody | None = None
    group: Literal["memory", "session"] = "memory"
    budget_ms: Annotated[int, Field(ge=1, le=10_000), Whole] | None = None
    explain: bool = False
    min_relevance: Annotated[float, Field(ge=0, le=1)] | None = None
    history: bool | None = None

    def filter(self, caller: Caller) -> Filter:
        """Return the filter of the results as a record.

        An agent gets superseded memories only with `history` or `as_of`, all other callers also without.
        """
        session = session_of(self.session_id, caller)
        history = self.as_of is not None or not caller.is_agent if self.history is None else self.history
        scope = None if self.scope is None else self.scope.record(caller, self.session_id)
        viewer = viewer_of(Viewer(), caller) if self.viewer is None else self.viewer.viewer(caller)
        return Filter(
            kinds=self.kinds,
            scope=None if scope is None else resolve_scope(scope, session, "scope.id"),
            session_id=session,
            since=self.since,
            until=self.until,
            as_of=self.as_of,
            branch=self.branch,
            tags=tuple(map(normalize_tag, self.tags)),
            current=not history,
            viewer=viewer,
        )


class QueryString(BaseModel):
    """A query string: all values are texts, and unknown names are rejected."""

    model_config = ConfigDict(extra="forbid")


class CursorQuery(QueryString):
    """The start of a page."""

    cursor: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")] | None = None

    @property
    def before(self) -> int | None:
        """Return the row number before which the page starts."""
        return None if self.cursor is None else int(self.cursor)


class PageQuery(CursorQuery):
    """A page of a list."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50


class ListQuery(PageQuery):
    """Filters of a list of memories; `scope` is `<kind>` or `<kind>:<id>`."""

    kind: Kind | None = None
    scope: ScopeText | None = None
    session_id: SessionId | None = None
    archived: bool = False
    branch: Branch | None = None
    tag: Tag | None = None
    chain: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    current: bool = False

    def filter(self, caller: Caller) -> Filter:
        """Return the filters as a record."""
        scope = None if self.scope is None else scope_of_text(self.scope, self.session_id, caller)
        kinds = () if self.kind is None else (self.kind,)
        return Filter(
            kinds=kinds,
            scope=scope,
            session_id=session_of(self.session_id, caller),
            archived=self.archived,
            branch=self.branch,
            tags=() if self.tag is None else (normalize_tag(self.tag),),
            chain=self.chain,
            current=self.current,
            viewer=viewer_of(Viewer(), caller),
        )


class ViewerQuery(PageQuery, ViewerFields):
    """A page of a list that depends on the viewer."""
