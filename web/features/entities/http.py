"""The relations of memories: their entities, and entities in the same memories."""

from typing import Annotated

from pydantic import AliasChoices, AliasPath, Field, StringConstraints

from pipeline.features.entities import usecases as entities
from pipeline.features.map.store import MentionedEntity
from pipeline.kernel.records import EntityKind, Page, Viewer
from pipeline.kernel.records.people import Role
from web.http import bodies
from web.http.access import viewer_of
from web.http.answers import Answer, Cursor, MemoryAnswer, PageAnswer
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("graph", 125)

MAX_NODES = 100

Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class EntitiesQuery(bodies.ViewerQuery):
    """Filters of a list of entities; `q` is a part of the name, in any case."""

    q: Annotated[str, StringConstraints(max_length=500)] = ""
    kind: EntityKind | None = None


class GraphQuery(bodies.QueryString, bodies.ViewerFields):
    """The entity in the middle (its id or name), the depth of the graph, and its maximum number of entities."""

    around: Name
    depth: Annotated[int, Field(ge=1, le=2)] = 1
    limit: Annotated[int, Field(ge=1, le=MAX_NODES)] = 30


class MergeBody(bodies.Body):
    """The entity that keeps its name, by id or name."""

    into: Name


class SplitBody(bodies.Body):
    """Another name of the entity."""

    alias: Name


class EntitySummaryAnswer(Answer, of=MentionedEntity, without=("seq",)):
    """An entity, and the number of memories visible to the viewer that mention it."""


class EntitiesAnswer(PageAnswer[EntitySummaryAnswer]):
    """A page of entities."""


class RelatedAnswer(Answer, of=MentionedEntity, without=("seq", "mentions")):
    """An entity that shares memories with another entity, and their number."""

    memories: int = Field(validation_alias="mentions")


class WholeEntityAnswer(Answer, of=entities.EntityRecord, flat="entity", without=("seq",)):
    """An entity with its other names, a page of the memories that mention it, and the entities in the same memories."""

    memories: list[MemoryAnswer] = Field(validation_alias=AliasPath("memories", "items"))
    related: list[RelatedAnswer]
    next_cursor: Cursor = Field(validation_alias=AliasPath("memories", "next_cursor"))


# The API calls the ends of an edge `from` and `to`; `from` is a keyword of Python.
class GraphEdgeAnswer(Answer, of=entities.GraphEdge, without=("low", "high")):
    """Two entities that share memories, and the number of those memories."""

    from_: str = Field(validation_alias=AliasChoices("low", "from"), serialization_alias="from")
    to: str = Field(validation_alias="high")


class GraphAnswer(Answer, of=entities.EntityGraph):
    """A part of the graph."""


@api.route(Endpoint("GET", "/v1/entities", answer=EntitiesAnswer, problems=(404,)))
def list_entities(call: Call, query: EntitiesQuery) -> Page[MentionedEntity]:
    """List the entities that memories mention, most frequent first."""
    return entities.list_entities(
        call.workspace, query.viewer(call.caller), query.q, query.kind, query.limit, query.before
    )


@api.route(Endpoint("GET", "/v1/entities/{entity_id}", answer=WholeEntityAnswer, problems=(404,)))
def read_entity(call: Call, query: bodies.ViewerQuery, entity_id: str) -> entities.EntityRecord:
    """Read an entity, the memories that mention it (newest first), and the entities in the same memories."""
    return entities.read_entity(call.workspace, query.viewer(call.caller), entity_id, query.limit, query.before)


@api.route(
    Endpoint(
        "POST", "/v1/entities/{entity_id}/merge", answer=EntitySummaryAnswer, problems=(404, 409), needs=Role.OWNER
    )
)
def merge_entity(call: Call, body: MergeBody, entity_id: str) -> MentionedEntity:
    """Merge an entity into another, by id or name."""
    return entities.merge_entity(call.workspace, viewer_of(Viewer(), call.caller), entity_id, body.into)


@api.route(
    Endpoint("POST", "/v1/entities/{entity_id}/split", answer=EntitySummaryAnswer, problems=(404,), needs=Role.OWNER)
)
def split_entity(call: Call, body: SplitBody, entity_id: str) -> MentionedEntity:
    """Undo the merge of an alias permanently."""
    return entities.split_entity(call.workspace, viewer_of(Viewer(), call.caller), entity_id, body.alias)


@api.route(Endpoint("GET", "/v1/graph", answer=GraphAnswer, problems=(404,)))
def read_graph(call: Call, query: GraphQuery) -> entities.EntityGraph:
    """Show the entities around one entity, and which of them share memories."""
    return entities.read_graph(call.workspace, query.viewer(call.caller), query.around, query.depth, query.limit)
