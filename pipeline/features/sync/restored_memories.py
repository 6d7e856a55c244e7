"""Restore exported memories under their own ids, with their times, state, history and relations.

An export is a file that anyone can write, so a memory comes back as imported evidence. Only the caller can say that the
export is their own; then it keeps its source, its trust and its author. A stored or purged memory stays as it is.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any

from pipeline.features.sync import merge
from pipeline.features.sync.signed import check_record
from pipeline.kernel.errors import Conflict, FieldError, InvalidField, PeerRefused
from pipeline.kernel.records import Draft, Kind, Memory, Scope, ScopeKind, Sensitivity, Source
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import clock, memories, oplog, refusals, replicated_records
from pipeline.kernel.store.log_start import start_log
from pipeline.kernel.store.oplog import Operation
from pipeline.kernel.store.replicated_records import EDGE, HISTORY, MEMORY, Key
from pipeline.kernel.times import normalize_time
from pipeline.kernel.workspace import Workspace
from pipeline.text.normalize import normalize_json
from pipeline.text.redaction import redact, redact_json
from pipeline.write.accept import is_incognito
from pipeline.write.prepare import prepare

# Fields that are stored as they are, after a check of their form.
_STATE = ("created_at", "updated_at", "archived_at", "valid_from", "valid_to", "merged_into")
_FLAGS = ("pinned", "candidate")
# Fields that give a memory more weight, or name another author.
_STANDING = ("source", "trust", "author", "shared_from")
_MOMENTS = ("created_at", "updated_at", "occurred_at", "archived_at", "valid_from", "valid_to", "expires_at")

# Number of memories that are restored in one batch.
AT_ONCE = 500

Records = dict[Key, Mapping[str, Any]]


@dataclass(slots=True)
class Restored:
    """Counts of restored and known memories, and the reasons for rejected entries."""

    restored: int = 0
    known: int = 0
    refused: list[str] = field(default_factory=list)


@dataclass(slots=True)
class MemoryRestore:
    """Restore exported memories of one workspace: `add` each, then `finish`.

    Raises ReadOnly or Conflict for a workspace in which nothing is stored.
    """

    workspace: Workspace
    counts: Restored
    is_own: bool
    _waiting: dict[str, tuple[str, Memory, Records]] = field(default_factory=dict)
    _edges: Records = field(default_factory=dict)
    _ids: set[str] = field(default_factory=set)

    def add(self, place: str, entry: Mapping[str, Any]) -> None:
        """Restore an exported memory, which is at a named place in the export."""
        try:
            memory, records = _describe(entry, is_own=self.is_own)
        except (InvalidField, PeerRefused) as error:
            self.counts.refused.append(f"{place}: {error}")
            return
        self._waiting[memory.id] = place, memory, records
        if len(self._waiting) >= AT_ONCE:
            self._store()

    def finish(self) -> None:
        """Restore the remaining memories, and the edges between restored memories."""
        self._store()
        # An edge to a memory that was here before could hide it.
        self._merge({key: fields for key, fields in self._edges.items() if key.other_id in self._ids})

    def _store(self) -> None:
        policy = self.workspace.write_policy()
        if policy.incognito:
            raise Conflict(f"Nothing was stored: workspace {self.workspace.id} is incognito (setting incognito).")
        if not self._waiting:
            return
        database = self.workspace.create()
        start_log(database)
        records: Records = {}
        with database.read() as db:
            purged = oplog.list_purged(db, self._waiting)
            for memory_id, (place, memory, described) in self._waiting.items():
                if memory_id in self._ids or memories.get(db, memory_id) is not None:
                    self.counts.known += 1
                elif problem := _find_problem(db, memory, policy, purged):
                    self.counts.refused.append(f"{place}: {problem}")
                else:
                    self._ids.add(memory_id)
                    records |= described
        self._waiting = {}
        self._edges |= {key: fields for key, fields in records.items() if key.kind == EDGE}
        self._merge({key: fields for key, fields in records.items() if key.kind != EDGE})
        self.counts.restored += sum(key.kind == MEMORY for key in records)

    def _merge(self, records: Records) -> None:
        if not records:
            return
        database = self.workspace.database
        with database.write() as db:
            stamps = clock.send(db, len(records), clock.wall_ms())
        operations = [Operation(stamp, *record) for stamp, record in zip(stamps, records.items(), strict=True)]
        merge.merge(database, operations)


def _find_problem(db: Connection, memory: Memory, policy: WritePolicy, purged: Collection[str]) -> str | None:
    """Return why a memory may not be stored."""
    if memory.id in purged or policy.is_purged(memory.content_hash) or refusals.find(db, memory.content_hash):
        return "this text was deleted or rejected here"
    return "its session is incognito" if is_incognito(db, memory, policy) else None


def _describe(entry: Mapping[str, Any], *, is_own: bool) -> tuple[Memory, Records]:
    """Return a memory, and it with its history and its edges as records.

    Raises InvalidField or PeerRefused for an invalid field.
    """
    memory = prepare(_draft(entry)).memory
    fields = _describe_memory(memory, entry)
    if is_own:
        fields |= {name: entry[name] for name in _STANDING if entry.get(name) is not None}
    records: Records = {Key(MEMORY, memory.id): fields}
    for number, past in enumerate(_list_objects(entry, "history")):
        name = hashlib.sha256(f"{memory.id} {number} {past.get('at')}".encode()).hexdigest()[:32]
        records[Key(HISTORY, memory.id, "", name)] = _describe_past(past, is_own=is_own)
    for edge in _list_objects(entry, "edges"):
        key = Key(EDGE, memory.id, str(edge.get("to")), str(edge.get("kind")))
        records[key] = {"made_by": edge.get("made_by"), "at": edge.get("at")}
    for key, values in records.items():
        check_record(key, values)
    try:
        json.dumps(list(records.values()), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidField(FieldError("memory", "has a value that JSON does not have")) from error
    return memory, records


def _draft(entry: Mapping[str, Any]) -> Draft:
    """Return the parts of a memory that every write validates and redacts."""
    try:
        scope = entry.get("scope") or {}
        importance = entry.get("importance")
        return Draft(
            content=_require_text(entry, "content"),
            id=_require_text(entry, "id"),
            kind=Kind(entry.get("kind", Kind.FACT)),
            importance=None if importance is None else float(importance),
            scope=Scope(ScopeKind(scope.get("kind", ScopeKind.WORKSPACE)), scope.get("id")),
            tags=tuple(tag for tag in entry.get("tags") or () if isinstance(tag, str)),
            metadata=dict(entry.get("metadata") or {}),
            session_id=entry.get("session_id"),
            source=Source.IMPORT,
            occurred_at=_read_moment(entry, "occurred_at"),
            details=dict(entry.get("details") or {}),
            branch=entry.get("branch"),
            expires_at=_read_moment(entry, "expires_at"),
            sensitivity=Sensitivity(entry["sensitivity"]) if entry.get("sensitivity") else None,
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise InvalidField(FieldError("memory", f"has a field that cannot be read ({error})")) from error


def _require_text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str):
        raise InvalidField(FieldError(name, "must be a text"))
    return value


def _describe_memory(memory: Memory, entry: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "content": memory.content,
        "kind": memory.kind,
        "scope_kind": memory.scope.kind,
        "scope_id": memory.scope.id,
        "source": memory.source,
        "trust": memory.trust,
        "session_id": memory.session_id,
        "occurred_at": memory.occurred_at,
        "created_at": memory.created_at,
        "updated_at": memory.created_at,
        "branch": memory.branch,
        "expires_at": memory.expires_at,
        "sensitivity": memory.sensitivity,
        "importance": memory.importance,
        "metadata": memory.metadata or None,
        "anchor": _describe_anchor(entry.get("anchor")),
        **{f"{replicated_records.TAG}{tag}": True for tag in memory.tags},
        **{f"{replicated_records.DETAIL}{name}": value for name, value in memory.details.items()},
    }
    if memory.key is not None:
        fields |= {"subject": memory.key.subject, "attribute": memory.key.attribute, "valid_from": memory.valid_from}
    for name in _STATE:
        value = _read_moment(entry, name) if name in _MOMENTS else entry.get(name)
        fields |= {} if value is None else {name: value}
    fields |= {name: True for name in _FLAGS if entry.get(name) is True}
    return {name: value for name, value in fields.items() if value is not None}


def _describe_anchor(anchor: Any) -> dict[str, Any] | None:
    """Return an anchor as it is stored; its file is not read, since any path can be in an export."""
    if anchor is None:
        return None
    lines = anchor.get("lines") if isinstance(anchor, Mapping) else None
    first, last = lines if isinstance(lines, list | tuple) and len(lines) == 2 else (None, None)
    numbers_fit = lines is None or (isinstance(first, int) and isinstance(last, int) and 1 <= first <= last)
    text_hash = anchor.get("content_hash") if isinstance(anchor, Mapping) else None
    if not isinstance(anchor, Mapping) or not numbers_fit or not isinstance(text_hash, str | None):
        raise InvalidField(FieldError("anchor", "must have a path, and the first and the last line"))
    path = redact(str(anchor.get("path"))).text
    return {"path": path, "first_line": first, "last_line": last, "content_hash": text_hash}


def _describe_past(past: Mapping[str, Any], *, is_own: bool) -> dict[str, Any]:
    content, author = past.get("content"), past.get("author") if is_own else None
    detail = past.get("detail")
    fields = {
        "at": past.get("at"),
        "event": past.get("event"),
        "content": redact(content).text if isinstance(content, str) else content,
        "detail": redact_json(normalize_json(detail))[0] if isinstance(detail, Mapping) else {},
        "author": author,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _list_objects(entry: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    values = entry.get(name)
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list | tuple) else []


def _read_moment(entry: Mapping[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if value is None:
        return None
    try:
        return normalize_time(str(value))
    except ValueError as error:
        raise InvalidField(FieldError(name, str(error))) from error
