"""Arcs: threads of related memories, each within one scope.

A summary is stored as one sentence per line, a title as its parts; both quote memories literally. Each read looks up
the quotes in the visible members, so that an arc never shows text that was archived, edited or purged.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection
from typing import Any

from ulid import ULID

from pipeline.kernel.records import CAPTURED_TAG, Filter, Kind, Memory, Scope, ScopeKind, Trust, Viewer
from pipeline.kernel.store.memories import select
from pipeline.kernel.store.rows import Table, is_gone, list_rows
from pipeline.kernel.store.visibility import condition, reach_condition

PREVIEW_CHARS = 200
SHOWN_MEMBERS = 50
TITLE_SEPARATOR = " · "
# Marks the end of a truncated sentence.
CUT = "…"


class ArcStatus(StrEnum):
    """Whether an arc is active."""

    ACTIVE = "active"
    DORMANT = "dormant"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Strand:
    """The data of a memory from which arcs are computed; `importance` is the importance before decay.

    Texts that try to command their reader are excluded, because an arc quotes its members.
    """

    seq: int
    content: str
    kind: Kind
    session_id: str | None
    occurred_at: str
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    goal_status: str | None = None


@dataclass(frozen=True, slots=True)
class Arc:
    """A stored arc; `members` are row numbers in order of time."""

    title: str
    summary: str
    status: ArcStatus
    scope: Scope
    first_at: str
    last_at: str
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StoredArc:
    """An arc and its row."""

    seq: int
    id: str
    arc: Arc


@dataclass(frozen=True, slots=True)
class ArcMember:
    """A member of an arc, for display."""

    seq: int
    id: str
    kind: Kind
    preview: str
    occurred_at: str


@dataclass(frozen=True, slots=True)
class VisibleArc:
    """An arc as a viewer sees it: `members` are its last members, `size` counts all of them."""

    seq: int
    id: str
    title: str
    summary: str
    status: ArcStatus
    scope: Scope
    trust: Trust
    first_at: str
    last_at: str
    updated_at: str
    size: int
    members: tuple[ArcMember, ...]

    @property
    def is_outline(self) -> bool:
        """Return whether an arc consists mainly of outlines of code."""
        return 2 * sum(member.kind is Kind.CODE for member in self.members) > len(self.members)


_SCOPED = "scope_kind = ? AND scope_id = ?"
_ACTIVE_FIRST = "CASE status WHEN 'active' THEN 2 WHEN 'dormant' THEN 1 ELSE 0 END"
_STANDING = (
    "archived_at IS NULL AND candidate = 0 AND instructs = 0 AND (valid_from IS NULL OR valid_from <= ?) "
    "AND (valid_to IS NULL OR valid_to > ?)"
)


def scopes(db: Connection, at: str, least: int) -> list[Scope]:
    """List the scopes with at least `least` current memories, and the scopes with arcs."""
    rows = db.execute(
        f"SELECT scope_kind, scope_id FROM memory WHERE {_STANDING} "  # noqa: S608 - constant text
        "GROUP BY scope_kind, scope_id HAVING count(*) >= ? "
        "UNION SELECT scope_kind, scope_id FROM arc ORDER BY scope_kind, scope_id",
        (at, at, least),
    )
    return [Scope(ScopeKind(kind), owner or None) for kind, owner in rows]


def strands(db: Connection, scope: Scope, at: str, limit: int, before: int) -> list[Strand]:
    """List a scope's current memories at a time, newest first, below a row number."""
    return _strands(
        db,
        f"{_SCOPED} AND {_STANDING} AND seq < ? ORDER BY seq DESC LIMIT ?",
        (scope.kind, scope.id or "", at, at, before, limit),
    )


def list_strands_by_seqs(db: Connection, seqs: Iterable[int]) -> list[Strand]:
    """List the given memories in order of time."""
    return _strands(
        db,
        "seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY occurred_at, seq",
        (json.dumps(sorted(seqs)),),
    )


