"""Pages for the owner: workspace requests of projects, other machines, and the access log of a workspace."""

from pathlib import Path
from typing import Annotated

from flask import url_for
from pydantic import BaseModel, StringConstraints
from werkzeug.wrappers import Response

from pipeline.errors import NotFound
from pipeline.records.people import Role
from pipeline.services.workspaces import agree_to_claim, list_claims, withdraw_claim
from pipeline.store.people import AccessQuery
from web.access import Access
from web.dashboard.view import PAGE_SIZE, Paged, Section, View, back, next_page, show

claims_section = Section("claims", Access.HOME)
sync_section = Section("sync", Access.HOME)
access_section = Section("access", needs=Role.OWNER)

# Length of each list of the page about other machines.
SHOWN = 30


class ClaimForm(BaseModel):
    """A recorded request: the project file and the workspace that it names."""

    file: str
    claimed: str


@claims_section.page("/claims", empty_too=True)
def list_all(view: View) -> str:
    """List all workspace requests."""
    return show("claims.html", view, title="Workspace requests", claims=list_claims(view.container.settings))


@claims_section.action("/claims/agree", ClaimForm)
def agree(view: View) -> Response:
    """Allow a project to use the workspace that it requests."""
    _check_known(view)
    agree_to_claim(view.container.settings, Path(view.form.file), view.form.claimed)
    return back(
        view,
        f"Projects in {Path(view.form.file).parent} now use the workspace {view.form.claimed}.",
        undo=_undo("withdraw", view),
    )


@claims_section.action("/claims/withdraw", ClaimForm)
def withdraw(view: View) -> Response:
    """Make a project use its separate workspace again."""
    _check_known(view)
    withdraw_claim(view.container.settings, Path(view.form.file))
    return back(
        view,
        f"Projects in {Path(view.form.file).parent} no longer use the workspace {view.form.claimed}.",
        undo=_undo("agree", view),
    )


def _check_known(view: View) -> None:
    known = {(claim.file, claim.workspace) for claim in list_claims(view.container.settings)}
    if (view.form.file, view.form.claimed) not in known:
        raise NotFound("There is no such workspace request. Reload the page.")


def _undo(action: str, view: View) -> tuple[str, dict[str, str]]:
    return url_for(f"dashboard.claims_{action}"), {"file": view.form.file, "claimed": view.form.claimed}


class LostForm(BaseModel):
    """The replaced value to restore."""

    memory_id: Annotated[str, StringConstraints(max_length=64)]
    field: Annotated[str, StringConstraints(max_length=64)]
    operation: Annotated[str, StringConstraints(max_length=64)]


@sync_section.page("/sync", empty_too=True)
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


@sync_section.action("/sync/restore", LostForm)
def restore(view: View) -> Response:
    """Restore a value that lost a conflict."""
    form = view.form
    view.container.sync.restore_lost(view.workspace.id, form.memory_id, form.field, form.operation)
    return back(view, "Value restored. The previous value is in the history.")


@access_section.page("/access", Paged, empty_too=True)
def log(view: View) -> str:
    """List the requests to the workspace, newest first."""
    page = view.container.access_log.page(AccessQuery(workspace=view.workspace_id), PAGE_SIZE, view.query.before)
    return show("access_log.html", view, title="Access log", entries=page.items, next_url=next_page(page.next_cursor))
