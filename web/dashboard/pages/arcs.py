"""Arcs: which memories tell one story, and how far it has come."""

from collections import Counter
from collections.abc import Sequence

from pipeline.errors import NotFound
from pipeline.records import OWNER
from pipeline.store import arcs
from pipeline.store.arcs import ArcStatus
from web.dashboard.spans import Line, line_over
from web.dashboard.view import PAGE_SIZE, Paged, Section, View, cut, show

section = Section("arcs")

# How finely the course of an arc is drawn.
BINS = 80


class ArcsQuery(Paged):
    """Which arcs to list."""

    status: ArcStatus | None = None


@section.page("/arcs", ArcsQuery)
def list_all(view: View) -> str:
    """List arcs, the active ones first, among equals the latest to go on first."""
    with view.read() as db:
        found = arcs.page(db, OWNER, view.query.status, PAGE_SIZE + 1, view.query.before, active_first=True)
    items, next_url = cut(found, lambda arc: arc.seq)
    line = line_over([*(at for arc in items for at in (arc.first_at, arc.last_at)), view.now])
    return show("arcs.html", view, title="Arcs", arcs=items, next_url=next_url, statuses=list(ArcStatus), line=line)


@section.page("/arcs/<arc_id>", Paged)
def arc(view: View, arc_id: str) -> str:
    """Show one arc: its course in time, and what it is made of."""
    with view.read() as db:
        found = arcs.get(db, OWNER, arc_id)
        if found is None:
            raise NotFound("There is no such arc; arcs are found anew at night.")
        listed = arcs.members(db, OWNER, found.seq, PAGE_SIZE + 1, view.query.before)
        moments = arcs.pulse(db, OWNER, found.seq)
    members, next_url = cut(listed, lambda memory: memory.seq)
    line = line_over(moments)
    return show(
        "arc.html",
        view,
        title=found.title,
        arc=found,
        members=members,
        next_url=next_url,
        line=line,
        course=course(line, moments),
        bins=BINS,
    )


def course(line: Line, moments: Sequence[str]) -> list[tuple[int, float]]:
    """Return (bin, height) of every bin of a line of time in which something happened; the fullest is 1 high."""
    counted = Counter(min(int(line.place(moment) * BINS / 100), BINS - 1) for moment in moments)
    most = max(counted.values(), default=1)
    return [(number, count / most) for number, count in sorted(counted.items())]
