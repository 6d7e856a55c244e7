"""The map of entities, for the person whose home it is: what is drawn where, communities, and drawing it anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.errors import NotFound
from pipeline.records import OWNER, Memory, Page
from pipeline.services.workspace import Workspace
from pipeline.store import entities, maps, runs
from pipeline.store.entities import MentionedEntity
from pipeline.store.maps import STRAY, Community, CommunityMember, MapDrawing, MapEntity, MapNeighbour

__all__ = [
    "MAP_JOB",
    "STRAY",
    "Community",
    "CommunityMember",
    "CommunityPage",
    "MapData",
    "MapEntity",
    "MapOverview",
    "MapSurroundings",
    "list_members",
    "read_map",
    "read_map_data",
    "read_surroundings",
]

MAP_JOB = "layout"
# So many of a community's members are listed with it.
MEMBERS = 6
NEIGHBOURS, MEMORIES = 12, 4


@dataclass(frozen=True, slots=True)
class MapOverview:
    """The drawing that is shown, its communities, and whether another one is on its way.

    `chosen` is the entity that was asked for, `charted` whether it has a place on the map.
    """

    drawing: MapDrawing
    communities: Sequence[Community]
    waiting: bool
    chosen: MentionedEntity | None
    charted: bool


@dataclass(frozen=True, slots=True)
class MapData:
    """Everything that is drawn; the ties are one text, all row numbers in a row with commas."""

    drawing: MapDrawing
    waiting: bool
    entities: Sequence[MapEntity]
    ties: str


@dataclass(frozen=True, slots=True)
class MapSurroundings:
    """An entity on the map, what it is tied to, and the newest memories that mention it."""

    entity: MentionedEntity
    neighbours: Sequence[MapNeighbour]
    memories: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class CommunityPage:
    """A community and a page of its members, the most central first; the cursor counts those before."""

    community: Community
    members: Page[CommunityMember]


def read_map(workspace: Workspace, around: str | None) -> MapOverview:
    """Return what there is to know of the map as a whole."""
    with workspace.database.read() as db:
        chosen = None if around is None else entities.get(db, OWNER, around)
        charted = chosen is not None and maps.community_of(db, chosen.seq) is not None
        return MapOverview(
            maps.get_shown_drawing(db), maps.communities(db, MEMBERS), _is_being_drawn(db), chosen, charted
        )


def read_map_data(workspace: Workspace) -> MapData:
    """Return everything that is drawn."""
    with workspace.database.read() as db:
        return MapData(maps.get_shown_drawing(db), _is_being_drawn(db), maps.spots(db), maps.join_ties(db))


def read_surroundings(workspace: Workspace, entity_id: str) -> MapSurroundings:
    """Return what stands around an entity; raise NotFound where nothing mentions it."""
    with workspace.database.read() as db:
        found = entities.get(db, OWNER, entity_id)
        if found is None:
            raise NotFound("No memory mentions such an entity any more.")
        near = maps.neighbours(db, found.seq, NEIGHBOURS)
        return MapSurroundings(found, near, entities.list_mentioning(db, OWNER, found.seq, MEMORIES, None))


def list_members(workspace: Workspace, number: int, limit: int, start: int) -> CommunityPage:
    """List what belongs to a community, from behind so many others; raise NotFound where there is none."""
    with workspace.database.read() as db:
        found = next((one for one in maps.communities(db, MEMBERS) if one.number == number), None)
        if found is None:
            raise NotFound("There is no such community; the map is drawn anew at night.")
        members = maps.members(db, number, limit + 1, start)
    more = len(members) > limit
    return CommunityPage(found, Page(members[:limit], start + limit if more else None))


def _is_being_drawn(db: Connection) -> bool:
    last = runs.last(db, MAP_JOB)
    return MAP_JOB in runs.list_requested(db) or (last is not None and last.ended_at is None)
