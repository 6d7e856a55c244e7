"""Vocabulary bridges: pairs of names that recall treats as one thing."""

from pipeline.records import Page
from pipeline.services import bridges
from pipeline.store.bridges import Bridge, BridgeSource
from web.api import bodies
from web.api.answers import Answer, PageAnswer
from web.call import Call
from web.endpoint import Api, Endpoint

api = Api("bridges")


class BridgesQuery(bodies.PageQuery):
    """A page of the bridges in use or, with `removed`, of those that were removed."""

    removed: bool = False


class BridgeAnswer(Answer):
    """Two names for one thing, how they were found, and the memory that shows it."""

    id: str
    first: str
    second: str
    source: BridgeSource
    memory_id: str
    at: str
    removed_at: str | None
    removed_by: str | None


class BridgesAnswer(PageAnswer[BridgeAnswer]):
    """A page of bridges."""


@api.route(Endpoint("GET", "/v1/bridges", answer=BridgesAnswer, problems=(404,)))
def list_bridges(call: Call, query: BridgesQuery) -> Page[Bridge]:
    """List names that recall treats as one thing."""
    return bridges.list_bridges(call.workspace, removed=query.removed, limit=query.limit, before=query.before)


@api.route(Endpoint("DELETE", "/v1/bridges/{bridge_id}", answer=BridgeAnswer, problems=(404, 409)))
def remove_bridge(call: Call, bridge_id: str) -> Bridge:
    """Remove a bridge; no job finds it again."""
    return bridges.remove_bridge(call.workspace, bridge_id, call.caller.person_id)


@api.route(Endpoint("POST", "/v1/bridges/{bridge_id}/restore", answer=BridgeAnswer, problems=(404, 409)))
def restore_bridge(call: Call, bridge_id: str) -> Bridge:
    """Use a removed bridge again."""
    return bridges.restore_bridge(call.workspace, bridge_id)
