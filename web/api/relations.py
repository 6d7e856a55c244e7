"""Edges between memories, as callers draw them."""

from typing import Any

from pipeline.records import EdgeKind
from pipeline.write.relate import draw, erase
from web.api import answers, bodies
from web.api.render import edge_json
from web.endpoint import Api, Call, Endpoint

api = Api("relations")


class EraseQuery(bodies.QueryString):
    """Which edge to take away: its kind and the memory that it points to."""

    kind: EdgeKind
    to: str


class EdgesAnswer(answers.Answer):
    """A memory's edges."""

    items: list[answers.EdgeAnswer]
    next_cursor: str | None


@api.route(
    Endpoint(
        "POST",
        "/v1/memories/{memory_id}/edges",
        "Say how a memory bears on another",
        body=bodies.EdgeBody,
        answer=EdgesAnswer,
        status=201,
        problems=(404, 503),
    )
)
def draw_edge(call: Call, memory_id: str) -> dict[str, Any]:
    """Draw an edge and list the memory's edges."""
    found = draw(call.front.databases.get(call.workspace_id), memory_id, call.body.record())
    return {"items": [edge_json(edge) for edge in found], "next_cursor": None}


@api.route(
    Endpoint(
        "DELETE",
        "/v1/memories/{memory_id}/edges",
        "Take an edge back",
        query=EraseQuery,
        answer=EdgesAnswer,
        problems=(404, 409, 503),
    )
)
def erase_edge(call: Call, memory_id: str) -> dict[str, Any]:
    """Take an edge away and list the memory's edges."""
    query: EraseQuery = call.query
    found = erase(call.front.databases.get(call.workspace_id), memory_id, query.kind, query.to)
    return {"items": [edge_json(edge) for edge in found], "next_cursor": None}
