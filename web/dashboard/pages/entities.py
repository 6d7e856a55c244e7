"""Entities: what memories mention, who mentions it, and what is mentioned beside it."""

from pipeline.records import OWNER, EntityKind
from pipeline.services import entities
from web.dashboard.view import MAX_SEARCH_CHARS, PAGE_SIZE, Paged, Search, Section, View, next_page, show

section = Section("entities")


class EntitiesPageQuery(Paged):
    """Which entities to list: those whose name holds `q`, whatever its case."""

    q: Search | None = None
    kind: EntityKind | None = None


@section.page("/entities", EntitiesPageQuery)
def list_all(view: View) -> str:
    """List entities, the most mentioned first."""
    query: EntitiesPageQuery = view.query
    page = entities.list_entities(view.workspace, OWNER, query.q or "", query.kind, PAGE_SIZE, query.before)
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
    found = entities.read_entity(view.workspace, OWNER, entity_id, PAGE_SIZE, view.query.before)
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
        context=entities.read_context(view.workspace, OWNER, found.entity),
    )
