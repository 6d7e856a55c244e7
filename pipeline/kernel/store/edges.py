"""Edges between memories, created by callers, stages and jobs.

Also the candidates for new edges: changed memories, and related memories of the same scope.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.kernel.records import EdgeKind, EntityKind, Kind, Memory, Scope, ScopeKind
from pipeline.kernel.store import history
from pipeline.kernel.store.memories import select
from pipeline.kernel.store.rows import DELETE, Relation, Table, escape_like, find_row, list_rows
from pipeline.kernel.store.visibility import may_be_derived_from, reach_condition, viewer_within
from pipeline.kernel.times import utc_now

# The history event of an edge that a person removed.
ERASED = "edge_erased"
# A name in more memories than this is no reason for an edge.
RARE = 40

# No automatic edges for texts that command their reader, keyed facts, or incognito sessions.
_OPEN = f"archived_at IS NULL AND candidate = 0 AND instructs = 0 AND subject IS NULL AND {may_be_derived_from()}"
_IN_SCOPE = f"{_OPEN} AND scope_kind = ? AND scope_id = ? AND coalesce(branch, '') = ? AND seq <> ?"


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge as seen from one of its two memories: `outgoing` from it, else to it."""

    kind: EdgeKind
    outgoing: bool
    other_id: str
    other_scope: Scope
    made_by: str
    at: str

    @property
    def direction(self) -> str:
        """Return `out` or `in`."""
        return "out" if self.outgoing else "in"


@dataclass(frozen=True, slots=True)
class Denial:
    """A memory and a memory that contradicts it, by row number."""

    seq: int
    other_id: str
    other_kind: Kind
    other_scope: Scope


class Superseded(NamedTuple):
    """A memory and its successor, by row number; the successor's id and scope."""

    seq: int
    by: int
    by_id: str
    by_scope: Scope


class TextChange(NamedTuple):
    """A change of a text: its number, and the memory's row number if the memory still exists."""

    number: int
    seq: int | None


# Makers of cause and effect edges.
REFLECT = "reflect"


def chain(db: Connection, seq: int, most: int = 8) -> list[int]:
    """Return the row numbers of the chain of causes and effects through a memory, the first cause first."""
    links = [seq]
    for column, other, at_end in (("to_seq", "from_seq", False), ("from_seq", "to_seq", True)):
        while len(links) < most:
            row = db.execute(
                f"SELECT {other} FROM edge WHERE {column} = ? AND kind = '{EdgeKind.CAUSE}' AND made_by = ? "  # noqa: S608 - constant text
                "ORDER BY at DESC LIMIT 1",
                (links[-1 if at_end else 0], REFLECT),
            ).fetchone()
            if row is None or row[0] in links:
                break
            links.insert(len(links) if at_end else 0, int(row[0]))
    return links if len(links) > 1 else []


def add(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int, made_by: str, at: str) -> bool:
    """Add an edge; return whether it is new."""
    return (
        db.execute(
            "INSERT INTO edge VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", (from_seq, kind, to_seq, made_by, at)
        ).rowcount
        == 1
    )


def find(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int, made_by: str, at: str) -> bool:
    """Add an automatic edge; return whether it is new. An edge that a person removed is not added again."""
    ends = [(from_seq, to_seq)]
    if kind in (EdgeKind.CONTRADICTS, EdgeKind.SUPERSEDES):
        # A contradiction is symmetric, and only one of two memories can supersede the other.
        ends.append((to_seq, from_seq))
    for start, end in ends:
        if db.execute(
            "SELECT 1 FROM edge WHERE from_seq = ? AND kind = ? AND to_seq = ?", (start, kind, end)
        ).fetchone():
            return False
        if db.execute(
            "SELECT 1 FROM history WHERE memory_seq = ? AND about_seq = ? AND event = ? "
            "AND json_extract(detail, '$.kind') = ?",
            (start, end, ERASED, kind),
        ).fetchone():
            return False
    return add(db, from_seq, kind, to_seq, made_by, at)


def erase(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int, at: str) -> bool:
    """Remove an edge for a person and remember the removal; return whether it existed."""
    if not remove(db, from_seq, kind, to_seq):
        return False
    # The history is deleted if either memory is purged, and shows the removal.
    history.add(db, from_seq, at, ERASED, None, {"kind": kind}, about_seq=to_seq)
    return True


def redraw(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int, made_by: str, at: str) -> bool:
    """Add an edge again even if a person removed it; return whether a person had."""
    erased = db.execute(
        "DELETE FROM history WHERE memory_seq = ? AND about_seq = ? AND event = ? "
        "AND json_extract(detail, '$.kind') = ?",
        (from_seq, to_seq, ERASED, kind),
    )
    return erased.rowcount > 0 and add(db, from_seq, kind, to_seq, made_by, at)


