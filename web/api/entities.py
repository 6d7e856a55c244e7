"""What memories name, who names it, and what is named together."""

from sqlite3 import Connection
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from pipeline.errors import NotFound
from pipeline.records import EntityKind, Viewer
from pipeline.store import entities
from pipeline.store.entities import SeenEntity
from web.api import bodies
from web.api.answers import Answer, MemoryAnswer
from web.api.render import memory_json, page_json
from web.endpoint import Api, Call, Endpoint

api = Api("entities")

RELATED = 20
# Of each entity around the one that is asked for, the graph follows only its most frequent company.
MAX_NODES = 100
TIES_A_NODE = 4
# A place in a list by mentions: their number, then the row number with leading zeros.
SEQ_DIGITS = 10

Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class EntitiesQuery(bodies.ViewerQuery):
    """Which entities to list: those whose name holds `q`, whatever its case."""

    q: Annotated[str, StringConstraints(max_length=500)] = ""
    kind: EntityKind | None = None


class GraphQuery(bodies.QueryString):
    """Around which entity, by id or name, and how far and how much of the graph to show."""

    around: Name
    depth: Annotated[int, Field(ge=1, le=2)] = 1
    limit: Annotated[int, Field(ge=1, le=MAX_NODES)] = 30
    user: bodies.SessionId | None = None
    agent: bodies.SessionId | None = None
    session: bodies.SessionId | None = None
    task: bodies.SessionId | None = None

    def viewer(self) -> Viewer:
        """Return the record of who asks."""
        return Viewer(self.user, self.agent, self.session, self.task)


class EntityAnswer(Answer):
    """An entity, and how many memories that reach the viewer mention it."""

    id: str
    kind: EntityKind
    name: str
    mentions: int


class EntitiesAnswer(Answer):
    """A page of entities."""

    items: list[EntityAnswer]
    next_cursor: str | None


class RelatedAnswer(Answer):
    """An entity that is mentioned beside another one, and in how many memories."""

    id: str
    kind: EntityKind
    name: str
    memories: int


class WholeEntityAnswer(EntityAnswer):
    """An entity, a page of the memories that mention it, and what is mentioned beside it."""

    memories: list[MemoryAnswer]
    related: list[RelatedAnswer]
    next_cursor: str | None


# The contract calls an edge's ends `from` and `to`; the first is a word of the language.
class GraphEdgeAnswer(Answer):
    """Two entities that are mentioned together, and in how many memories."""

    from_: Annotated[str, Field(alias="from")]
    to: str
    memories: int


class GraphAnswer(Answer):
    """A part of the graph."""

    nodes: list[EntityAnswer]
    edges: list[GraphEdgeAnswer]


@api.route(
    Endpoint(
        "GET",
        "/v1/entities",
        "List what memories mention, most often first",
        query=EntitiesQuery,
        answer=EntitiesAnswer,
        problems=(404,),
    )
)
def list_entities(call: Call) -> dict[str, Any]:
    """List a page of entities."""
    query: EntitiesQuery = call.query
    below = None if query.before is None else divmod(query.before, 10**SEQ_DIGITS)
    with call.front.databases.get(call.workspace_id).read() as db:
        found = entities.page(db, query.viewer(), query.q.lower(), query.kind, query.limit + 1, below)
    return dict(page_json(found, query.limit, lambda entity: entity.mentions * 10**SEQ_DIGITS + entity.seq, _entity))


@api.route(
    Endpoint(
        "GET",
        "/v1/entities/{entity_id}",
        "Read an entity, who mentions it, newest first, and what is mentioned beside it",
        query=bodies.ViewerQuery,
        answer=WholeEntityAnswer,
        problems=(404,),
    )
)
def read_entity(call: Call, entity_id: str) -> dict[str, Any]:
    """Read an entity."""
    query: bodies.ViewerQuery = call.query
    viewer = query.viewer()
    with call.front.databases.get(call.workspace_id).read() as db:
        entity = entities.get(db, viewer, entity_id)
        if entity is None:
            raise NotFound("no such entity")
        found = entities.mentioning(db, viewer, entity.seq, query.limit + 1, query.before)
        related = entities.beside(db, viewer, [entity.seq], RELATED)
    page = page_json(found, query.limit, lambda memory: memory.seq, memory_json)
    return _entity(entity) | {
        "memories": page["items"],
        "related": [{"id": o.id, "kind": o.kind, "name": o.name, "memories": o.mentions} for o in related],
        "next_cursor": page["next_cursor"],
    }


@api.route(
    Endpoint(
        "GET",
        "/v1/graph",
        "Show the entities around one, and which are mentioned together",
        query=GraphQuery,
        answer=GraphAnswer,
        problems=(404,),
    )
)
def show_graph(call: Call) -> dict[str, Any]:
    """Show a part of the graph."""
    query: GraphQuery = call.query
    viewer = query.viewer()
    with call.front.databases.get(call.workspace_id).read() as db:
        centre = entities.find(db, viewer, query.around)
        if centre is None:
            raise NotFound("no such entity")
        nodes = _around(db, viewer, centre, query.depth, query.limit)
        mentions = entities.mention_counts(db, viewer, [node.seq for node in nodes])
        ties = entities.ties(db, viewer, [node.seq for node in nodes], TIES_A_NODE * len(nodes))
    ids = {node.seq: node.id for node in nodes}
    return {
        "nodes": [_entity(node) | {"mentions": mentions[node.seq]} for node in nodes],
        "edges": [{"from": ids[tie.low], "to": ids[tie.high], "memories": tie.memories} for tie in ties],
    }


def _around(db: Connection, viewer: Viewer, centre: SeenEntity, depth: int, limit: int) -> list[SeenEntity]:
    """List an entity and what is mentioned beside it, ring by ring, most often first."""
    nodes = [centre]
    for ring in range(1, depth + 1):
        # Outer rings have their share of the room, or the first would fill it.
        room = limit - len(nodes) if ring == depth else (limit - 1) // 2
        if room > 0:
            nodes += entities.beside(db, viewer, [node.seq for node in nodes], room)
    return nodes


def _entity(entity: SeenEntity) -> dict[str, Any]:
    return {"id": entity.id, "kind": entity.kind, "name": entity.name, "mentions": entity.mentions}
