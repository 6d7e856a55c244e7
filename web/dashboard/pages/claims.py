"""Workspace requests: project files that name another workspace, and whether the user allowed them."""

from pathlib import Path

from flask import url_for
from pydantic import BaseModel
from werkzeug.wrappers import Response

from pipeline.errors import NotFound
from pipeline.services.workspaces import agree_to_claim, list_claims, withdraw_claim
from web.access import Access
from web.dashboard.view import Section, View, back, show

section = Section("claims", Access.HOME)


class ClaimForm(BaseModel):
    """A recorded request: the project file and the workspace that it names."""

    file: str
    claimed: str


@section.page("/claims", empty_too=True)
def list_all(view: View) -> str:
    """List all workspace requests."""
    return show("claims.html", view, title="Workspace requests", claims=list_claims(view.container.settings))


@section.action("/claims/agree", ClaimForm)
def agree(view: View) -> Response:
    """Allow a project to use the workspace that it requests."""
    _check_known(view)
    agree_to_claim(view.container.settings, Path(view.form.file), view.form.claimed)
    return back(
        view,
        f"Projects in {Path(view.form.file).parent} now use the workspace {view.form.claimed}.",
        undo=_undo("withdraw", view),
    )


@section.action("/claims/withdraw", ClaimForm)
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
