"""Which memories an edge may be drawn between: what changed, and what stands near it in one scope."""

import json
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.records import EntityKind, Memory
from pipeline.store.memories import select

# A name in more memories than this ties none of them to another.
RARE = 40

# What tries to command its reader, holds by a key of its own or was said off the record has no edges drawn to it.
_OPEN = (
    "archived_at IS NULL AND candidate = 0 AND instructs = 0 AND subject IS NULL "
    "AND (session_id IS NULL OR session_id NOT IN (SELECT session_id FROM incognito))"
)
_KIN = f"{_OPEN} AND scope_kind = ? AND scope_id = ? AND coalesce(branch, '') = ? AND seq <> ?"


class Change(NamedTuple):
    """A change of a text: its number, and the memory's row number while the memory is there."""

    number: int
    seq: int | None


def texts_changed(db: Connection, after: int, limit: int) -> list[Change]:
    """List the changes above a number by which a text came or became another, in their order."""
    rows = db.execute(
        "SELECT c.seq, m.seq FROM change c LEFT JOIN memory m ON m.id = c.memory_id "
        "WHERE c.seq > ? AND c.op IN ('create', 'edit', 'restore') ORDER BY c.seq LIMIT ?",
        (after, limit),
    )
    return [Change(*row) for row in rows]


def unlinked(db: Connection, seqs: Sequence[int]) -> set[int]:
    """Return those of some memories whose entities are still to be found."""
    rows = db.execute(
        "SELECT memory_seq FROM work WHERE stage = 'entities' AND dead = 0 "
        "AND memory_seq IN (SELECT value FROM json_each(?))",
        (json.dumps(list(seqs)),),
    )
    return {row[0] for row in rows}


def open_to_edges(db: Connection, seqs: Sequence[int]) -> list[Memory]:
    """List those of some memories between which edges may be found, in row order."""
    chosen = f"{_OPEN} AND seq IN (SELECT value FROM json_each(?)) ORDER BY seq"  # noqa: S608 - constant text
    return select(db, chosen, (json.dumps(list(seqs)),))


def sharing(db: Connection, memory: Memory, limit: int) -> dict[int, frozenset[EntityKind]]:
    """Return what names a rare thing that a memory names too, newest first: row number → the kinds of it."""
    rows = db.execute(
        "WITH rare (thing, sort) AS (SELECT e.seq, e.kind FROM mention m JOIN entity e ON e.seq = m.entity_seq "  # noqa: S608
        "WHERE m.memory_seq = ? AND e.kind NOT IN ('date', 'version', 'port') AND "
        "(SELECT count(*) FROM (SELECT 1 FROM mention WHERE entity_seq = e.seq LIMIT ?)) < ?) "
        "SELECT o.memory_seq, group_concat(DISTINCT sort) FROM rare JOIN mention o ON o.entity_seq = thing "
        f"CROSS JOIN memory ON seq = o.memory_seq WHERE {_KIN} GROUP BY o.memory_seq "
        "ORDER BY o.memory_seq DESC LIMIT ?",
        (memory.seq, RARE, RARE, *_kin(memory), limit),
    )
    return {seq: frozenset(map(EntityKind, kinds.split(","))) for seq, kinds in rows}


def saying(db: Connection, memory: Memory, word: str, limit: int) -> list[Memory]:
    """List what an earlier memory of the scope says with a word in it, of any case in ASCII, last written first."""
    pattern = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    # The index of scopes would lead to most rows one by one; reading them in order is eight times as fast.
    said = f"SELECT seq FROM memory NOT INDEXED WHERE content LIKE ? ESCAPE '\\' AND {_KIN}"  # noqa: S608 - constant text
    return select(
        db,
        f"seq IN ({said} AND (occurred_at, seq) < (?, ?) ORDER BY seq DESC LIMIT ?) ORDER BY seq DESC",
        (f"%{pattern}%", *_kin(memory), memory.occurred_at, memory.seq, limit),
    )


def beside(db: Connection, memory: Memory, limit: int) -> list[Memory]:
    """List what stands around a memory in its session: at most so many before it and after it, in the order of time."""
    if memory.session_id is None:
        return []
    found: list[Memory] = []
    for compare, order in (("<", "DESC"), (">", "ASC")):
        found += select(
            db,
            f"session_id = ? AND {_KIN} AND (occurred_at, seq) {compare} (?, ?) "
            f"ORDER BY occurred_at {order}, seq {order} LIMIT ?",
            (memory.session_id, *_kin(memory), memory.occurred_at, memory.seq, limit),
        )
    return sorted(found, key=lambda one: (one.occurred_at, one.seq))


def _kin(memory: Memory) -> tuple[Any, ...]:
    return memory.scope.kind, memory.scope.id or "", memory.branch or "", memory.seq
