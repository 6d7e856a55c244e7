"""Page about the user."""

from typing import Annotated

from pydantic import StringConstraints
from werkzeug.wrappers import Response

from pipeline.features.memories import usecases as memories
from pipeline.kernel.records import MAX_CONTENT_CHARS, Draft, Filter, Revision
from pipeline.kernel.records.people import Role
from web.dashboard.view import PAGE_SIZE, Link, Paged, Section, View, back, next_page, show

# Readers can edit it, because it is their personal store.
section = Section("me", Role.READER, Link("About you", "me_about_me", "Memory", 45))


Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS, strip_whitespace=True)]


@section.page("/me", Paged, empty_too=True)
def about_me(view: View) -> str:
    """Show the memories about the user, which agents see in every workspace."""
    person = view.workspace.person
    page = None
    if person.exists:
        page = memories.list_memories(
            person,
            Filter(scope=view.workspace.personal_scope, viewer=view.workspace.onlooker),
            PAGE_SIZE,
            view.query.before,
        )
    return show(
        "me.html",
        view,
        title="About you",
        memories=page.items if page else [],
        next_url=next_page(page.next_cursor) if page else None,
        told_here=view.workspace.settings.personal,
    )


@section.action("/me")
def add(view: View, *, content: Text) -> Response:
    """Store a memory about the user."""
    memories.write_memory(view.workspace.person, Draft(content, scope=view.workspace.personal_scope))
    return back(view, "Memory added.")


@section.action("/me/<memory_id>")
def edit(view: View, memory_id: str, *, content: Text) -> Response:
    """Change the text of a memory about the user."""
    view.workspace.person.access.require_change()
    memories.edit(view.workspace.person, memory_id, Revision(content=content))
    return back(view, "Memory changed. The previous text is in its history.")


@section.action("/me/<memory_id>/purge")
def purge(view: View, memory_id: str) -> Response:
    """Delete a memory about the user permanently."""
    view.workspace.person.access.require_change()
    memories.purge(view.workspace.person, view.container.feedback, memory_id)
    return back(view, "Memory deleted permanently.")
