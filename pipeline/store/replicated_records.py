"""Replicated records: memories and relations between memories, as keys and fields that peers exchange.

A key and its fields mean the same on every machine: memories are named by id, never by row number. Derived, counted
and machine-specific values are left out. An absent field is None. A deleted record has only one field.
"""

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.anchors import path_in_checkout
from pipeline.records import ScopeKind, Sensitivity, Tier
from pipeline.store import row_hashes

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
RELATION_FIELDS: Mapping[str, frozenset[str]] = {
    EDGE: frozenset({"made_by", "at"}),
    HISTORY: frozenset({"at", "event", "content", "detail", "author"}),
    VERDICT: frozenset({"state", "settled_at"}),
    ANSWER: frozenset({"session_id", "agent_id", "at", "followed", "note", "answered_at", "withheld"}),
    REFUSAL: frozenset({"how", "at"}),
}


def read(db: Connection, keys: Iterable[Key]) -> dict[Key, Fields]:
    """Return the fields of each key; GONE if there is no such record; nothing for a damaged row."""
    by_kind: dict[str, list[Key]] = {}
    for key in keys:
        by_kind.setdefault(key.kind, []).append(key)
    records: dict[Key, Fields] = {}
    for kind, some in by_kind.items():
        records |= dict.fromkeys(some, GONE)
        for key, fields in _READERS[kind](db, some):
            if fields is None:
                records.pop(key, None)
            elif key in records:
                records[key] = {name: value for name, value in fields.items() if value is not None}
    return records


def list_keys(db: Connection) -> list[Key]:
    """List all keys in an order that is the same on every machine."""
    return sorted(Key(*row) for row in db.execute(_ALL_KEYS))


_JOB_EDGES = "('edges-job', 'reflect')"
_ALL_KEYS = f"""
    SELECT 'memory', id, '', '' FROM memory
    UNION SELECT 'edge', a.id, b.id, e.kind FROM edge e JOIN memory a ON a.seq = e.from_seq
        JOIN memory b ON b.seq = e.to_seq WHERE e.made_by NOT IN {_JOB_EDGES}
    UNION SELECT 'history', m.id, coalesce(a.id, ''), h.uid FROM history h JOIN memory m ON m.seq = h.memory_seq
        LEFT JOIN memory a ON a.seq = h.about_seq
    UNION SELECT 'verdict', min(a.id, b.id), max(a.id, b.id), '' FROM pair p JOIN memory a ON a.seq = p.older_seq
        JOIN memory b ON b.seq = p.newer_seq WHERE p.state <> 'waiting'
    UNION SELECT 'answer', m.id, '', i.id FROM impression i JOIN memory m ON m.seq = i.memory_seq
        WHERE i.followed IS NOT NULL
    UNION SELECT 'refusal', memory_id, '', mark FROM refusal WHERE how <> 'purged'
"""  # noqa: S608 - constant text

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


def _read_edges(db: Connection, keys: Sequence[Key]) -> Rows:
    rows = db.execute(
        "SELECT a.id, b.id, e.kind, e.made_by, e.at FROM memory a JOIN edge e ON e.from_seq = a.seq "  # noqa: S608
        f"JOIN memory b ON b.seq = e.to_seq WHERE a.id IN {_GIVEN} AND e.made_by NOT IN {_JOB_EDGES}",
        _ids(key.memory_id for key in keys),
    )
    for memory_id, other_id, kind, made_by, at in rows:
        yield Key(EDGE, memory_id, other_id, kind), {"made_by": made_by, "at": at}


def read_edges(db: Connection, memory_ids: Iterable[str]) -> Rows:
    """Return the edges from some memories, except those that a job derives again."""
    return _read_edges(db, [Key(EDGE, memory_id) for memory_id in memory_ids])


def _read_history(db: Connection, keys: Sequence[Key]) -> Rows:
    rows = db.execute(
        "SELECT m.id, coalesce(a.id, ''), h.uid, h.at, h.event, h.content, h.detail, h.author FROM history h "  # noqa: S608
        f"JOIN memory m ON m.seq = h.memory_seq LEFT JOIN memory a ON a.seq = h.about_seq WHERE h.uid IN {_GIVEN}",
        _ids(key.name for key in keys),
    )
    for memory_id, other_id, uid, at, event, content, detail, author in rows:
        fields = {"at": at, "event": event, "content": content, "detail": json.loads(detail), "author": author}
        yield Key(HISTORY, memory_id, other_id, uid), fields


def _read_verdicts(db: Connection, keys: Sequence[Key]) -> Rows:
    rows = db.execute(
        "SELECT min(a.id, b.id), max(a.id, b.id), p.state, p.settled_at FROM memory a "  # noqa: S608
        "JOIN pair p ON p.older_seq = a.seq OR p.newer_seq = a.seq "
        "JOIN memory b ON b.seq = CASE WHEN p.older_seq = a.seq THEN p.newer_seq ELSE p.older_seq END "
        f"WHERE a.id IN {_GIVEN} AND p.state <> 'waiting'",
        _ids(key.memory_id for key in keys),
    )
    for memory_id, other_id, state, settled_at in rows:
        yield Key(VERDICT, memory_id, other_id), {"state": state, "settled_at": settled_at}


def _read_answers(db: Connection, keys: Sequence[Key]) -> Rows:
    rows = db.execute(
        "SELECT m.id, i.id, i.session_id, i.agent_id, i.at, i.followed, i.note, i.answered_at, i.withheld "  # noqa: S608
        f"FROM impression i JOIN memory m ON m.seq = i.memory_seq WHERE i.id IN {_GIVEN} AND i.followed IS NOT NULL",
        _ids(key.name for key in keys),
    )
    names = ("session_id", "agent_id", "at", "followed", "note", "answered_at", "withheld")
    for memory_id, name, *values in rows:
        yield Key(ANSWER, memory_id, "", name), dict(zip(names, values, strict=True))


