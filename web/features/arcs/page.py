"""Pages about arcs."""

from collections import Counter
from collections.abc import Sequence

from pipeline.features.arcs import usecases
from pipeline.features.arcs.store import ArcStatus
from web.dashboard.time_axis import TimeAxis, axis_over
from web.dashboard.view import PAGE_SIZE, Link, Paged, Section, View, next_page, show

section = Section("arcs", link=Link("Arcs", "arcs_list_all", "Knowledge", 47))

# Number of bars in the chart of an arc.
BINS = 80


@section.page("/arcs", Paged)
def list_all(view: View, *, status: ArcStatus | None = None) -> str:
    """List arcs, active arcs first, then by latest memory."""
    page = usecases.list_arcs(
        view.workspace, view.workspace.onlooker, status, PAGE_SIZE, view.query.before, active_first=True
    )
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
    """Show an arc with its chart and its memories."""
    arc_page = usecases.read_arc(view.workspace, view.workspace.onlooker, arc_id, PAGE_SIZE, view.query.before)
    axis = axis_over(arc_page.moments)
    return show(
        "arc.html",
        view,
        title=arc_page.arc.title,
        arc=arc_page.arc,
        members=arc_page.members.items,
        next_url=next_page(arc_page.members.next_cursor),
        line=axis,
        course=course(axis, arc_page.moments),
        bins=BINS,
    )


def course(axis: TimeAxis, moments: Sequence[str]) -> list[tuple[int, float]]:
    """Return (bin, height) of each bin of a time axis that contains memories; the largest height is 1."""
    counted = Counter(min(int(axis.position(moment) * BINS / 100), BINS - 1) for moment in moments)
    most = max(counted.values(), default=1)
    return [(number, count / most) for number, count in sorted(counted.items())]
