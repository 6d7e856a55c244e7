"""The one rule by which every front door chooses the workspace that it works on."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from config.settings import Settings
from pipeline.identity.identify import Identity, identify

DEFAULT_WORKSPACE: str = Settings.model_fields["workspace"].default
# Rules by which a folder is a project: what is written there may make the project's workspace.
OF_A_PROJECT = frozenset({"git-remote", "git"})


@dataclass(frozen=True, slots=True)
class Choice:
    """The workspace to work on, why, and the identity of the folder it was chosen for, if there was one."""

    workspace: str
    reason: str
    identity: Identity | None


def choose_workspace(
    folder: Path | None,
    settings: Settings,
    *,
    explicit: str | None,
    environment: str | None,
    exists: Callable[[str], bool],
    to_write: bool = False,
) -> Choice:
    """Choose what the call, the environment or a file names, else a set workspace, else the folder's if it exists.

    To write, a project's own workspace is chosen even before it exists. Raises InvalidField for a folder that cannot
    be looked at.
    """
    fallback = settings.workspace
    if folder is None:
        return Choice(explicit or environment or fallback, "no folder is known", None)
    identity = identify(folder, explicit=explicit, environment=environment, split=settings.workspace_split)
    if identity.rule == "explicit":
        return Choice(identity.id, "this call uses it", identity)
    if identity.rule in ("environment", "file"):
        return Choice(identity.id, "commands and hooks use it", identity)
    if fallback != DEFAULT_WORKSPACE:
        reason = f"commands and hooks use {fallback}, by the setting workspace"
        return Choice(fallback, reason, identity)
    if exists(identity.id) or (to_write and identity.rule in OF_A_PROJECT):
        return Choice(identity.id, "commands and hooks use it", identity)
    return Choice(fallback, f"nothing was written to it yet, so commands and hooks use {fallback}", identity)
