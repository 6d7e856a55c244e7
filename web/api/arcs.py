"""Threads: which memories tell one story, and how far it has come."""

from typing import Any

from pipeline.records import Kind, Trust
from pipeline.store import arcs
from pipeline.store.arcs import ArcStatus, ShownArc
from web.api import bodies
from web.api.answers import Answer, ScopeAnswer
from web.api.render import page_json
from web.endpoint import Api, Call, Endpoint

api = Api("arcs")


class ArcsQuery(bodies.ViewerQuery):
    """Which threads to list."""

    status: ArcStatus | None = None


class ArcMemberAnswer(Answer):
    """A memory of a thread, by how it begins."""

    id: str
    kind: Kind
    preview: str
    occurred_at: str


class ArcAnswer(Answer):
    """A thread; title and summary quote its members, `members` are the last ones in order of time, `size` counts all.

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


class ArcsAnswer(Answer):
    """A page of threads."""

    items: list[ArcAnswer]
    next_cursor: str | None


@api.route(
    Endpoint(
        "GET",
        "/v1/arcs",
        "List the narrative threads, the latest to go on first",
        query=ArcsQuery,
        answer=ArcsAnswer,
        problems=(404,),
    )
)
def list_arcs(call: Call) -> dict[str, Any]:
    """List a page of threads."""
    query: ArcsQuery = call.query
    with call.front.databases.get(call.workspace_id).read() as db:
        found = arcs.page(db, query.viewer(), query.status, query.limit + 1, query.before)
    return dict(page_json(found, query.limit, lambda arc: arc.seq, arc_json))


def arc_json(arc: ShownArc) -> dict[str, Any]:
    """Render a thread."""
    return {
        "id": arc.id,
        "title": arc.title,
        "summary": arc.summary,
        "status": arc.status,
        "scope": {"kind": arc.scope.kind, "id": arc.scope.id},
        "trust": arc.trust,
        "first_at": arc.first_at,
        "last_at": arc.last_at,
        "updated_at": arc.updated_at,
        "size": arc.size,
        "members": [
            {"id": member.id, "kind": member.kind, "preview": member.preview, "occurred_at": member.occurred_at}
            for member in arc.members
        ],
    }
