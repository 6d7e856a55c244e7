"""Arcs: which memories tell one story, and how far it has come."""

from dataclasses import dataclass

from pipeline.errors import NotFound
from pipeline.records import Memory, Page, Viewer, page_of
from pipeline.services.workspace import Workspace
from pipeline.store import arcs
from pipeline.store.arcs import ArcStatus, VisibleArc

__all__ = ["ArcCourse", "ArcStatus", "VisibleArc", "list_arcs", "read_arc"]


@dataclass(frozen=True, slots=True)
class ArcCourse:
    """An arc, a page of its members in order of time, and when each of all its members happened."""

    arc: VisibleArc
    members: Page[Memory]
    moments: tuple[str, ...]


def list_arcs(
    workspace: Workspace,
    viewer: Viewer,
    status: ArcStatus | None,
    limit: int,
    before: int | None = None,
    *,
    active_first: bool = False,
) -> Page[VisibleArc]:
    """List arcs, the latest to go on first; with `active_first`, those that go on before all others."""
    with workspace.database.read() as db:
        found = arcs.page(db, viewer, status, limit + 1, before, active_first=active_first)
    return page_of(found, limit, lambda arc: arc.seq)


def read_arc(workspace: Workspace, viewer: Viewer, arc_id: str, limit: int, after: int | None) -> ArcCourse:
    """Return an arc with a page of its members; raise NotFound where there is none."""
    with workspace.database.read() as db:
        arc = arcs.get(db, viewer, arc_id)
        if arc is None:
            raise NotFound("There is no such arc; arcs are found anew at night.")
        members = arcs.members(db, viewer, arc.seq, limit + 1, after)
        moments = arcs.pulse(db, viewer, arc.seq)
    return ArcCourse(arc, page_of(members, limit, lambda memory: memory.seq), tuple(moments))
