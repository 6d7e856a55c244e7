"""The memory table: one row per memory; archiving sets a date, purging deletes the row."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter, itemgetter
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.kernel.records import Filter, Memory, OptionalFields, Scope, ScopeKind, Sensitivity, Viewer
from pipeline.kernel.store import row_hashes
from pipeline.kernel.store.memory_columns import CODECS, COLUMNS, FIELDS, NAMES, typed_damage
from pipeline.kernel.store.rows import DELETE, Table, list_rows
from pipeline.kernel.store.visibility import condition, lasting_condition, owned_condition, reach_condition

_VALUES, _CODECS = attrgetter(*FIELDS), [CODECS.get(name) for name in FIELDS]
_SEQ, _UPDATED_AT = NAMES.index("seq"), NAMES.index("updated_at")
# The store numbers the rows.
_GIVEN = [name for name in NAMES if name != "seq"]
_INSERT = f"INSERT INTO memory ({', '.join(_GIVEN)}, row_hash) VALUES ({', '.join('?' * len(_GIVEN))}, ?) RETURNING seq"  # noqa: S608 - constant columns
# The hashed ones of the given columns, and None for the others, which a new memory does not have.
_hashed_values = itemgetter(*(_GIVEN.index(name) if name in _GIVEN else len(_GIVEN) for name in row_hashes.COLUMNS))
# The positions of decoded values and of joined columns, the last first because joining shortens the row.
_DECODED = [(NAMES.index(c.columns[0]), c.decode) for c in CODECS.values() if len(c.columns) == 1]
_JOINED = sorted(((NAMES.index(c.columns[0]), c.decode) for c in CODECS.values() if len(c.columns) == 2), reverse=True)
# The first fields of the record, passed by position.
_OPTIONAL_FIELDS = FIELDS[: len(fields(OptionalFields))]
_OPTIONAL = len(_OPTIONAL_FIELDS)
_AMONG = "seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
_ENDS_SO = "substr(id, length(id) - length(?) + 1) = ?"
# Columns of new memories, and the importance before decay, which no reader needs.
_EDITABLE = {*FIELDS, "given_importance"} - {"seq", "id", "scope", "key", "created_at", "updated_at", "archived_at"}
# Maximum length of a speaker's name.
OPENING_CHARS = 48


class RankingRow(NamedTuple):
    """The data that ranks a memory in addition to its relevance.

    `visible` means visible in the entire workspace and not archived, `days` is its Julian day, `opening` the start of
    its text, which may name a speaker.
    """

    seq: int
    visible: bool
    importance: float
    days: float
    kind: str
    opening: str


def insert(db: Connection, memory: Memory) -> int:
    """Insert a new memory and return its row number."""
    values: list[Any] = []
    for value, codec in zip(_VALUES(memory), _CODECS, strict=True):
        values += (value,) if codec is None else codec.encode(value)
    values[_UPDATED_AT] = memory.created_at
    del values[_SEQ]
    values.append(row_hashes.compute(_hashed_values([*values, None])))
    return int(db.execute(_INSERT, values).fetchone()[0])


def find_active_text(db: Connection, scope: Scope, content_hash: str) -> Memory | None:
    """Return the active memory of the same scope with exactly this text."""
    # Nearly every write finds none, and a query for all columns takes three times as long as this one.
    row = db.execute(
        "SELECT seq FROM memory WHERE scope_kind = ? AND scope_id = ? AND content_hash = ? AND archived_at IS NULL "
        "AND subject IS NULL",
        (scope.kind, scope.id or "", content_hash),
    ).fetchone()
    return None if row is None else select_one(db, "seq = ?", row)


def get(db: Connection, memory_id: str) -> Memory | None:
    """Return a memory by id, archived or not."""
    return select_one(db, "id = ?", (memory_id,))


def list_ending_in(db: Connection, short_id: str) -> list[Memory]:
    """List the unarchived memories whose id ends with a text."""
    return select(db, f"archived_at IS NULL AND {_ENDS_SO}", (short_id, short_id))


def list_ids_ending_in(db: Connection, end: str, person: str | None = None) -> list[str]:
    """List at most two ids that end with a text, including archived memories, without others' private ones."""
    clause, values = reach_condition(Viewer(everything=True, person=person))
    ends = f"SELECT id FROM memory WHERE {_ENDS_SO} AND {clause} LIMIT 2"  # noqa: S608 - constant text
    return list_rows(db, str, ends, (end, end, *values))


