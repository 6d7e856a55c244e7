"""Entities: the names in memories, the memories that mention them, their neighbors, and the map of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from pipeline.features.entities import alias_store as entity_aliases, store as entities
from pipeline.features.map import store as maps
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import OWNER, EntityKind, Memory, Page, Viewer, page_of
from pipeline.kernel.registry import collect
from pipeline.kernel.store import runs
from pipeline.kernel.workspace import Workspace

RELATED = 20
# The arcs of the newest memories represent those of all.
ARCS, LOOKED_AT = 5, 200
# The graph shows only the most frequent neighbors of each entity.
EDGES_A_NODE = 4
# A position in a list by mentions: their number, then the row number with leading zeros.
SEQ_DIGITS = 10


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """An entity with its other names, a page of the memories that mention it, newest first, and related entities."""

    entity: maps.MentionedEntity
    aliases: Sequence[str]
    memories: Page[Memory]
    related: Sequence[maps.MentionedEntity]


@dataclass(frozen=True, slots=True)
class EntityContext:
    """When an entity was mentioned first and last, the active arcs about it, and its community on the map, if any."""

    span: entities.EntitySpan
    arcs: Sequence[Any]
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

    nodes: Sequence[maps.MentionedEntity]
    edges: Sequence[GraphEdge]


def list_entities(
    workspace: Workspace, viewer: Viewer, text: str, kind: EntityKind | None, limit: int, before: int | None
) -> Page[maps.MentionedEntity]:
    """List entities whose name contains a text in any case, most mentioned first."""
    below = None if before is None else divmod(before, 10**SEQ_DIGITS)
    with workspace.database.read() as db:
        page = entities.page(db, viewer, text, kind, limit + 1, below)
    return page_of(page, limit, lambda entity: entity.mentions * 10**SEQ_DIGITS + entity.seq)


def read_entity(workspace: Workspace, viewer: Viewer, entity_id: str, limit: int, before: int | None) -> EntityRecord:
    """Return an entity; raise NotFound if no readable memory mentions it."""
    with workspace.database.read() as db:
        entity = _get_entity(db, viewer, entity_id)
        mentioning = entities.list_mentioning(db, viewer, entity.seq, limit + 1, before)
        related = entities.beside(db, viewer, [entity.seq], RELATED)
        aliases = entities.list_aliases(db, viewer, entity)
    return EntityRecord(entity, aliases, page_of(mentioning, limit, lambda memory: memory.seq), related)


def merge_entity(workspace: Workspace, viewer: Viewer, entity_id: str, into: str) -> maps.MentionedEntity:
    """Make an entity's name another name of a second entity, given by id or name; return the second entity.

    Raises NotFound if no readable memory mentions one of them, Conflict if they are the same entity.
    """
    with workspace.database.write() as db:
        entity, target = _get_entity(db, viewer, entity_id), entities.find(db, viewer, into)
        if target is None:
            raise NotFound(
                "Cannot merge: no memory mentions the second entity. `reverie graph entities list` lists the names."
            )
        if target.seq == entity.seq:
            raise Conflict("Cannot merge an entity into itself. Name another entity.")
        entity_aliases.merge(
            db, (entity.kind, entity.name), (target.kind, target.name), entity_aliases.AliasOrigin.USER
        )
        return _get_entity(db, viewer, target.id)


def split_entity(workspace: Workspace, viewer: Viewer, entity_id: str, alias: str) -> maps.MentionedEntity:
    """Make another name of an entity an entity again, forever; return the entity that it was merged into.

    A worker then links the memories again. Raises NotFound if the entity has no such other name.
    """
    with workspace.database.write() as db:
        entity = _get_entity(db, viewer, entity_id)
        merged = entity_aliases.list_aliases(db, (entity.kind, entity.name))
        chosen = next((each for each in merged if alias.casefold() == each.name[1].casefold()), None)
        if chosen is None:
            raise NotFound(
                "The entity has no such other name. `reverie graph entities show NAME` lists its other names."
            )
        entity_aliases.separate(db, chosen, forever=True)
        return entities.get(db, viewer, entity_id) or entity


def read_context(workspace: Workspace, viewer: Viewer, entity: maps.MentionedEntity) -> EntityContext:
    """Return the time span, arcs and community of an entity."""
    with workspace.database.read() as db:
        newest = entities.newest(db, entity.seq, LOOKED_AT)
        return EntityContext(
            entities.span(db, viewer, entity.seq),
            collect("list_threads_of", db, viewer, newest, ARCS),
            maps.community_of(db, entity.seq),
        )


def read_graph(workspace: Workspace, viewer: Viewer, around: str, depth: int, limit: int) -> EntityGraph:
    """Return the neighborhood of an entity, by id or name, and the pairs mentioned together."""
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
        [maps.MentionedEntity(node.seq, node.id, node.kind, node.name, mentions[node.seq]) for node in nodes],
        [GraphEdge(ids[tie.low], ids[tie.high], tie.memories) for tie in ties],
    )


def _get_entity(db: Connection, viewer: Viewer, entity_id: str) -> maps.MentionedEntity:
    entity = entities.get(db, viewer, entity_id)
    if entity is None:
        raise NotFound("No memory mentions such an entity.")
    return entity


def _list_around(
    db: Connection, viewer: Viewer, centre: maps.MentionedEntity, depth: int, limit: int
) -> list[maps.MentionedEntity]:
    """List an entity and the entities mentioned with it, ring by ring, most frequent first."""
    nodes = [centre]
    for ring in range(1, depth + 1):
        # Reserve a share of the nodes for outer rings; otherwise the first ring would take all.
        room = limit - len(nodes) if ring == depth else (limit - 1) // 2
        if room > 0:
            nodes += entities.beside(db, viewer, [node.seq for node in nodes], room)
    return nodes


MAP_JOB = "layout"
# Number of members to list with a community.
MEMBERS = 6
NEIGHBOURS, MEMORIES = 12, 4


@dataclass(frozen=True, slots=True)
class MapOverview:
    """The current map, its communities, and whether a new map is being drawn.

    `chosen` is the requested entity, `charted` whether it is on the map.
    """

    drawing: maps.MapDrawing
    communities: Sequence[maps.Community]
    waiting: bool
    chosen: maps.MentionedEntity | None
    charted: bool


@dataclass(frozen=True, slots=True)
class MapData:
    """Everything on the map; `ties` is one text with all row numbers, separated by commas."""

    drawing: maps.MapDrawing
    waiting: bool
    entities: Sequence[maps.MapEntity]
    ties: str


@dataclass(frozen=True, slots=True)
class MapSurroundings:
    """An entity on the map, its neighbors, and the newest memories that mention it."""

    entity: maps.MentionedEntity
    neighbours: Sequence[maps.MentionedEntity]
    memories: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class CommunityPage:
    """A community and a page of its members, the most central first; the cursor counts those before."""

    community: maps.Community
    members: Page[maps.MentionedEntity]


def read_map(workspace: Workspace, around: str | None) -> MapOverview:
    """Return an overview of the map."""
    with workspace.database.read() as db:
        chosen = None if around is None else entities.get(db, OWNER, around)
        charted = chosen is not None and maps.community_of(db, chosen.seq) is not None
        return MapOverview(
            maps.get_shown_drawing(db), maps.list_communities(db, MEMBERS), _is_being_drawn(db), chosen, charted
        )


def read_map_data(workspace: Workspace) -> MapData:
    """Return everything on the map."""
    with workspace.database.read() as db:
        return MapData(maps.get_shown_drawing(db), _is_being_drawn(db), maps.list_spots(db), maps.join_ties(db))


def read_surroundings(workspace: Workspace, entity_id: str) -> MapSurroundings:
    """Return the neighborhood of an entity; raise NotFound if no memory mentions it."""
    with workspace.database.read() as db:
        entity = _get_entity(db, OWNER, entity_id)
        near = maps.list_neighbours(db, entity.seq, NEIGHBOURS)
        return MapSurroundings(entity, near, entities.list_mentioning(db, OWNER, entity.seq, MEMORIES, None))


def list_members(workspace: Workspace, number: int, limit: int, start: int) -> CommunityPage:
    """List the members of a community after `start` others; raise NotFound if there is no such community."""
    with workspace.database.read() as db:
        community = next(
            (community for community in maps.list_communities(db, MEMBERS) if community.number == number), None
        )
        if community is None:
            raise NotFound("There is no such community; the map is drawn anew at night.")
        members = maps.members(db, number, limit + 1, start)
    more = len(members) > limit
    return CommunityPage(community, Page(members[:limit], start + limit if more else None))


def _is_being_drawn(db: Connection) -> bool:
    last = runs.last(db, MAP_JOB)
    return MAP_JOB in runs.list_requested(db) or (last is not None and last.ended_at is None)
