"""Arcs: lists, the course of one arc, and what arcs add to other features."""

from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.features.arcs import store as arcs
from pipeline.kernel.errors import NotFound
from pipeline.kernel.records import Memory, Page, Viewer, page_of
from pipeline.kernel.workspace import Workspace

# A condition on `memory m`.
IS_KEPT = (
    "EXISTS (SELECT 1 FROM arc_member am JOIN arc a ON a.seq = am.arc_seq "
    "WHERE am.memory_seq = m.seq AND a.status = 'active')"
)


def list_likely_questions(db: Connection, limit: int) -> tuple[str, list[str]]:
    """Return the titles of active arcs."""
    return "arc", [arc.title for arc in arcs.page(db, Viewer(), arcs.ArcStatus.ACTIVE, limit, None)]


@dataclass(frozen=True, slots=True)
class ArcCourse:
    """An arc, a page of its members in time order, and the times of all its members."""

    arc: arcs.VisibleArc
    members: Page[Memory]
    moments: tuple[str, ...]


def list_arcs(
    workspace: Workspace,
    viewer: Viewer,
    status: arcs.ArcStatus | None,
    limit: int,
    before: int | None = None,
    *,
    active_first: bool = False,
) -> Page[arcs.VisibleArc]:
    """List arcs by their latest memory, newest first; with `active_first`, active arcs before all others."""
    with workspace.database.read() as db:
        page = arcs.page(db, viewer, status, limit + 1, before, active_first=active_first)
    return page_of(page, limit, lambda arc: arc.seq)


def read_arc(workspace: Workspace, viewer: Viewer, arc_id: str, limit: int, after: int | None) -> ArcCourse:
    """Return an arc with a page of its members; raise NotFound for an unknown arc."""
    with workspace.database.read() as db:
        arc = arcs.get(db, viewer, arc_id)
        if arc is None:
            raise NotFound("There is no such arc; arcs are found anew at night.")
        members = arcs.members(db, viewer, arc.seq, limit + 1, after)
        moments = arcs.pulse(db, viewer, arc.seq)
    return ArcCourse(arc, page_of(members, limit, lambda memory: memory.seq), tuple(moments))
