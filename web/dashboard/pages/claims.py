"""Claims: which files of projects name a workspace that is not their own, and to which of them a person agreed."""

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
    """A claim that is known: the file that makes it, and to which workspace."""

    file: str
    claimed: str


@section.page("/claims", empty_too=True)
def list_all(view: View) -> str:
    """Show every claim that is known."""
    return show("claims.html", view, title="Workspace requests", claims=list_claims(view.container.settings))


@section.action("/claims/agree", ClaimForm)
def agree(view: View) -> Response:
    """Let a project use the workspace that it claims."""
    _check_known(view)
    agree_to_claim(view.container.settings, Path(view.form.file), view.form.claimed)
    return back(
        view,
        f"Projects in {Path(view.form.file).parent} now use the workspace {view.form.claimed}.",
        undo=_undo("withdraw", view),
    )


@section.action("/claims/withdraw", ClaimForm)
def withdraw(view: View) -> Response:
    """Let a project have a workspace of its own again."""
    _check_known(view)
    withdraw_claim(view.container.settings, Path(view.form.file))
    return back(
        view,
        f"Projects in {Path(view.form.file).parent} no longer use the workspace {view.form.claimed}.",
        undo=_undo("agree", view),
    )


def _check_known(view: View) -> None:
    known = {(one.file, one.workspace) for one in list_claims(view.container.settings)}
    if (view.form.file, view.form.claimed) not in known:
        raise NotFound("There is no such workspace request. Reload the page.")


def _undo(action: str, view: View) -> tuple[str, dict[str, str]]:
    return url_for(f"dashboard.claims_{action}"), {"file": view.form.file, "claimed": view.form.claimed}