def moments(db: Connection, seqs: Iterable[int], at: str) -> dict[int, str]:
    """Return the times of those of the given memories that are current at a time."""
    return dict(
        db.execute(
            "SELECT seq, occurred_at FROM memory "  # noqa: S608 - constant text
            f"WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND {_STANDING}",
            (json.dumps(list(seqs)), at, at),
        ).fetchall()
    )


def of_scope(db: Connection, scope: Scope) -> list[StoredArc]:
    """List the arcs of a scope, oldest row first."""
    members: dict[int, list[int]] = {}
    for arc_seq, memory_seq in db.execute(
        "SELECT m.arc_seq, m.memory_seq FROM arc_member m JOIN arc a ON a.seq = m.arc_seq "
        "WHERE a.scope_kind = ? AND a.scope_id = ? ORDER BY m.arc_seq, m.position",
        (scope.kind, scope.id or ""),
    ):
        members.setdefault(arc_seq, []).append(memory_seq)
    rows = db.execute(
        f"SELECT seq, id, title, summary, status, first_at, last_at FROM arc WHERE {_SCOPED} ORDER BY seq",  # noqa: S608
        (scope.kind, scope.id or ""),
    )
    return [
        StoredArc(
            seq, arc_id, Arc(title, summary, ArcStatus(status), scope, first_at, last_at, tuple(members.get(seq, ())))
        )
        for seq, arc_id, title, summary, status, first_at, last_at in rows
    ]


def put(db: Connection, arc_seq: int | None, arc: Arc, at: str) -> bool:
    """Store an arc in a row or as a new one; return False if a member is no longer current.

    An arc that loses members to it has no summary until it is stored again, because its summary may quote them.
    """
    listed = json.dumps(arc.members)
    if len(moments(db, arc.members, at)) < len(arc.members):
        return False
    fields = (arc.title, arc.summary, arc.status, arc.first_at, arc.last_at, at)
    if arc_seq is None:
        (arc_seq,) = db.execute(
            "INSERT INTO arc (id, scope_kind, scope_id, title, summary, status, first_at, last_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq",
            (str(ULID()), arc.scope.kind, arc.scope.id or "", *fields),
        ).fetchone()
    else:
        db.execute(
            "UPDATE arc SET title = ?, summary = ?, status = ?, first_at = ?, last_at = ?, updated_at = ? "
            "WHERE seq = ?",
            (*fields, arc_seq),
        )
    db.execute(
        "UPDATE arc SET title = '', summary = '' WHERE seq IN (SELECT arc_seq FROM arc_member "
        "WHERE arc_seq <> ? AND memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)))",
        (arc_seq, listed),
    )
    db.execute("DELETE FROM arc_member WHERE arc_seq = ?", (arc_seq,))
    db.executemany(
        "INSERT INTO arc_member (memory_seq, arc_seq, position) VALUES (?, ?, ?) "
        "ON CONFLICT (memory_seq) DO UPDATE SET arc_seq = excluded.arc_seq, position = excluded.position",
        [(seq, arc_seq, position) for position, seq in enumerate(arc.members)],
    )
    return True


def drop(db: Connection, arc_seq: int) -> None:
    """Delete an arc; its members belong to no arc then."""
    db.execute("DELETE FROM arc_member WHERE arc_seq = ?", (arc_seq,))
    db.execute("DELETE FROM arc WHERE seq = ?", (arc_seq,))


def list_derived_texts(db: Connection, seq: int) -> list[str]:
    """List the title and the summary of a memory's arc."""
    query = "SELECT title, summary FROM arc JOIN arc_member ON arc.seq = arc_seq WHERE memory_seq = ?"
    return [text for row in db.execute(query, (seq,)) for text in row]


def _drop_of_memory(db: Connection, memory: Memory) -> None:
    for (arc_seq,) in db.execute("SELECT arc_seq FROM arc_member WHERE memory_seq = ?", (memory.seq,)).fetchall():
        drop(db, arc_seq)


