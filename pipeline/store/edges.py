"""Edges between memories: what one says about another, set by callers, by stages and by jobs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.records import EdgeKind, Kind, Scope, ScopeKind
from pipeline.store import history
from pipeline.store.visibility import viewer_within, within_reach
from pipeline.times import utc_now

# The event of a history that tells of an edge which somebody took away.
ERASED = "edge_erased"


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge as one of its two memories sees it: `outgoing` from it, else to it."""

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
    """A memory, by row number, and one that contradicts it."""

    seq: int
    other_id: str
    other_kind: Kind
    other_scope: Scope


def add(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int, made_by: str, at: str) -> bool:
    """Draw an edge; return whether it is new."""
    cursor = db.execute("INSERT OR IGNORE INTO edge VALUES (?, ?, ?, ?, ?)", (from_seq, kind, to_seq, made_by, at))
    return cursor.rowcount == 1


def find(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int, made_by: str, at: str) -> bool:
    """Draw an edge that nobody asked for; return whether it is new. What somebody erased does not come back."""
    ends = [(from_seq, to_seq)]
    if kind is EdgeKind.CONTRADICTS:
        # Of two that deny each other, either may be said to deny the other.
        ends.append((to_seq, from_seq))
    for one, other in ends:
        if db.execute(
            "SELECT 1 FROM edge WHERE from_seq = ? AND kind = ? AND to_seq = ?", (one, kind, other)
        ).fetchone():
            return False
        if db.execute(
            "SELECT 1 FROM history WHERE memory_seq = ? AND about_seq = ? AND event = ? "
            "AND json_extract(detail, '$.kind') = ?",
            (one, other, ERASED, kind),
        ).fetchone():
            return False
    return add(db, from_seq, kind, to_seq, made_by, at)


def erase(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int, at: str) -> bool:
    """Take an edge away for a person and remember it; return whether it was there."""
    if not remove(db, from_seq, kind, to_seq):
        return False
    # The history goes with either memory when that is purged, and shows what was done.
    history.add(db, from_seq, at, ERASED, None, {"kind": kind}, about_seq=to_seq)
    return True


def redraw(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int, made_by: str, at: str) -> bool:
    """Draw an edge again as if nobody had taken it away; return whether somebody had."""
    erased = db.execute(
        "DELETE FROM history WHERE memory_seq = ? AND about_seq = ? AND event = ? "
        "AND json_extract(detail, '$.kind') = ?",
        (from_seq, to_seq, ERASED, kind),
    )
    return erased.rowcount > 0 and add(db, from_seq, kind, to_seq, made_by, at)


def maker(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int) -> str | None:
    """Return who drew an edge, None where there is none."""
    row = db.execute(
        "SELECT made_by FROM edge WHERE from_seq = ? AND kind = ? AND to_seq = ?", (from_seq, kind, to_seq)
    ).fetchone()
    return None if row is None else str(row[0])


def remove(db: Connection, from_seq: int, kind: EdgeKind, to_seq: int) -> bool:
    """Take an edge away; return whether it was there."""
    cursor = db.execute("DELETE FROM edge WHERE from_seq = ? AND kind = ? AND to_seq = ?", (from_seq, kind, to_seq))
    return cursor.rowcount == 1


def of(db: Connection, seq: int) -> list[Edge]:
    """List a memory's edges, to archived memories too, and its neighbours in the session."""
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


def derived(db: Connection, seq: int) -> list[int]:
    """List by row number what is derived from a memory, directly or not."""
    rows = db.execute(
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
    return [row[0] for row in rows]


def denials(db: Connection, seqs: str) -> list[Denial]:
    """List who contradicts memories (a JSON list of row numbers), of what is active, reviewed and holds."""
    rows = db.execute(
        """
        WITH pair (seq, other) AS (
            SELECT value, e.to_seq FROM json_each(?1) JOIN edge e ON e.from_seq = value AND e.kind = 'contradicts'
            UNION
            SELECT value, e.from_seq FROM json_each(?1) JOIN edge e ON e.to_seq = value AND e.kind = 'contradicts'
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


def forget_found(db: Connection, seq: int, makers: Sequence[str]) -> None:
    """Take away what some makers found by reading a memory's text; what was merged stays told."""
    db.execute(
        "DELETE FROM edge WHERE made_by IN (SELECT value FROM json_each(?)) AND (from_seq = ? OR to_seq = ?) "
        "AND NOT (kind = 'supersedes' AND EXISTS "
        "(SELECT 1 FROM memory m WHERE m.seq = edge.to_seq AND m.merged_into = edge.from_seq))",
        (json.dumps(makers), seq, seq),
    )


def purge(db: Connection, seq: int) -> None:
    """Delete a memory's edges for good."""
    db.execute("DELETE FROM edge WHERE from_seq = ? OR to_seq = ?", (seq, seq))


def _beside(db: Connection, seq: int) -> list[tuple[str, int, str, str, str, str, str]]:
    # What follows in a session follows from the rows themselves; storing it would only let it go stale.
    own = db.execute(
        "SELECT session_id, occurred_at, scope_kind, scope_id FROM memory WHERE seq = ?", (seq,)
    ).fetchone()
    if own is None or own[0] is None:
        return []
    # A neighbour that may not be seen must not hide the next one that may: its absence would tell of it.
    reach, values = within_reach(viewer_within(Scope(ScopeKind(own[2]), own[3] or None)))
    found = []
    for outgoing, compare, order in ((1, ">", "ASC"), (0, "<", "DESC")):
        row = db.execute(
            "SELECT id, scope_kind, scope_id, occurred_at FROM memory "  # noqa: S608 - constant text
            "WHERE session_id = ? AND archived_at IS NULL AND candidate = 0 "
            f"AND {reach} AND (occurred_at, seq) {compare} (?, ?) ORDER BY occurred_at {order}, seq {order} LIMIT 1",
            (own[0], *values, own[1], seq),
        ).fetchone()
        if row is not None:
            found.append((EdgeKind.NEXT_IN_SESSION.value, outgoing, *row[:3], "session", row[3]))
    return found
