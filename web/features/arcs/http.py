"""Narrative arcs."""

from pipeline.features.arcs import usecases
from pipeline.features.arcs.store import ArcMember, ArcStatus, VisibleArc
from pipeline.kernel.records import Page
from web.http import bodies
from web.http.answers import Answer, PageAnswer
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("arcs", 125, group="graph")


class ArcsQuery(bodies.ViewerQuery):
    """Filters of a list of arcs."""

    status: ArcStatus | None = None


class ArcMemberAnswer(Answer, of=ArcMember, without=("seq",), names_memory=True):
    """A memory of an arc, with the start of its text."""


class ArcAnswer(Answer, of=VisibleArc, without=("seq",)):
    """An arc. Title and summary quote its members; `members` lists the last ones in order of time; `size` counts all.

    `trust` is `evidence` as soon as one member is.
    """


class ArcsAnswer(PageAnswer[ArcAnswer]):
    """A page of arcs."""


@api.route(Endpoint("GET", "/v1/arcs", answer=ArcsAnswer, problems=(404,)))
def list_arcs(call: Call, query: ArcsQuery) -> Page[VisibleArc]:
    """List narrative arcs, most recently continued first."""
    return usecases.list_arcs(call.workspace, query.viewer(call.caller), query.status, query.limit, query.before)


ThreadAnswer = ArcAnswer