def maker(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int) -> str | None:
    """Return the maker of an edge, None if there is no edge."""
    return find_row(
        db, str, "SELECT made_by FROM edge WHERE from_seq = ? AND kind = ? AND to_seq = ?", (from_seq, kind, to_seq)
    )


def remove(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int) -> bool:
    """Remove an edge; return whether it existed."""
    return (
        db.execute("DELETE FROM edge WHERE from_seq = ? AND kind = ? AND to_seq = ?", (from_seq, kind, to_seq)).rowcount
        == 1
    )


def of(db: Connection, seq: int) -> list[Edge]:
    """List a memory's edges, including edges to archived memories, and its neighbors in the session."""
    rows = db.execute(
        """
        SELECT e.kind, 1, m.id, m.scope_kind, m.scope_id, e.made_by, e.at
            FROM edge e JOIN memory m ON m.seq = e.to_seq WHERE e.from_seq = ?
        UNION ALL
        SELECT e.kind, 0, m.id, m.scope_kind, m.scope_id, e.made_by, e.at
            FROM edge e JOIN memory m ON m.seq = e.from_seq WHERE e.to_seq = ?
        ORDER BY 7, 1, 3
        """,
        (seq, seq),
    ).fetchall()
    rows += _beside(db, seq)
    return [
        Edge(EdgeKind(kind), bool(outgoing), other, Scope(ScopeKind(scope_kind), scope_id or None), made_by, at)
        for kind, outgoing, other, scope_kind, scope_id, made_by, at in rows
    ]


def list_derived(db: Connection, seq: int) -> list[int]:
    """List the memories derived from a memory, directly or not, by row number."""
    return list_rows(
        db,
        int,
        """
        WITH RECURSIVE found (seq) AS (
            SELECT from_seq FROM edge WHERE to_seq = ?1 AND kind = 'derived_from'
            UNION
            SELECT e.from_seq FROM found f JOIN edge e ON e.to_seq = f.seq AND e.kind = 'derived_from'
        )
        SELECT seq FROM found WHERE seq <> ?1 ORDER BY seq
        """,
        (seq,),
    )


def denials(db: Connection, seqs: str) -> list[Denial]:
    """List the active, reviewed and current memories that contradict memories (a JSON list of row numbers)."""
    rows = db.execute(
        """
        WITH given (seq) AS (SELECT CAST(value AS BIGINT) FROM json_each(?1)), pair (seq, other) AS (
            SELECT g.seq, e.to_seq FROM given g JOIN edge e ON e.from_seq = g.seq AND e.kind = 'contradicts'
            UNION
            SELECT g.seq, e.from_seq FROM given g JOIN edge e ON e.to_seq = g.seq AND e.kind = 'contradicts'
        )
        SELECT p.seq, m.id, m.kind, m.scope_kind, m.scope_id FROM pair p JOIN memory m ON m.seq = p.other
            WHERE m.archived_at IS NULL AND m.candidate = 0 AND (m.valid_to IS NULL OR m.valid_to > ?2)
            ORDER BY p.seq, m.seq
        """,
        (seqs, utc_now()),
    )
    return [
        Denial(seq, other, Kind(kind), Scope(ScopeKind(scope_kind), scope_id or None))
        for seq, other, kind, scope_kind, scope_id in rows
    ]


def list_superseding(db: Connection, seqs: Sequence[int]) -> list[Superseded]:
    """List which of some memories are superseded by an active, reviewed and current memory, the latest last.

    Merged memories are excluded, and so are keyed facts, which have their own history.
    """
    # Few memories are superseded: edges are read first, and then only the memories that they connect.
    rows = db.execute(
        """
        WITH given (seq) AS MATERIALIZED (SELECT CAST(value AS BIGINT) FROM json_each(?1)),
        pair (seq, newer) AS MATERIALIZED (
            SELECT e.to_seq, e.from_seq FROM given g JOIN edge e ON e.to_seq = g.seq AND e.kind = 'supersedes'
        )
        SELECT old.seq, new.seq, new.id, new.scope_kind, new.scope_id
            FROM pair p JOIN memory old ON old.seq = p.seq AND old.subject IS NULL
                AND old.merged_into IS DISTINCT FROM p.newer
            JOIN memory new ON new.seq = p.newer AND new.archived_at IS NULL AND new.candidate = 0
                AND (new.valid_to IS NULL OR new.valid_to > ?2)
            ORDER BY old.seq, new.occurred_at, new.seq
        """,
        (json.dumps(list(seqs)), utc_now()),
    )
    return [Superseded(old, new, other, Scope(ScopeKind(kind), scope or None)) for old, new, other, kind, scope in rows]


