"""Entities: what memories mention, who mentions it, and what is mentioned beside it."""

from pipeline.errors import NotFound
from pipeline.records import OWNER, EntityKind
from pipeline.store import arcs, entities, maps
from web.api.entities import SEQ_DIGITS
from web.dashboard.fields import MAX_SEARCH_CHARS, Search
from web.dashboard.view import PAGE_SIZE, Paged, Section, View, cut, show

section = Section("entities")

RELATED = 20
# The threads of its newest memories stand for those of all.
THREADS, LOOKED_AT = 5, 200


class EntitiesQuery(Paged):
    """Which entities to list: those whose name holds `q`, whatever its case."""

    q: Search | None = None
    kind: EntityKind | None = None


@section.page("/entities", EntitiesQuery)
def list_all(view: View) -> str:
    """List entities, the most mentioned first."""
    query: EntitiesQuery = view.query
    below = None if query.before is None else divmod(query.before, 10**SEQ_DIGITS)
    with view.read() as db:
        found = entities.page(db, OWNER, query.q or "", query.kind, PAGE_SIZE + 1, below)
    items, next_url = cut(found, lambda one: one.mentions * 10**SEQ_DIGITS + one.seq)
    return show(
        "entities.html", view, title="Entities", entities=items, next_url=next_url, kinds=list(EntityKind), query=query
    )


@section.page("/entities/<entity_id>", Paged)
def entity(view: View, entity_id: str) -> str:
    """Show an entity and the memories that mention it, newest first."""
    with view.read() as db:
        found = entities.get(db, OWNER, entity_id)
        if found is None:
            raise NotFound("No memory mentions such an entity any more.")
        listed = entities.mentioning(db, OWNER, found.seq, PAGE_SIZE + 1, view.query.before)
        items, next_url = cut(listed, lambda memory: memory.seq)
        newest = entities.newest(db, found.seq, LOOKED_AT)
        values = {
            "span": entities.span(db, OWNER, found.seq),
            "related": entities.beside(db, OWNER, [found.seq], RELATED),
            "threads": arcs.active_of(db, OWNER, newest, THREADS),
            "community": maps.community_of(db, found.seq),
        }
    sought = found.name if len(found.name) <= MAX_SEARCH_CHARS else found.id
    return show(
        "entity.html", view, title=found.name, entity=found, memories=items, next_url=next_url, sought=sought, **values
    )
