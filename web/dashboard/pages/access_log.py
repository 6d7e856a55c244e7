"""Access log of a workspace, for its owners."""

from pipeline.records.people import Role
from pipeline.store.access_log import AccessQuery
from web.dashboard.view import PAGE_SIZE, Paged, Section, View, next_page, show

section = Section("access", needs=Role.OWNER)


@section.page("/access", Paged, empty_too=True)
def log(view: View) -> str:
    """List the requests to the workspace, newest first."""
    page = view.container.access_log.page(AccessQuery(workspace=view.workspace_id), PAGE_SIZE, view.query.before)
    return show("access_log.html", view, title="Access log", entries=page.items, next_url=next_page(page.next_cursor))