def forget_found(db: Connection, seq: int, makers: Sequence[str]) -> None:
    """Delete automatic edges that some makers derived from a memory's text; edges of merged memories stay."""
    db.execute(
        "DELETE FROM edge WHERE made_by IN (SELECT value FROM json_each(?)) AND (from_seq = ? OR to_seq = ?) "
        "AND NOT (kind = 'supersedes' AND EXISTS "
        "(SELECT 1 FROM memory m WHERE m.seq = edge.to_seq AND m.merged_into = edge.from_seq))",
        (json.dumps(makers), seq, seq),
    )


def _beside(db: Connection, seq: int) -> list[tuple[str, int, str, str, str, str, str]]:
    # The order within a session follows from the rows; stored edges could only become stale.
    session = db.execute(
        "SELECT session_id, occurred_at, scope_kind, scope_id FROM memory WHERE seq = ?", (seq,)
    ).fetchone()
    if session is None or session[0] is None:
        return []
    # An invisible neighbor must not hide the next visible one: the gap would reveal it.
    reach, values = reach_condition(viewer_within(Scope(ScopeKind(session[2]), session[3] or None)))
    neighbors = []
    for outgoing, compare, order in ((1, ">", "ASC"), (0, "<", "DESC")):
        row = db.execute(
            "SELECT id, scope_kind, scope_id, occurred_at FROM memory "  # noqa: S608 - constant text
            "WHERE session_id = ? AND archived_at IS NULL AND candidate = 0 "
            f"AND {reach} AND (occurred_at, seq) {compare} (?, ?) ORDER BY occurred_at {order}, seq {order} LIMIT 1",
            (session[0], *values, session[1], seq),
        ).fetchone()
        if row is not None:
            neighbors.append((EdgeKind.NEXT_IN_SESSION.value, outgoing, *row[:3], "session", row[3]))
    return neighbors


def list_changed_texts(db: Connection, after: int, limit: int) -> list[TextChange]:
    """List the changes of texts above a number, in order."""
    return list_rows(
        db,
        TextChange,
        "SELECT c.seq, m.seq FROM change c LEFT JOIN memory m ON m.id = c.memory_id "
        "WHERE c.seq > ? AND c.op IN ('create', 'edit', 'restore') ORDER BY c.seq LIMIT ?",
        (after, limit),
    )


def without_entities(db: Connection, seqs: Sequence[int]) -> set[int]:
    """Return which of some memories still await entity extraction."""
    return set(
        list_rows(
            db,
            int,
            "SELECT memory_seq FROM work WHERE stage = 'entities' AND dead = 0 "
            "AND memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
            (json.dumps(list(seqs)),),
        )
    )


def list_open_to_edges(db: Connection, seqs: Sequence[int]) -> list[Memory]:
    """List which of some memories can get automatic edges, in row order."""
    chosen = f"{_OPEN} AND seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY seq"  # noqa: S608 - constant text
    return select(db, chosen, (json.dumps(list(seqs)),))


def find_sharing_name(db: Connection, memory: Memory, limit: int) -> dict[int, frozenset[EntityKind]]:
    """Return memories that share a rare name with a memory, newest first: row number → kinds of the name."""
    rows = db.execute(
        "WITH rare (thing, sort) AS (SELECT e.seq, e.kind FROM mention m JOIN entity e ON e.seq = m.entity_seq "  # noqa: S608
        "WHERE m.memory_seq = ? AND e.kind NOT IN ('date', 'version', 'port') AND "
        "(SELECT count(*) FROM (SELECT 1 FROM mention WHERE entity_seq = e.seq LIMIT ?) found) < ?) "
        "SELECT o.memory_seq, group_concat(DISTINCT sort) FROM rare JOIN mention o ON o.entity_seq = thing "
        f"CROSS JOIN memory WHERE seq = o.memory_seq AND {_IN_SCOPE} GROUP BY o.memory_seq "
        "ORDER BY o.memory_seq DESC LIMIT ?",
        (memory.seq, RARE, RARE, *_values_of_scope(memory), limit),
    )
    return {seq: frozenset(map(EntityKind, kinds.split(","))) for seq, kinds in rows}


