"""Replicated records: memories and relations between memories, as keys and fields that peers exchange.

A key and its fields mean the same on every machine: memories are named by id, never by row number. Derived, counted
and machine-specific values are left out. An absent field is None. A deleted record has only one field.
"""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.kernel.anchors import path_in_checkout
from pipeline.kernel.records import ScopeKind, Sensitivity, Tier
from pipeline.kernel.store import row_hashes
from pipeline.kernel.store.rows import Relation, find_row
from pipeline.kernel.store.tables import WORKSPACE

MEMORY, EDGE, HISTORY, VERDICT, ANSWER, REFUSAL = "memory", "edge", "history", "verdict", "answer", "refusal"
PURGE = "purge"
TAG, DETAIL = "tag:", "details."
GONE: Mapping[str, Any] = {"gone": True}

Fields = Mapping[str, Any]


class Key(NamedTuple):
    """The subject of an operation; `name` is the other memory's id for relations, or a name among several."""

    kind: str
    memory_id: str
    other_id: str = ""
    name: str = ""


_PLAIN = (
    "content",
    "kind",
    "scope_kind",
    "scope_id",
    "source",
    "trust",
    "session_id",
    "created_at",
    "occurred_at",
    "updated_at",
    "archived_at",
    "branch",
    "subject",
    "attribute",
    "valid_from",
    "valid_to",
    "expires_at",
    "sensitivity",
    "author",
    "shared_from",
)
_FLAGS = ("pinned", "candidate")
# Default values; a field with its default value is left out.
_DEFAULTS = {"scope_id": "", "sensitivity": Sensitivity.NORMAL.value, "scope_kind": ScopeKind.WORKSPACE.value}


RELATIONS: Mapping[str, Relation] = {
    table.replicated.kind: table.replicated for table in WORKSPACE if table.replicated is not None
}


def read(db: Connection, keys: Iterable[Key]) -> dict[Key, Fields]:
    """Return the fields of each key; GONE if there is no such record; nothing for a damaged row."""
    by_kind: dict[str, list[Key]] = {}
    for key in keys:
        by_kind.setdefault(key.kind, []).append(key)
    records: dict[Key, Fields] = {}
    for kind, some in by_kind.items():
        records |= dict.fromkeys(some, GONE)
        for key, fields in _read_memories(db, some) if kind == MEMORY else _read_relations(db, kind, some):
            if fields is None:
                records.pop(key, None)
            elif key in records:
                records[key] = {name: value for name, value in fields.items() if value is not None}
    return records


def list_keys(db: Connection) -> list[Key]:
    """List all keys in an order that is the same on every machine."""
    return sorted(Key(*row) for row in db.execute(_ALL_KEYS))


_ALL_KEYS = " UNION ".join(
    ["SELECT 'memory', id, '', '' FROM memory"]
    + [f"SELECT '{kind}', {relation.key} FROM {relation.source}" for kind, relation in RELATIONS.items()]  # noqa: S608
)
Rows = Iterable[tuple[Key, Fields | None]]


def _ids(values: Iterable[str]) -> tuple[str]:
    return (json.dumps(sorted(set(values))),)


_GIVEN = "(SELECT value FROM json_each(?))"


def _read_memories(db: Connection, keys: Sequence[Key]) -> Rows:
    rows = db.execute(
        f"SELECT m.id, m.tags, m.details, m.metadata, m.anchor, coalesce(m.given_importance, m.importance), "  # noqa: S608
        f"(SELECT id FROM memory s WHERE s.seq = m.merged_into), {', '.join(f'm.{name}' for name in _FLAGS)}, "
        f"{', '.join(f'm.{name}' for name in _PLAIN)} FROM memory m WHERE m.id IN {_GIVEN}",
        _ids(key.memory_id for key in keys),
    )
    for memory_id, tags, details, metadata, anchor, importance, merged_into, *rest in rows:
        try:
            read = [json.loads(text) for text in (tags, details, metadata, anchor or "null")]
        except ValueError:
            yield Key(MEMORY, memory_id), None
            continue
        flags, plain = rest[: len(_FLAGS)], rest[len(_FLAGS) :]
        fields = {name: value for name, value in zip(_PLAIN, plain, strict=True) if value != _DEFAULTS.get(name)}
        fields |= {name: True for name, flag in zip(_FLAGS, flags, strict=True) if flag}
        fields |= {f"{TAG}{tag}": True for tag in read[0]}
        fields |= {f"{DETAIL}{name}": value for name, value in read[1].items()}
        fields["importance"] = importance
        if metadata != "{}":
            fields["metadata"] = read[2]
        if anchor is not None:
            fields["anchor"] = _without_folder(read[3])
        if merged_into is not None:
            fields["merged_into"] = merged_into
        yield Key(MEMORY, memory_id), fields


