"""Arcs: which memories tell one story, and how far it has come."""

from collections import Counter
from collections.abc import Sequence

from pipeline.records import OWNER
from pipeline.services import arcs
from pipeline.services.arcs import ArcStatus
from web.dashboard.time_axis import TimeAxis, axis_over
from web.dashboard.view import PAGE_SIZE, Paged, Section, View, next_page, show

section = Section("arcs")

# How finely the course of an arc is drawn.
BINS = 80


class ArcsPageQuery(Paged):
    """Which arcs to list."""

    status: ArcStatus | None = None


@section.page("/arcs", ArcsPageQuery)
def list_all(view: View) -> str:
    """List arcs, the active ones first, among equals the latest to go on first."""
    page = arcs.list_arcs(view.workspace, OWNER, view.query.status, PAGE_SIZE, view.query.before, active_first=True)
    return show(
        "arcs.html",
        view,
        title="Arcs",
        arcs=page.items,
        next_url=next_page(page.next_cursor),
        statuses=list(ArcStatus),
        line=axis_over([*(at for arc in page.items for at in (arc.first_at, arc.last_at)), view.now]),
    )


@section.page("/arcs/<arc_id>", Paged)
def arc(view: View, arc_id: str) -> str:
    """Show one arc: its course in time, and what it is made of."""
    found = arcs.read_arc(view.workspace, OWNER, arc_id, PAGE_SIZE, view.query.before)
    axis = axis_over(found.moments)
    return show(
        "arc.html",
        view,
        title=found.arc.title,
        arc=found.arc,
        members=found.members.items,
        next_url=next_page(found.members.next_cursor),
        line=axis,
        course=course(axis, found.moments),
        bins=BINS,
    )


def course(axis: TimeAxis, moments: Sequence[str]) -> list[tuple[int, float]]:
    """Return (bin, height) of every bin of a time axis in which something happened; the fullest is 1 high."""
    counted = Counter(min(int(axis.position(moment) * BINS / 100), BINS - 1) for moment in moments)
    most = max(counted.values(), default=1)
    return [(number, count / most) for number, count in sorted(counted.items())]