def find_containing_word(db: Connection, memory: Memory, word: str, limit: int) -> list[Memory]:
    """List earlier memories of the scope whose text contains a word, ignoring ASCII case, last written first."""
    # The scope index would fetch most rows one by one; a scan in row order is eight times as fast.
    query = f"SELECT seq FROM memory NOT INDEXED WHERE content LIKE ? ESCAPE '\\' AND {_IN_SCOPE}"  # noqa: S608 - constant text
    return select(
        db,
        f"seq IN ({query} AND (occurred_at, seq) < (?, ?) ORDER BY seq DESC LIMIT ?) ORDER BY seq DESC",
        (f"%{escape_like(word)}%", *_values_of_scope(memory), memory.occurred_at, memory.seq, limit),
    )


def find_session_neighbours(db: Connection, memory: Memory, limit: int) -> list[Memory]:
    """List the memories around a memory in its session, at most `limit` on either side, in order of time."""
    if memory.session_id is None:
        return []
    neighbors: list[Memory] = []
    for compare, order in (("<", "DESC"), (">", "ASC")):
        neighbors += select(
            db,
            f"session_id = ? AND {_IN_SCOPE} AND (occurred_at, seq) {compare} (?, ?) "
            f"ORDER BY occurred_at {order}, seq {order} LIMIT ?",
            (memory.session_id, *_values_of_scope(memory), memory.occurred_at, memory.seq, limit),
        )
    return sorted(neighbors, key=lambda memory_near: (memory_near.occurred_at, memory_near.seq))


def _values_of_scope(memory: Memory) -> tuple[Any, ...]:
    return memory.scope.kind, memory.scope.id or "", memory.branch or "", memory.seq


LINKING_EDGES = (EdgeKind.CAUSE, EdgeKind.SUPPORTS, EdgeKind.SUPERSEDES, EdgeKind.DERIVED_FROM)
_GIVEN = "WITH given (seq) AS MATERIALIZED (SELECT CAST(value AS BIGINT) FROM json_each(?))"


def list_linking_edges(db: Connection, seqs: Sequence[int]) -> list[tuple[int, int]]:
    """List the edges from or to some memories that lead from one subject to another, as pairs of row numbers."""
    kinds = ", ".join(f"'{kind}'" for kind in LINKING_EDGES)
    return db.execute(
        f"{_GIVEN} SELECT e.from_seq, e.to_seq FROM given g "  # noqa: S608 - constant text
        f"JOIN edge e ON e.from_seq = g.seq AND e.kind IN ({kinds}) "
        "UNION SELECT e.from_seq, e.to_seq FROM given g "
        f"JOIN edge e ON e.to_seq = g.seq AND e.kind IN ({kinds}) ORDER BY 1, 2",
        (json.dumps(list(seqs)),),
    ).fetchall()


def list_shared_entities(db: Connection, seqs: Sequence[int], most: int) -> list[tuple[int, int]]:
    """List the memories that mention an entity of some memories, as pairs of entity and memory.

    Entities in more than `most` memories are left out, and so are dates, versions and ports.
    """
    return db.execute(
        f"{_GIVEN}, named (entity_seq) AS MATERIALIZED (SELECT DISTINCT m.entity_seq FROM given g "  # noqa: S608
        "JOIN mention m ON m.memory_seq = g.seq JOIN entity e ON e.seq = m.entity_seq "
        "WHERE e.kind NOT IN ('date', 'version', 'port') AND (SELECT count(*) FROM "
        "(SELECT 1 FROM mention o WHERE o.entity_seq = e.seq LIMIT ?) counted) <= ?) "
        "SELECT m.entity_seq, m.memory_seq FROM named n JOIN mention m ON m.entity_seq = n.entity_seq ORDER BY 1, 2",
        (json.dumps(list(seqs)), most + 1, most),
    ).fetchall()


_DROP = "DELETE FROM edge WHERE from_seq = :seq AND kind = :name AND to_seq = :other_seq"
TABLES = (
    Table(
        "edge",
        ("from_seq", "kind", "to_seq"),
        memory=("from_seq", "to_seq"),
        erasure=DELETE,
        replicated=Relation(
            "edge",
            fields=("made_by", "at"),
            key="a.id, b.id, r.kind",
            # Jobs derive their edges again on every machine.
            source="edge r JOIN memory a ON a.seq = r.from_seq JOIN memory b ON b.seq = r.to_seq "
            "WHERE r.made_by NOT IN ('edges-job', 'reflect')",
            chosen="a.id IN (SELECT value FROM json_each(?))",
            put=(_DROP, "INSERT INTO edge VALUES (:seq, :name, :other_seq, :made_by, :at)"),
            drop=_DROP,
            is_named=False,
        ),
        orphans="edges",
    ),
)
