"""Entities that memories mention, as a list and as a map."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import islice
from operator import attrgetter
from typing import Annotated, Any

from flask import Response, request, url_for
from pydantic import Field, StringConstraints
from werkzeug.wrappers import Response as AnyResponse

from pipeline.features.entities import usecases as entities
from pipeline.features.maintenance import usecases as maintenance
from pipeline.features.map.store import NO_COMMUNITY, Community, MapEntity
from pipeline.kernel.errors import NotFound
from pipeline.kernel.kinds import render_text
from pipeline.kernel.records import EntityKind
from web.dashboard.filters import preview, words
from web.dashboard.view import (
    MAX_SEARCH_CHARS,
    PAGE_SIZE,
    Link,
    Paged,
    Search,
    Section,
    View,
    back,
    next_page,
    show,
)
from web.http.access import Right
from web.http.endpoint import json_response

section = Section("entities", link=Link("Entities", "entities_list_all", "Knowledge", 47))
# The map contains all entities that the owner of the data directory can see.
map_section = Section("map", Right.HOME, Link("Map", "map_whole", "Memory", 45))


@section.page("/entities", Paged)
def list_all(view: View, *, q: Search | None = None, kind: EntityKind | None = None) -> str:
    """List the entities whose name contains `q`, the most mentioned first."""
    page = entities.list_entities(view.workspace, view.workspace.onlooker, q or "", kind, PAGE_SIZE, view.query.before)
    return show(
        "entities.html",
        view,
        title="Entities",
        entities=page.items,
        next_url=next_page(page.next_cursor),
        kinds=list(EntityKind),
        query=view.query,
    )


@section.page("/entities/<entity_id>", Paged)
def entity(view: View, entity_id: str) -> str:
    """Show an entity and the memories that mention it, newest first."""
    page = entities.read_entity(view.workspace, view.workspace.onlooker, entity_id, PAGE_SIZE, view.query.before)
    name = page.entity.name
    return show(
        "entity.html",
        view,
        title=name,
        entity=page.entity,
        aliases=page.aliases,
        memories=page.memories.items,
        related=page.related,
        next_url=next_page(page.memories.next_cursor),
        sought=name if len(name) <= MAX_SEARCH_CHARS else page.entity.id,
        context=entities.read_context(view.workspace, view.workspace.onlooker, page.entity),
    )


# Number of community colours; further communities reuse them.
COLOURS = 12
COMMUNITIES = 40
# The title of a community lists its most central entities.
NAMED_BY, NAME_CHARS = 3, 28
LABEL_CHARS = 60

Offset = Annotated[int, Field(ge=0, lt=10**6)]


@map_section.page("/map")
def whole(
    view: View,
    *,
    around: Annotated[str, StringConstraints(max_length=64)] | None = None,
    before: Offset | None = None,
) -> str:
    """Show the map around an entity, and the communities after the first `before`."""
    start = before or 0
    entity_map = entities.read_map(view.workspace, around)
    listed = entity_map.communities
    more = len(listed) > start + COMMUNITIES
    return show(
        "map.html",
        view,
        title="Map",
        drawing=entity_map.drawing,
        communities=[
            (group, title_of(group), colour_of(group.number)) for group in listed[start : start + COMMUNITIES]
        ],
        count=len([group for group in listed if group.number != NO_COMMUNITY]),
        size=sum(group.size for group in listed),
        waiting=entity_map.waiting,
        chosen=entity_map.chosen,
        charted=entity_map.charted,
        next_url=next_page(start + COMMUNITIES if more else None),
    )


@map_section.page("/map/data")
def data(view: View) -> AnyResponse:
    """Return the map as JSON with an ETag, so that an unchanged map is not sent again."""
    map_data = entities.read_map_data(view.workspace)
    head = {"drawing": map_data.drawing.number, "waiting": map_data.waiting}
    text = json.dumps(head | _columns(map_data.entities), ensure_ascii=False, separators=(",", ":"))
    answer = Response(f'{text[:-1]},"ties":[{map_data.ties}]}}', mimetype="application/json")
    answer.set_etag(hashlib.sha256(answer.get_data()).hexdigest()[:32])
    return answer.make_conditional(request)


@map_section.page("/map/around/<entity_id>")
def around(view: View, entity_id: str) -> Response:
    """Return the details of an entity for the panel next to the map."""
    surroundings = entities.read_surroundings(view.workspace, entity_id)
    entity = surroundings.entity
    return json_response(
        {
            "name": preview(entity.name),
            "kind": words(entity.kind),
            "mentions": entity.mentions,
            "page": url_for("dashboard.entities_entity", entity_id=entity.id),
            "neighbours": [
                {"id": neighbour.id, "name": preview(neighbour.name, LABEL_CHARS), "memories": neighbour.mentions}
                for neighbour in surroundings.neighbours
            ],
            "memories": [
                {
                    "text": preview(render_text(memory), 160),
                    "at": memory.occurred_at,
                    "page": url_for("dashboard.memory_record", memory_id=memory.id),
                }
                for memory in surroundings.memories
            ],
        }
    )


@map_section.page("/map/communities/<number>", Paged)
def community(view: View, number: str) -> str:
    """List the entities of a community, most central first."""
    if not number.removeprefix("-").isdecimal() or len(number) > 6:
        raise NotFound("There is no such community. The map may have been redrawn; open it again.")
    members = entities.list_members(view.workspace, int(number), PAGE_SIZE, view.query.before or 0)
    return show(
        "map_community.html",
        view,
        title=title_of(members.community),
        community=members.community,
        colour=colour_of(members.community.number),
        members=members.members.items,
        next_url=next_page(members.members.next_cursor),
    )


@map_section.action("/map/draw")
def draw(view: View) -> AnyResponse:
    """Queue the job that draws the map."""
    maintenance.request_job(view.workspace, view.container.feedback, entities.MAP_JOB)
    return back(view, "The map is being redrawn. This takes a few seconds.", to=url_for("dashboard.map_whole"))


def title_of(group: Community) -> str:
    """Return the title of a community."""
    return _title(group.number, [member.name for member in group.members])


def colour_of(number: int) -> str:
    """Return the class of a community's colour."""
    return "none" if number == NO_COMMUNITY else str(number % COLOURS)


def _title(number: int, names: Iterable[str]) -> str:
    if number == NO_COMMUNITY:
        return "Unconnected"
    # A person and an organisation can have the same name.
    return ", ".join(dict.fromkeys(preview(name, NAME_CHARS) for name in islice(names, NAMED_BY)))


def _columns(spots: Sequence[MapEntity]) -> dict[str, Any]:
    """Return the entities as columns; ties refer to their row numbers."""
    kinds = list(EntityKind)
    order = {kind: number for number, kind in enumerate(kinds)}
    members: dict[int, list[MapEntity]] = {}
    for spot in spots:
        members.setdefault(spot.community, []).append(spot)
    central = {
        number: _title(number, (spot.name for spot in nlargest(NAMED_BY, group, key=attrgetter("centrality"))))
        for number, group in members.items()
    }
    return {
        "communities": list(central.items()),
        "kinds": [words(kind) for kind in kinds],
        "seqs": [spot.seq for spot in spots],
        "ids": [spot.id for spot in spots],
        "names": [preview(spot.name, LABEL_CHARS) for spot in spots],
        "kind": [order[spot.kind] for spot in spots],
        "x": [round(spot.x) for spot in spots],
        "y": [round(spot.y) for spot in spots],
        "radius": [spot.radius for spot in spots],
        "community": [spot.community for spot in spots],
        "mentions": [spot.mentions for spot in spots],
    }
