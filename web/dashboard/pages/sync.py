"""Sync page: remotes, devices, conflicts and quarantined changes."""

from typing import Annotated

from pydantic import BaseModel, StringConstraints
from werkzeug.wrappers import Response

from web.access import Access
from web.dashboard.view import Section, View, back, show

section = Section("sync", Access.HOME)

SHOWN = 30


class LostForm(BaseModel):
    """The replaced value to restore."""

    memory_id: Annotated[str, StringConstraints(max_length=64)]
    field: Annotated[str, StringConstraints(max_length=64)]
    operation: Annotated[str, StringConstraints(max_length=64)]


@section.page("/sync", empty_too=True)
def overview(view: View) -> str:
    """Show the remotes, the devices, and what needs attention."""
    sync = view.container.sync
    return show(
        "sync.html",
        view,
        title="Other machines",
        remotes=sync.status(),
        devices=sync.devices(),
        events=sync.events(SHOWN),
        put_aside=sync.put_aside()[:SHOWN],
        conflicts=sync.conflicts(view.workspace.id)[:SHOWN] if view.workspace.exists else [],
    )


@section.action("/sync/restore", LostForm)
def restore(view: View) -> Response:
    """Restore a value that lost a conflict."""
    form = view.form
    view.container.sync.restore_lost(view.workspace.id, form.memory_id, form.field, form.operation)
    return back(view, "Value restored. The previous value is in the history.")
