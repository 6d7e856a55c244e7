"""Entities: what memories mention, as a list and as a map, laid out at night."""

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

from pipeline.errors import NotFound
from pipeline.records import EntityKind
from pipeline.services import entities, maintenance
from pipeline.services.entities import MAP_JOB, STRAY, Community, MapEntity
from pipeline.services.memories import render_text
from web.access import Access
from web.dashboard.filters import preview, words
from web.dashboard.view import MAX_SEARCH_CHARS, PAGE_SIZE, Paged, Query, Search, Section, View, back, next_page, show
from web.endpoint import json_response

section = Section("entities")
# The map is drawn of all that the home's owner may see.
map_section = Section("map", Access.HOME)


class EntitiesPageQuery(Paged):
    """Which entities to list: those whose name holds `q`, whatever its case."""

    q: Search | None = None
    kind: EntityKind | None = None


@section.page("/entities", EntitiesPageQuery)
def list_all(view: View) -> str:
    """List entities, the most mentioned first."""
    query: EntitiesPageQuery = view.query
    page = entities.list_entities(
        view.workspace, view.workspace.onlooker, query.q or "", query.kind, PAGE_SIZE, query.before
    )
    return show(
        "entities.html",
        view,
        title="Entities",
        entities=page.items,
        next_url=next_page(page.next_cursor),
        kinds=list(EntityKind),
        query=query,
    )


@section.page("/entities/<entity_id>", Paged)
def entity(view: View, entity_id: str) -> str:
    """Show an entity and the memories that mention it, newest first."""
    found = entities.read_entity(view.workspace, view.workspace.onlooker, entity_id, PAGE_SIZE, view.query.before)
    name = found.entity.name
    return show(
        "entity.html",
        view,
        title=name,
        entity=found.entity,
        memories=found.memories.items,
        related=found.related,
        next_url=next_page(found.memories.next_cursor),
        sought=name if len(name) <= MAX_SEARCH_CHARS else found.entity.id,
        context=entities.read_context(view.workspace, view.workspace.onlooker, found.entity),
    )


# So many colours tell communities apart; beyond, they come again.
COLOURS = 12
COMMUNITIES = 40
# A community is called by its most central entities.
NAMED_BY, NAME_CHARS = 3, 28
LABEL_CHARS = 60

Offset = Annotated[int, Field(ge=0, lt=10**6)]


class MapQuery(Query):
    """Around which entity the map opens; the list of communities goes on behind `before` others."""

    around: Annotated[str, StringConstraints(max_length=64)] | None = None
    before: Offset | None = None


@map_section.page("/map", MapQuery)
def whole(view: View) -> str:
    """Show the map."""
    start = view.query.before or 0
    found = entities.read_map(view.workspace, view.query.around)
    listed = found.communities
    more = len(listed) > start + COMMUNITIES
    return show(
        "map.html",
        view,
        title="Map",
        drawing=found.drawing,
        communities=[(one, title_of(one), colour_of(one.number)) for one in listed[start : start + COMMUNITIES]],
        count=len([one for one in listed if one.number != STRAY]),
        size=sum(one.size for one in listed),
        waiting=found.waiting,
        chosen=found.chosen,
        charted=found.charted,
        next_url=next_page(start + COMMUNITIES if more else None),
    )


@map_section.page("/map/data")
def data(view: View) -> AnyResponse:
    """Return the map for the script that shows it; it is not sent again while it is as the script knows it."""
    found = entities.read_map_data(view.workspace)
    head = {"drawing": found.drawing.number, "waiting": found.waiting}
    text = json.dumps(head | _columns(found.entities), ensure_ascii=False, separators=(",", ":"))
    answer = Response(f'{text[:-1]},"ties":[{found.ties}]}}', mimetype="application/json")
    answer.set_etag(hashlib.sha256(answer.get_data()).hexdigest()[:32])
    return answer.make_conditional(request)


@map_section.page("/map/around/<entity_id>")
def around(view: View, entity_id: str) -> Response:
    """Return what the panel beside the map tells of an entity."""
    found = entities.read_surroundings(view.workspace, entity_id)
    entity = found.entity
    return json_response(
        {
            "name": preview(entity.name),
            "kind": words(entity.kind),
            "mentions": entity.mentions,
            "page": url_for("dashboard.entities_entity", entity_id=entity.id),
            "neighbours": [
                {"id": one.id, "name": preview(one.name, LABEL_CHARS), "memories": one.memories}
                for one in found.neighbours
            ],
            "memories": [
                {
                    "text": preview(render_text(memory), 160),
                    "at": memory.occurred_at,
                    "page": url_for("dashboard.memory_record", memory_id=memory.id),
                }
                for memory in found.memories
            ],
        }
    )


@map_section.page("/map/communities/<number>", Paged)
def community(view: View, number: str) -> str:
    """List what belongs to a community, the most central first."""
    if not number.removeprefix("-").isdecimal() or len(number) > 6:
        raise NotFound("There is no such community. The map may have been redrawn; open it again.")
    found = entities.list_members(view.workspace, int(number), PAGE_SIZE, view.query.before or 0)
    return show(
        "map_community.html",
        view,
        title=title_of(found.community),
        community=found.community,
        colour=colour_of(found.community.number),
        members=found.members.items,
        next_url=next_page(found.members.next_cursor),
    )


@map_section.action("/map/draw")
def draw(view: View) -> AnyResponse:
    """Ask for a map now."""
    maintenance.request_job(view.workspace, view.container.feedback, MAP_JOB)
    return back(view, "The map is being redrawn. This takes a few seconds.", to=url_for("dashboard.map_whole"))


def title_of(one: Community) -> str:
    """Return the name of a community."""
    return _title(one.number, [member.name for member in one.members])


def colour_of(number: int) -> str:
    """Return the class of a community's colour."""
    return "none" if number == STRAY else str(number % COLOURS)


def _title(number: int, names: Iterable[str]) -> str:
    if number == STRAY:
        return "Unconnected"
    # One name may be that of a person and of an organisation.
    return ", ".join(dict.fromkeys(preview(name, NAME_CHARS) for name in islice(names, NAMED_BY)))


def _columns(spots: Sequence[MapEntity]) -> dict[str, Any]:
    """Return what is known of entities, as columns; ties name them by their row numbers."""
    kinds = list(EntityKind)
    order = {kind: number for number, kind in enumerate(kinds)}
    members: dict[int, list[MapEntity]] = {}
    for spot in spots:
        members.setdefault(spot.community, []).append(spot)
    central = {
        number: _title(number, (spot.name for spot in nlargest(NAMED_BY, found, key=attrgetter("centrality"))))
        for number, found in members.items()
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