def by_seqs(db: Connection, seqs: Iterable[int]) -> dict[int, Memory]:
    """Return the memories with these row numbers, archived or not."""
    return {memory.seq: memory for memory in select(db, _AMONG, (json.dumps(list(seqs)),))}


def contents(db: Connection, seqs: Sequence[int]) -> dict[int, str]:
    """Return the texts of memories by row number, archived or not."""
    return dict(db.execute(f"SELECT seq, content FROM memory WHERE {_AMONG}", (json.dumps(seqs),)))  # noqa: S608 - constant text


def list_said_texts(db: Connection, seqs: Sequence[int]) -> dict[int, str]:
    """Return what a person said for memories that a message may change: those that are not pinned and not private."""
    # The text of a private memory must not become part of another one.
    return dict(
        db.execute(
            "SELECT seq, coalesce(json_extract(metadata, '$.said'), content) FROM memory "  # noqa: S608 - constant text
            f"WHERE {_AMONG} AND pinned = 0 AND sensitivity = ?",
            (json.dumps(seqs), Sensitivity.NORMAL),
        )
    )


def by_ids(db: Connection, ids: Iterable[str]) -> dict[str, Memory]:
    """Return the memories with these ids, archived or not."""
    memories_found = select(db, "id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
    return {memory.id: memory for memory in memories_found}


def select(db: Connection, rest: str, values: Sequence[Any]) -> list[Memory]:
    """List memories by the rest of a statement after WHERE, a constant text of a sibling module."""
    return [_memory(row) for row in db.execute(f"SELECT {COLUMNS} FROM memory WHERE {rest}", values)]  # noqa: S608


def select_one(db: Connection, rest: str, values: Sequence[Any]) -> Memory | None:
    """Return the first memory that `select` would list, None if there is none."""
    return next(iter(select(db, rest, values)), None)


def list_made_of(db: Connection, session_id: str, turn_seqs: Collection[int], texts: Collection[str]) -> list[Memory]:
    """List the active memories of a session that were captured from turns, or that have one of the texts."""
    own = select(db, "session_id = ? AND archived_at IS NULL ORDER BY seq", (session_id,))
    return [memory for memory in own if memory.metadata.get("turn") in turn_seqs or memory.content in texts]


def select_newest(
    db: Connection,
    criteria: Filter,
    limit: int,
    before: int | None,
    also: str = "true",
    also_values: Sequence[Any] = (),
) -> list[Memory]:
    """List the memories that match a filter and another condition, newest first, from below a row number."""
    clause, values = condition(criteria)
    below = 2**62 if before is None else before
    return select(
        db, f"{clause} AND {also} AND seq < ? ORDER BY seq DESC LIMIT ?", (*values, *also_values, below, limit)
    )


def list_ranking_rows(db: Connection, after_change: int) -> list[RankingRow]:
    """Return the ranking data of memories that changed after a change number; of all memories for a number below 0."""
    changed = (
        "seq IN (SELECT m.seq FROM change c JOIN memory m ON m.id = c.memory_id WHERE c.seq > ?)"
        if after_change >= 0
        else "? < 0"
    )
    clause, values = lasting_condition()
    rows = db.execute(
        f"SELECT seq, {clause}, importance, julianday(occurred_at), kind, "  # noqa: S608 - constant text
        f"substr(content, 1, {OPENING_CHARS}) "
        f"FROM memory WHERE {changed}",
        (*values, after_change),
    )
    return [RankingRow(*row) for row in rows]


def filter_showable(db: Connection, seqs: Sequence[int], criteria: Filter) -> dict[int, Memory]:
    """Return which of the given memories match the filter, in the given order."""
    clause, values = condition(criteria)
    visible = select(db, f"{_AMONG} AND {clause}", (json.dumps(list(seqs)), *values))
    by_seq = {memory.seq: memory for memory in visible}
    return {seq: by_seq[seq] for seq in seqs if seq in by_seq}


def visible_seqs(db: Connection, criteria: Filter) -> list[int]:
    """List the row numbers of all memories that match the filter."""
    clause, values = condition(criteria)
    return [row[0] for row in db.execute(f"SELECT seq FROM memory WHERE {clause}", values)]  # noqa: S608 - constant text


def list_owned_seqs(db: Connection, criteria: Filter) -> list[int]:
    """List the row numbers of the memories that a caller sees in addition to the workspace's."""
    clause, values = owned_condition(criteria)
    return [row[0] for row in db.execute(f"SELECT seq FROM memory WHERE {clause}", values)]  # noqa: S608 - constant text


def owns_any(db: Connection, viewer: Viewer) -> bool:
    """Return whether a viewer's own scopes ever had a memory, including purged and archived ones."""
    if viewer.everything:
        anything = f"SELECT 1 FROM memory WHERE scope_kind <> '{ScopeKind.WORKSPACE}' LIMIT 1"  # noqa: S608 - constant text
        return db.execute(anything).fetchone() is not None
    named = [(kind, owner) for kind in ScopeKind if kind != ScopeKind.WORKSPACE and (owner := getattr(viewer, kind))]
    # Repeats the first condition for the planner: only then does it use the index of owned memories.
    statement = (
        f"SELECT 1 FROM memory WHERE scope_kind <> '{ScopeKind.WORKSPACE}' AND scope_kind = ? AND scope_id = ? LIMIT 1"  # noqa: S608 - constant text
    )
    return any(db.execute(statement, values).fetchone() is not None for values in named)


def list_leading(db: Connection, criteria: Filter, limit: int) -> list[Memory]:
    """List memories by pin, importance and recency."""
    clause, values = condition(criteria)
    order = "ORDER BY pinned DESC, importance DESC, occurred_at DESC, seq DESC LIMIT ?"
    return select(db, f"{clause} {order}", (*values, limit))


def page(db: Connection, criteria: Filter, limit: int, before: int | None) -> list[Memory]:
    """List memories newest first, from below a row number."""
    return select_newest(db, criteria, limit, before)


def list_anchored(db: Connection, criteria: Filter, path: str, limit: int) -> list[Memory]:
    """List the memories that are anchored to a file, newest first; a path is relative to any folder above it."""
    ends = "/" + path.lstrip("/")
    # Compared as text, because a path may contain the signs of a pattern.
    file = "('/' || json_extract(anchor, '$.path'))"
    anchored = f"anchor IS NOT NULL AND substr({file}, length({file}) - length(?) + 1) = ?"
    return select_newest(db, criteria, limit, None, anchored, (ends, ends))


def list_latest_happened(db: Connection, criteria: Filter, since: str, limit: int, looked_at: int) -> list[Memory]:
    """List memories that happened since a time, the latest first, among the last written ones."""
    clause, values = condition(criteria)
    return select(
        db,
        f"seq IN (SELECT seq FROM memory WHERE {clause} ORDER BY seq DESC LIMIT ?) "  # noqa: S608 - constant text
        "AND occurred_at >= ? ORDER BY occurred_at DESC, seq DESC LIMIT ?",
        (*values, looked_at, since, limit),
    )


def update(db: Connection, seq: int, values: Mapping[str, Any], at: str) -> None:
    """Set some fields of a memory, and its change time."""
    if not _EDITABLE.issuperset(values):
        raise ValueError(f"not editable: {sorted(set(values) - _EDITABLE)}")
    if "importance" in values:
        # Decay starts at the day on which the importance is set.
        values = {"given_importance": values["importance"], **values}
    columns = dict(pair for name, value in values.items() for pair in _encode(name, value))
    settings = ", ".join(f"{column} = ?" for column in (*columns, "updated_at"))
    set_columns(db, seq, settings, (*columns.values(), at))


def set_columns(db: Connection, seq: int, settings: str, values: Sequence[Any]) -> None:
    """Set columns of a memory by a constant text, and update the hash of its row on commit."""
    db.execute(f"UPDATE memory SET {settings} WHERE seq = ?", (*values, seq))  # noqa: S608 - constant text
    row_hashes.update_on_commit(db, seq)


def get_given_importance(db: Connection, seq: int) -> float:
    """Return a memory's importance before decay."""
    row = db.execute("SELECT coalesce(given_importance, importance) FROM memory WHERE seq = ?", (seq,)).fetchone()
    return float(row[0])


def reinforce(db: Connection, seq: int, *, importance: float, confirmed: bool, tags: Sequence[str], at: str) -> None:
    """Count a repeated write; keep the highest importance and all tags, and trust confirmed memories."""
    set_columns(
        db,
        seq,
        "merge_count = merge_count + 1, "
        "importance = max(importance, coalesce(given_importance, 0), ?), given_importance = max(given_importance, ?), "
        "tags = ?, updated_at = ?, trust = CASE WHEN ? = 1 THEN 'trusted' ELSE trust END",
        (importance, importance, json.dumps(tags), at, confirmed),
    )


def add_missing_tags(db: Connection, seq: int, tags: Sequence[str]) -> None:
    """Set the tags of a memory that was stored without tags and not changed since."""
    if not tags:
        return
    changed = db.execute(
        "UPDATE memory SET tags = ? WHERE seq = ? AND tags = '[]' AND updated_at = created_at", (json.dumps(tags), seq)
    )
    if changed.rowcount:
        row_hashes.update_on_commit(db, seq)


def unreinforce(db: Connection, seq: int, *, importance: float, trust: str, tags: Sequence[str], at: str) -> None:
    """Undo a reinforcement."""
    set_columns(
        db,
        seq,
        "merge_count = max(0, merge_count - 1), importance = ?, "
        "given_importance = CASE WHEN importance = ? THEN given_importance ELSE ? END, trust = ?, tags = ?, "
        "updated_at = ?",
        (importance, importance, importance, trust, json.dumps(tags), at),
    )


def archive(db: Connection, seq: int, at: str, merged_into: int | None = None) -> None:
    """Archive a memory, reversibly; `merged_into` is the survivor of a merge."""
    set_columns(db, seq, "archived_at = ?, updated_at = ?, merged_into = ?", (at, at, merged_into))


def restore(db: Connection, seq: int, at: str) -> None:
    """Undo an archive."""
    set_columns(db, seq, "archived_at = NULL, merged_into = NULL, updated_at = ?", (at,))


def list_ended(db: Connection, moment: str, limit: int) -> list[Memory]:
    """List unarchived memories that have expired by a time."""
    return select(db, "expires_at <= ? AND archived_at IS NULL ORDER BY expires_at LIMIT ?", (moment, limit))


def list_merged_into(db: Connection, seq: int) -> list[Memory]:
    """List the memories that were merged into a memory, directly or indirectly."""
    return select(
        db,
        "seq IN (WITH RECURSIVE part (seq) AS (SELECT seq FROM memory WHERE merged_into = ? UNION "
        "SELECT m.seq FROM memory m JOIN part ON m.merged_into = part.seq) SELECT seq FROM part)",
        (seq,),
    )


def after(db: Connection, seq: int, limit: int) -> list[tuple[int, str | None, str]]:
    """List (row number, session, time) of the memories written after a row, in row order."""
    return db.execute(
        "SELECT seq, session_id, occurred_at FROM memory WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit)
    ).fetchall()


def list_searchable(db: Connection, after_seq: int, limit: int) -> list[Memory]:
    """List the memories that a search may find, above a row number and in row order.

    Ended facts are included: they answer questions about the past.
    """
    return select(db, "archived_at IS NULL AND candidate = 0 AND seq > ? ORDER BY seq LIMIT ?", (after_seq, limit))


def list_written_by_agents(db: Connection, since: str, limit: int) -> list[tuple[str | None, str]]:
    """List (session, text) of memories that agents wrote since a time, the newest first."""
    query = (
        "SELECT session_id, content FROM memory WHERE source = 'agent' AND created_at >= ? ORDER BY seq DESC LIMIT ?"
    )
    return db.execute(query, (since, limit)).fetchall()


def last_seq(db: Connection) -> int:
    """Return the highest row number, 0 without memories."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM memory").fetchone()[0])


def all_seqs(db: Connection) -> list[int]:
    """List all row numbers, including archived memories."""
    return [row[0] for row in db.execute("SELECT seq FROM memory ORDER BY seq")]


def _memory(row: Sequence[Any]) -> Memory:
    values = list(row)
    with typed_damage():
        for position, decode in _DECODED:
            values[position] = decode(values[position])
        for position, decode in _JOINED:
            values[position : position + 2] = [decode(values[position], values[position + 1])]
    return Memory(*values[_OPTIONAL:], **dict(zip(_OPTIONAL_FIELDS, values, strict=False)))


def _encode(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """Return a field as columns and their values."""
    codec = CODECS.get(name)
    return ((name, value),) if codec is None else zip(codec.columns, codec.encode(value), strict=True)


def rescope(db: Connection, seq: int, scope: Scope, shared_from: str | None, at: str) -> None:
    """Change the scope of a memory; `shared_from` is its scope before it was shared."""
    values = scope.kind, scope.id or "", shared_from, at
    set_columns(db, seq, "scope_kind = ?, scope_id = ?, shared_from = ?, updated_at = ?", values)


TABLES = (
    Table(
        "memory",
        text=("content", "tags", "metadata", "details", "anchor", "subject", "attribute"),
        memory=("seq",),
        erasure=DELETE,
    ),
)
