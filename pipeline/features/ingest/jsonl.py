"""Read memories as JSON, one object per line: in the format of the API, or complete pages of its lists.

Fields that only describe a memory's state in its store are ignored. Unknown fields become metadata.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PositiveInt,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails

from pipeline.features.ingest.fields import (
    Known,
    Progress,
    Reading,
    Readings,
    Skipped,
    digest_of_json,
    id_of,
    metadata_of,
    name_of,
    read_item,
    split_text,
    tags_of,
)
from pipeline.features.ingest.json_values import SkippedValue, build_source_error, open_source, value_of
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.records import (
    MAX_BRANCH_CHARS,
    MAX_PATH_CHARS,
    MAX_SESSION_ID_CHARS,
    MAX_TAGS,
    Anchor,
    Draft,
    Kind,
    Scope,
    ScopeKind,
    Sensitivity,
    Source,
)
from pipeline.text.normalize import normalize_json
from pipeline.text.redaction import redact_json
from pipeline.write.fact_placement import fact_key
from pipeline.write.fields import Moment, check_details, check_finite, check_metadata, check_tag, resolve_scope
from pipeline.write.prepare import check_branch

VERSION = "jsonl 1"
MAX_LINE_BYTES = 8 * 1024 * 1024

# Fields in the API's answers in addition to the written ones.
PASSED_OVER = frozenset(
    {"id", "source", "trust", "tier", "pinned", "updated_at", "content_hash", "recall_count", "merge_count"}
    | {"instructs", "provenance", "edges", "entities", "history", "stale", "workspace", "author", "shared_from"}
    | {"merged_into"}
)
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_EMPTY: tuple[Any, ...] = (None, "", [], {})
# Such a memory is no longer, or not yet, valid.
_STATES = {"archived_at": "archived", "candidate": "waits for review", "valid_to": "a fact that is no longer valid"}


_Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SESSION_ID_CHARS)]
_Tag = Annotated[str, AfterValidator(check_tag)]
_Object = Annotated[dict[str, JsonValue], AfterValidator(check_finite)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class _ScopeShape(_Shape):
    kind: ScopeKind
    id: _Name | None = None


class _AnchorShape(_Shape):
    path: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PATH_CHARS)]
    lines: tuple[PositiveInt, PositiveInt] | None = None
    content_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    stale: bool | None = None


class _MemoryShape(_Shape):
    content: Annotated[str, StringConstraints(min_length=1)]
    kind: Kind = Kind.FACT
    importance: Annotated[float, Field(ge=0, le=1)] | None = None
    scope: _ScopeShape | None = None
    tags: Annotated[tuple[_Tag, ...], Field(max_length=MAX_TAGS)] = ()
    metadata: _Object = Field(default_factory=dict)
    session_id: _Name | None = None
    occurred_at: Moment | None = None
    created_at: Moment | None = None
    valid_from: Moment | None = None
    details: _Object = Field(default_factory=dict)
    anchor: _AnchorShape | None = None
    branch: Annotated[str, StringConstraints(min_length=1, max_length=MAX_BRANCH_CHARS)] | None = None
    expires_at: Moment | None = None
    sensitivity: Sensitivity | None = None


def read_jsonl(path: Path, known: Known, progress: Progress) -> Readings:
    """Yield the memories of a file of JSON lines; raise InvalidField where no line is an object."""
    objects, total = 0, _size(path)
    with open_source(path) as file:
        for number, line in _lines(file):
            progress(min(file.tell(), total), total)
            for position, value in _objects(line, f"line {number}"):
                objects += not isinstance(value, SkippedValue)
                yield _read_object(known, value, position)
    progress(total, total)
    if total and not objects:
        raise build_source_error("contains no JSON objects, one per line")


def read_exported(path: Path, progress: Progress) -> Iterator[tuple[str, Mapping[str, Any] | SkippedValue]]:
    """Yield the memories of a file that Reverie exported, each with its line."""
    total = _size(path)
    with open_source(path) as file:
        for number, line in _lines(file):
            progress(min(file.tell(), total), total)
            yield from _objects(line, f"line {number}")


def is_export(path: Path) -> bool:
    """Return whether Reverie exported a file: whether its first line is a memory with an id and a workspace."""
    if not path.is_file():
        return False
    with open_source(path) as file:
        first = next(_lines(file), None)
    if first is None:
        return False
    return all(
        isinstance(entry, Mapping)
        and isinstance(entry.get("workspace"), str)
        and _ID.fullmatch(str(entry.get("id"))) is not None
        and "content_hash" in entry
        for _, entry in _objects(first[1], "")
    )


def _size(path: Path) -> int:
    if not path.is_file():
        raise build_source_error("is not a file")
    return path.stat().st_size


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Yield every line that is not blank with its number, None for a line that is too long."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                continue
            yield number, None
        elif line.strip():
            yield number, line


def _objects(line: bytes | None, position: str) -> Iterator[tuple[str, Mapping[str, Any] | SkippedValue]]:
    """Yield the memories of a line: one object, or those of a page."""
    value = SkippedValue(f"longer than {MAX_LINE_BYTES >> 20} MiB") if line is None else value_of(line, MAX_LINE_BYTES)
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        for number, item in enumerate(value["items"], 1):
            yield f"{position} #{number}", item if isinstance(item, dict) else SkippedValue("not an object")
    else:
        yield position, value if isinstance(value, dict | SkippedValue) else SkippedValue("not an object")


def _read_object(known: Known, entry: Mapping[str, Any] | SkippedValue, position: str) -> Reading:
    if isinstance(entry, SkippedValue):
        return Skipped(position, entry.reason)
    key = id_of(entry.get("id")) or position
    if state := next((name for field, name in _STATES.items() if entry.get(field)), None):
        return Skipped(key, state)
    written = {
        field: value
        for field, value in entry.items()
        if field not in PASSED_OVER and field not in _STATES and (field == "content" or value not in _EMPTY)
    }
    try:
        return read_item(known, key, digest_of_json(VERSION, written), _drafts(written))
    except InvalidField as error:
        problems = "; ".join(f"{problem.loc}: {problem.msg}" for problem in error.errors[:3])
        return Skipped(key, f"{position}: {problems}")


def _check_shape(written: Mapping[str, Any]) -> _MemoryShape:
    try:
        # Parsed as JSON, because only there a strict model accepts kinds as text.
        return _MemoryShape.model_validate_json(json.dumps(normalize_json(written)))
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False, include_context=False)
        raise InvalidField(*map(_problem, problems)) from error


def _drafts(written: Mapping[str, Any]) -> Iterator[Draft]:
    """Yield a memory, in several pieces if its text is long; raise InvalidField for values that cannot be stored."""
    shape = _check_shape(written)
    unknown = {field: value for field, value in written.items() if field not in _MemoryShape.model_fields}
    details = check_details(shape.kind, shape.details, "details")
    if shape.kind is Kind.KEYED_FACT:
        fact_key(details["subject"], details["attribute"], "details.")
    metadata, _ = redact_json(shape.metadata)
    check_metadata(metadata, "metadata")
    if unknown:
        metadata = metadata_of({**unknown, **metadata})
    scope = None if shape.scope is None else Scope(shape.scope.kind, shape.scope.id)
    at = shape.valid_from or shape.occurred_at or shape.created_at
    pieces = split_text(shape.content)
    if not pieces:
        raise InvalidField(FieldError("content", "must not be blank"))
    for piece in pieces:
        yield Draft(
            content=piece,
            kind=shape.kind,
            importance=shape.importance,
            scope=None if scope is None else resolve_scope(scope, shape.session_id, "scope.id"),
            tags=tags_of(shape.tags),
            metadata=metadata,
            session_id=shape.session_id,
            source=Source.IMPORT,
            occurred_at=at,
            details=details,
            anchor=None if shape.anchor is None else _anchor(shape.anchor),
            branch=check_branch(shape.branch, "branch"),
            expires_at=shape.expires_at,
            sensitivity=shape.sensitivity,
        )


def _anchor(shape: _AnchorShape) -> Anchor:
    first, last = shape.lines or (None, None)
    if first is not None and last is not None and first > last:
        raise InvalidField(FieldError("anchor.lines", "must name the first line before the last"))
    return Anchor(shape.path, first, last, shape.content_hash)


def _problem(error: ErrorDetails) -> FieldError:
    path = ".".join(name_of(str(step), 60) for step in error["loc"])
    return FieldError(path, error["msg"])
