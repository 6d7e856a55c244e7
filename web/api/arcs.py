"""Arcs: which memories tell one story, and how far it has come."""

from pipeline.records import Kind, Page, Trust
from pipeline.services import arcs
from pipeline.services.arcs import ArcStatus, VisibleArc
from web.api import bodies
from web.api.answers import Answer, PageAnswer, ScopeAnswer
from web.endpoint import Api, Call, Endpoint

api = Api("arcs")


class ArcsQuery(bodies.ViewerQuery):
    """Which arcs to list."""

    status: ArcStatus | None = None


class ArcMemberAnswer(Answer):
    """A memory of an arc, by how it begins."""

    id: str
    kind: Kind
    preview: str
    occurred_at: str


class ArcAnswer(Answer):
    """An arc; title and summary quote its members, `members` are the last ones in order of time, `size` counts all.

    `trust` is `evidence` as soon as one member is.
    """

    id: str
    title: str
    summary: str
    status: ArcStatus
    scope: ScopeAnswer
    trust: Trust
    first_at: str
    last_at: str
    updated_at: str
    size: int
    members: list[ArcMemberAnswer]


class ArcsAnswer(PageAnswer[ArcAnswer]):
    """A page of arcs."""


@api.route(
    Endpoint(
        "GET",
        "/v1/arcs",
        "List the arcs of memories that tell one story, the latest to go on first",
        query=ArcsQuery,
        answer=ArcsAnswer,
        problems=(404,),
    )
)
def list_arcs(call: Call) -> Page[VisibleArc]:
    """List a page of arcs."""
    query: ArcsQuery = call.query
    return arcs.list_arcs(call.workspace, query.viewer(), query.status, query.limit, query.before)
