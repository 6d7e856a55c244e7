"""Entities: what memories mention, who mentions it, and what is mentioned beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.errors import NotFound
from pipeline.records import EntityKind, Memory, Page, Viewer, page_of
from pipeline.services.workspace import Workspace
from pipeline.store import arcs, entities, maps
from pipeline.store.arcs import VisibleArc
from pipeline.store.entities import EntitySpan, MentionedEntity

__all__ = [
    "EntityContext",
    "EntityGraph",
    "EntityRecord",
    "GraphEdge",
    "MentionedEntity",
    "list_entities",
    "read_context",
    "read_entity",
    "read_graph",
]

RELATED = 20
# The arcs of its newest memories stand for those of all.
ARCS, LOOKED_AT = 5, 200
# Of each entity around the one that is asked for, the graph follows only its most frequent company.
EDGES_A_NODE = 4
# A place in a list by mentions: their number, then the row number with leading zeros.
SEQ_DIGITS = 10


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """An entity, a page of the memories that mention it, newest first, and what is mentioned beside it."""

    entity: MentionedEntity
    memories: Page[Memory]
    related: Sequence[MentionedEntity]


@dataclass(frozen=True, slots=True)
class EntityContext:
    """When an entity was mentioned first and last, the active arcs about it, and its community on the map, if any."""

    span: EntitySpan
    arcs: Sequence[VisibleArc]
    community: int | None


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """Two entities that are mentioned together, by id, and in how many memories."""

    low: str
    high: str
    memories: int


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """A part of the graph."""

    nodes: Sequence[MentionedEntity]
    edges: Sequence[GraphEdge]


def list_entities(
    workspace: Workspace, viewer: Viewer, text: str, kind: EntityKind | None, limit: int, before: int | None
) -> Page[MentionedEntity]:
    """List entities whose name holds a text, whatever its case, the most mentioned first."""
    below = None if before is None else divmod(before, 10**SEQ_DIGITS)
    with workspace.database.read() as db:
        found = entities.page(db, viewer, text, kind, limit + 1, below)
    return page_of(found, limit, lambda one: one.mentions * 10**SEQ_DIGITS + one.seq)


def read_entity(workspace: Workspace, viewer: Viewer, entity_id: str, limit: int, before: int | None) -> EntityRecord:
    """Return an entity; raise NotFound where nothing that may be shown mentions it."""
    with workspace.database.read() as db:
        entity = _get_entity(db, viewer, entity_id)
        mentioning = entities.list_mentioning(db, viewer, entity.seq, limit + 1, before)
        related = entities.beside(db, viewer, [entity.seq], RELATED)
    return EntityRecord(entity, page_of(mentioning, limit, lambda memory: memory.seq), related)


def read_context(workspace: Workspace, viewer: Viewer, entity: MentionedEntity) -> EntityContext:
    """Return what else is known of an entity."""
    with workspace.database.read() as db:
        newest = entities.newest(db, entity.seq, LOOKED_AT)
        return EntityContext(
            entities.span(db, viewer, entity.seq),
            arcs.active_of(db, viewer, newest, ARCS),
            maps.community_of(db, entity.seq),
        )


def read_graph(workspace: Workspace, viewer: Viewer, around: str, depth: int, limit: int) -> EntityGraph:
    """Return the entities around one, by id or name, and which are mentioned together."""
    with workspace.database.read() as db:
        centre = entities.find(db, viewer, around)
        if centre is None:
            raise NotFound("no such entity")
        nodes = _list_around(db, viewer, centre, depth, limit)
        seqs = [node.seq for node in nodes]
        mentions = entities.mention_counts(db, viewer, seqs)
        ties = entities.ties(db, viewer, seqs, EDGES_A_NODE * len(nodes))
    ids = {node.seq: node.id for node in nodes}
    return EntityGraph(
        [MentionedEntity(node.seq, node.id, node.kind, node.name, mentions[node.seq]) for node in nodes],
        [GraphEdge(ids[tie.low], ids[tie.high], tie.memories) for tie in ties],
    )


def _get_entity(db: Connection, viewer: Viewer, entity_id: str) -> MentionedEntity:
    entity = entities.get(db, viewer, entity_id)
    if entity is None:
        raise NotFound("No memory mentions such an entity.")
    return entity


def _list_around(
    db: Connection, viewer: Viewer, centre: MentionedEntity, depth: int, limit: int
) -> list[MentionedEntity]:
    """List an entity and what is mentioned beside it, ring by ring, most often first."""
    nodes = [centre]
    for ring in range(1, depth + 1):
        # Outer rings have their share of the room, or the first would fill it.
        room = limit - len(nodes) if ring == depth else (limit - 1) // 2
        if room > 0:
            nodes += entities.beside(db, viewer, [node.seq for node in nodes], room)
    return nodes