def _without_folder(anchor: dict[str, Any]) -> dict[str, Any]:
    """Return an anchor without the machine-specific folder of its checkout."""
    fields = {name: value for name, value in anchor.items() if name != "checkout"}
    if PurePath(fields["path"]).is_absolute():
        fields["path"] = path_in_checkout(fields["path"], anchor.get("checkout"))
    return fields


def _read_relations(db: Connection, kind: str, keys: Sequence[Key]) -> Rows:
    relation = RELATIONS[kind]
    columns = ", ".join(f"r.{field}" for field in relation.fields)
    rows = db.execute(
        f"SELECT {relation.key}, {columns} FROM {relation.source} AND {relation.chosen}",  # noqa: S608 - constant text
        _ids(key.name if relation.is_named else key.memory_id for key in keys),
    )
    for memory_id, other_id, name, *values in rows:
        fields = dict(zip(relation.fields, values, strict=True))
        if "detail" in fields:
            fields["detail"] = json.loads(fields["detail"])
        yield Key(kind, memory_id, other_id, name), fields


def read_edges(db: Connection, memory_ids: Iterable[str]) -> Rows:
    """Return the edges from some memories, except those that a job derives again."""
    return _read_relations(db, EDGE, [Key(EDGE, memory_id) for memory_id in memory_ids])


# Write peers' records; the caller updates the indexes.


def put_memory(db: Connection, memory_id: str, fields: Fields, derived: Mapping[str, Any], tier: Tier) -> int:
    """Write a memory's row with its fields and derived values; return its row number."""
    row = db.execute("SELECT seq, tags, anchor FROM memory WHERE id = ?", (memory_id,)).fetchone()
    columns = {name: fields.get(name, _DEFAULTS.get(name)) for name in _PLAIN}
    columns |= {name: int(bool(fields.get(name))) for name in _FLAGS}
    columns["tags"] = json.dumps(_tags(fields, [] if row is None else json.loads(row[1])))
    details = {name.removeprefix(DETAIL): value for name, value in fields.items() if name.startswith(DETAIL)}
    columns["details"] = json.dumps(details, ensure_ascii=False)
    columns["metadata"] = json.dumps(fields.get("metadata", {}), ensure_ascii=False)
    columns["anchor"] = _place_anchor(fields.get("anchor"), None if row is None else row[2])
    columns["merged_into"] = find_seq(db, fields.get("merged_into"))
    columns |= derived
    if row is None:
        columns |= {"id": memory_id, "importance": fields["importance"], "tier": tier}
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        statement = f"INSERT INTO memory ({names}) VALUES ({marks}) RETURNING seq"  # noqa: S608 - names of columns
        seq = int(db.execute(statement, tuple(columns.values())).fetchone()[0])
        row_hashes.update_on_commit(db, seq)
        return seq
    settings = ", ".join(f"{name} = ?" for name in columns)
    # A decayed memory continues to decay from its given importance, unless that changed.
    db.execute(
        f"UPDATE memory SET {settings}, "  # noqa: S608 - names of columns
        "importance = CASE WHEN coalesce(given_importance, importance) = ? THEN importance ELSE ? END, "
        "given_importance = CASE WHEN coalesce(given_importance, importance) = ? THEN given_importance ELSE ? END "
        "WHERE seq = ?",
        (*columns.values(), *[fields["importance"]] * 4, row[0]),
    )
    row_hashes.update_on_commit(db, row[0])
    return int(row[0])