def page(
    db: Connection,
    viewer: Viewer,
    status: ArcStatus | None,
    limit: int,
    before: int | None,
    *,
    active_first: bool = False,
) -> list[VisibleArc]:
    """List the arcs that a viewer can see, the latest first, below a row number."""
    order = [_ACTIVE_FIRST, "last_at", "seq"] if active_first else ["last_at", "seq"]
    return _select(
        db,
        viewer,
        "status = coalesce(?, status) AND (CAST(? AS BIGINT) IS NULL OR "  # noqa: S608 - constant text
        f"({', '.join(order)}) < (SELECT {', '.join(order)} FROM arc WHERE seq = ?))",
        (status, before, before),
        f"{' DESC, '.join(order)} DESC",
        limit,
    )


def members(db: Connection, viewer: Viewer, arc_seq: int, limit: int, after: int | None) -> list[Memory]:
    """List the members of an arc that a viewer can see, in order of time, after a row number."""
    clause, values = condition(Filter(viewer=viewer))
    rank = "(SELECT position FROM arc_member WHERE memory_seq = {})"
    rest = (
        f"seq IN (SELECT memory_seq FROM arc_member WHERE arc_seq = ? "  # noqa: S608 - constant text
        f"AND position > coalesce({rank.format('?')}, -1)) AND {clause} ORDER BY {rank.format('memory.seq')} LIMIT ?"
    )
    return select(db, rest, (arc_seq, after, *values, limit))


def pulse(db: Connection, viewer: Viewer, arc_seq: int) -> list[str]:
    """List the times of the members that a viewer can see, in order."""
    clause, values = condition(Filter(viewer=viewer))
    return list_rows(
        db,
        str,
        f"SELECT occurred_at FROM memory JOIN arc_member ON memory_seq = memory.seq WHERE arc_seq = ? AND {clause} "  # noqa: S608
        "ORDER BY position",
        (arc_seq, *values),
    )


def get(db: Connection, viewer: Viewer, arc_id: str) -> VisibleArc | None:
    """Return an arc if the viewer can see any member."""
    return next(iter(_select(db, viewer, "id = ?", (arc_id,))), None)


def list_threads_with(db: Connection, viewer: Viewer, memory_seq: int) -> list[VisibleArc]:
    """Return the arc of a memory if the viewer can see any member."""
    return _select(db, viewer, "seq = (SELECT arc_seq FROM arc_member WHERE memory_seq = ?)", (memory_seq,))


def list_threads_of(db: Connection, viewer: Viewer, seqs: Iterable[int], limit: int) -> list[VisibleArc]:
    """List the active arcs of the given memories: the arcs with most of them first, then the latest.

    Superseded memories are left out.
    """
    reach, owners = reach_condition(viewer)
    clause, values = condition(Filter(viewer=viewer, current=True))
    rows = db.execute(
        f"SELECT arc.seq FROM arc JOIN arc_member ON arc_seq = arc.seq WHERE {reach} AND status = ? "  # noqa: S608
        "AND memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) "
        f"AND EXISTS (SELECT 1 FROM memory WHERE seq = memory_seq AND {clause}) "
        "GROUP BY arc.seq ORDER BY count(*) DESC, max(last_at) DESC, arc.seq LIMIT ?",
        (*owners, ArcStatus.ACTIVE, json.dumps(list(seqs)), *values, limit),
    ).fetchall()
    return [_get_visible_arc(db, row[0], viewer, current=True) for row in rows]


def list_threads(db: Connection, viewer: Viewer, limit: int) -> list[VisibleArc]:
    """List the active arcs that a viewer can see, the latest first, without superseded memories."""
    return _select(db, viewer, "status = ?", (ArcStatus.ACTIVE,), "last_at DESC, seq", limit, current=True)