def _read_refusals(db: Connection, keys: Sequence[Key]) -> Rows:
    rows = db.execute(
        f"SELECT memory_id, mark, how, at FROM refusal WHERE mark IN {_GIVEN} AND how <> 'purged'",  # noqa: S608
        _ids(key.name for key in keys),
    )
    for memory_id, mark, how, at in rows:
        yield Key(REFUSAL, memory_id, "", mark), {"how": how, "at": at}


_READERS: Mapping[str, Callable[[Connection, Sequence[Key]], Rows]] = {
    MEMORY: _read_memories,
    EDGE: _read_edges,
    HISTORY: _read_history,
    VERDICT: _read_verdicts,
    ANSWER: _read_answers,
    REFUSAL: _read_refusals,
}


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
    row = db.execute("SELECT seq FROM memory WHERE id = ?", (memory_id,)).fetchone()
    return None if row is None else int(row[0])


def set_merged_into(db: Connection, memory_id: str, survivor_id: str | None) -> None:
    """Set the survivor of a merged memory, if it is here."""
    rows = db.execute(
        "UPDATE memory SET merged_into = ? WHERE id = ? RETURNING seq", (find_seq(db, survivor_id), memory_id)
    ).fetchall()
    for (seq,) in rows:
        row_hashes.update_on_commit(db, seq)


def count_confirmations(db: Connection, memory_id: str) -> None:
    """Set a memory's number of repetitions from its history."""
    db.execute(
        "UPDATE memory SET merge_count = (SELECT count(*) FROM history WHERE memory_seq = memory.seq "
        "AND event = 'merged') WHERE id = ?",
        (memory_id,),
    )


def put_relation(db: Connection, key: Key, fields: Fields) -> None:
    """Write a relation between memories; do nothing if one of them is not here."""
    seq, other = find_seq(db, key.memory_id), find_seq(db, key.other_id)
    if seq is not None and (other is not None or not key.other_id):
        _WRITERS[key.kind](db, key, fields, seq, other)


def _put_edge(db: Connection, key: Key, fields: Fields, seq: int, other: int | None) -> None:
    db.execute("DELETE FROM edge WHERE from_seq = ? AND kind = ? AND to_seq = ?", (seq, key.name, other))
    if fields != GONE:
        db.execute("INSERT INTO edge VALUES (?, ?, ?, ?, ?)", (seq, key.name, other, fields["made_by"], fields["at"]))


def _put_history(db: Connection, key: Key, fields: Fields, seq: int, other: int | None) -> None:
    db.execute("DELETE FROM history WHERE uid = ? AND memory_seq = ?", (key.name, seq))
    if fields != GONE:
        detail = json.dumps(fields["detail"], ensure_ascii=False)
        db.execute(
            "INSERT INTO history (memory_seq, at, event, content, detail, about_seq, uid, author) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (seq, fields["at"], fields["event"], fields.get("content"), detail, other, key.name, fields.get("author")),
        )


def _put_verdict(db: Connection, _key: Key, fields: Fields, seq: int, other: int | None) -> None:
    assert other is not None
    older, newer = sorted((seq, other))
    if fields == GONE:
        db.execute("DELETE FROM pair WHERE older_seq = ? AND newer_seq = ?", (older, newer))
        return
    db.execute(
        "INSERT INTO pair (id, older_seq, newer_seq, cosine, reasons, state, at, settled_at) "
        "VALUES (?, ?, ?, 0, '[]', ?, ?, ?) "
        "ON CONFLICT (older_seq, newer_seq) DO UPDATE SET state = excluded.state, settled_at = excluded.settled_at",
        (secrets.token_hex(13), older, newer, fields["state"], fields.get("settled_at"), fields.get("settled_at")),
    )


def _put_answer(db: Connection, key: Key, fields: Fields, seq: int, _other: int | None) -> None:
    if fields == GONE:
        db.execute(
            "UPDATE impression SET followed = NULL, note = NULL, answered_at = NULL WHERE id = ?",
            (key.name,),
        )
        return
    names = sorted(RELATION_FIELDS[ANSWER])
    marks = ", ".join("?" * (len(names) + 2))
    settings = ", ".join(f"{name} = excluded.{name}" for name in names)
    db.execute(
        f"INSERT INTO impression (id, memory_seq, {', '.join(names)}) VALUES ({marks}) "  # noqa: S608 - names of columns
        f"ON CONFLICT (id) DO UPDATE SET {settings}",
        (key.name, seq, *(fields.get(name, 0 if name == "withheld" else None) for name in names)),
    )


def _put_refusal(db: Connection, key: Key, fields: Fields, _seq: int, _other: int | None) -> None:
    if fields == GONE:
        db.execute("DELETE FROM refusal WHERE mark = ? AND memory_id = ?", (key.name, key.memory_id))
        return
    db.execute(
        "INSERT INTO refusal (mark, memory_id, how, at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (mark, memory_id) DO UPDATE SET how = excluded.how, at = excluded.at",
        (key.name, key.memory_id, fields["how"], fields["at"]),
    )


_WRITERS: Mapping[str, Callable[[Connection, Key, Fields, int, int | None], None]] = {
    EDGE: _put_edge,
    HISTORY: _put_history,
    VERDICT: _put_verdict,
    ANSWER: _put_answer,
    REFUSAL: _put_refusal,
}