def _tags(fields: Fields, known: Sequence[str]) -> list[str]:
    tags = [name.removeprefix(TAG) for name in fields if name.startswith(TAG)]
    return [*(tag for tag in known if tag in tags), *(tag for tag in tags if tag not in known)]


def _place_anchor(anchor: dict[str, Any] | None, known: str | None) -> str | None:
    """Return an anchor in stored form; a known anchor keeps its folder."""
    if anchor is None:
        return None
    if known is not None and _without_folder(json.loads(known)) == anchor:
        return known
    return json.dumps(anchor, ensure_ascii=False)


# Machine-specific values: a bundle carries them to a new data directory.
_LOCAL = ("id", "importance", "given_importance", "tier", "recall_count", "recalled_at", "anchor")


def read_local_values(db: Connection) -> Iterator[dict[str, Any]]:
    """Iterate over the machine-specific values of each memory."""
    rows = db.execute(f"SELECT {', '.join(_LOCAL)} FROM memory ORDER BY id")  # noqa: S608 - names of columns
    return (dict(zip(_LOCAL, row, strict=True)) for row in rows)


def write_local_values(db: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the machine-specific values of memories."""
    settings = ", ".join(f"{name} = ?" for name in _LOCAL[1:])
    statement = f"UPDATE memory SET {settings} WHERE id = ? RETURNING seq"  # noqa: S608 - names of columns
    for row in rows:
        for (seq,) in db.execute(statement, (*(row.get(name) for name in _LOCAL[1:]), row.get("id"))).fetchall():
            row_hashes.update_on_commit(db, seq)


def find_seq(db: Connection, memory_id: str | None) -> int | None:
    """Return the row number of a memory, None if there is none."""
    return find_row(db, int, "SELECT seq FROM memory WHERE id = ?", (memory_id,))


def set_merged_into(db: Connection, memory_id: str, survivor_id: str | None) -> None:
    """Set the survivor of a merged memory, if it is here."""
    rows = db.execute(
        "UPDATE memory SET merged_into = ? WHERE id = ? RETURNING seq", (find_seq(db, survivor_id), memory_id)
    ).fetchall()
    for (seq,) in rows:
        row_hashes.update_on_commit(db, seq)


def ignore_missing_survivors(
    db: Connection, states: Mapping[Key, Fields], logged: Mapping[Key, dict[str, Any]]
) -> None:
    """Take survivors of merges out of logged fields that have not arrived or are gone: no row can name them.

    Otherwise this machine would log for all others that a memory is not merged. Restoring the memory ends the merge.
    """
    for key, fields in logged.items():
        is_as_logged = states.get(key, {}).get("archived_at") == fields.get("archived_at")
        if "merged_into" in fields and is_as_logged and find_seq(db, fields["merged_into"]) is None:
            del fields["merged_into"]


def count_confirmations(db: Connection, memory_id: str) -> None:
    """Set a memory's number of repetitions from its history."""
    db.execute(
        "UPDATE memory SET merge_count = (SELECT count(*) FROM history WHERE memory_seq = memory.seq "
        "AND event = 'merged') WHERE id = ?",
        (memory_id,),
    )


def put_relation(db: Connection, key: Key, fields: Fields) -> None:
    """Write a relation between memories; do nothing if one of them is not here."""
    relation, seq, other_seq = RELATIONS[key.kind], find_seq(db, key.memory_id), find_seq(db, key.other_id)
    if seq is None or (other_seq is None and key.other_id):
        return
    older_seq, newer_seq = sorted((seq, other_seq or seq))
    values = {
        **key._asdict(),
        "seq": seq,
        "other_seq": other_seq,
        "older_seq": older_seq,
        "newer_seq": newer_seq,
        "new_id": secrets.token_hex(13),
        **{name: fields.get(name) for name in relation.fields},
    }
    if "detail" in fields:
        values["detail"] = json.dumps(fields["detail"], ensure_ascii=False)
    for statement in (relation.drop,) if fields == GONE else relation.put:
        db.execute(statement, values)