def _select(
    db: Connection,
    viewer: Viewer,
    which: str,
    values: Sequence[Any],
    order: str = "seq",
    limit: int = 1,
    *,
    current: bool = False,
) -> list[VisibleArc]:
    """List the chosen arcs of which a viewer can see any member."""
    reach, owners = reach_condition(viewer)
    clause, visible = condition(Filter(viewer=viewer, current=current))
    seqs = list_rows(
        db,
        int,
        f"SELECT seq FROM arc WHERE {reach} AND {which} AND EXISTS (SELECT 1 FROM memory "  # noqa: S608 - constant text
        f"JOIN arc_member ON memory_seq = memory.seq WHERE arc_seq = arc.seq AND {clause}) ORDER BY {order} LIMIT ?",
        (*owners, *values, *visible, limit),
    )
    return [_get_visible_arc(db, seq, viewer, current=current) for seq in seqs]


def _get_visible_arc(db: Connection, arc_seq: int, viewer: Viewer, *, current: bool = False) -> VisibleArc:
    clause, values = condition(Filter(viewer=viewer, current=current))
    members = f"FROM memory JOIN arc_member ON memory_seq = memory.seq WHERE arc_seq = ? AND {clause}"
    arc_id, title, summary, status, scope_kind, scope_id, updated_at = db.execute(
        "SELECT id, title, summary, status, scope_kind, scope_id, updated_at FROM arc WHERE seq = ?", (arc_seq,)
    ).fetchone()
    size, first_at, last_at, quoted = db.execute(
        f"SELECT count(*), min(occurred_at), max(occurred_at), count(*) FILTER (WHERE trust <> ?) {members}",
        (Trust.TRUSTED, arc_seq, *values),
    ).fetchone()
    rows = db.execute(
        f"SELECT memory.seq, id, kind, substr(content, 1, {PREVIEW_CHARS}), occurred_at {members} "
        "ORDER BY position DESC LIMIT ?",
        (arc_seq, *values, SHOWN_MEMBERS),
    ).fetchall()
    shown = tuple(ArcMember(seq, memory_id, Kind(kind), text, at) for seq, memory_id, kind, text, at in reversed(rows))

    def is_said(text: str, tag: str = "") -> bool:
        exists = db.execute(
            f"SELECT 1 {members} AND (instr(content, ?) > 0 OR (? <> '' AND instr(tags, ?) > 0)) LIMIT 1",
            (arc_seq, *values, text, tag, json.dumps(tag)),
        )
        return bool(text) and exists.fetchone() is not None

    parts = [part for part in title.split(TITLE_SEPARATOR) if part != CAPTURED_TAG and is_said(part, part)]
    return VisibleArc(
        arc_seq,
        arc_id,
        TITLE_SEPARATOR.join(parts) or shown[-1].preview.partition("\n")[0][:80],
        " ".join(line for line in summary.split("\n") if is_said(line.removesuffix(CUT))),
        ArcStatus(status),
        Scope(ScopeKind(scope_kind), scope_id or None),
        Trust.EVIDENCE if quoted else Trust.TRUSTED,
        first_at,
        last_at,
        updated_at,
        size,
        shown,
    )


def _strands(db: Connection, rest: str, values: Sequence[Any]) -> list[Strand]:
    return list_rows(
        db,
        Strand,
        "SELECT seq, content, kind, session_id, occurred_at, tags, coalesce(given_importance, importance), "  # noqa: S608 - constant text
        "CASE WHEN kind = 'goal' THEN coalesce(json_extract(details, '$.status'), 'open') END "
        f"FROM memory WHERE {rest}",
        values,
    )


TABLES = (
    Table(
        "arc_member",
        ("memory_seq",),
        memory=("memory_seq",),
        erasure=_drop_of_memory,
        is_per_scope=True,
        orphans="arc_members",
        orphaned=f"{is_gone('arc_member.memory_seq')} "  # noqa: S608 - constant text
        "OR NOT EXISTS (SELECT 1 FROM arc WHERE arc.seq = arc_member.arc_seq)",
    ),
    Table(
        "arc",
        text=("title", "summary"),
        orphans="arcs",
        orphaned="NOT EXISTS (SELECT 1 FROM arc_member WHERE arc_member.arc_seq = arc.seq)",
    ),
)
