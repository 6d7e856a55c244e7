"""Workspaces: which one a folder belongs to, and which there are."""

from dataclasses import dataclass
from pathlib import Path

from config.settings import Settings
from pipeline.identity import Identity, identify
from pipeline.identity.repository import UnreadableFile, branch_of_folder, open_repository, root_of_folder

__all__ = ["branch_of_folder", "identify"]

DEFAULT_WORKSPACE: str = Settings.model_fields["workspace"].default
# Rules by which a folder is a project: what is written there may make the project's workspace.
OF_A_PROJECT = frozenset({"git-remote", "git"})


@dataclass(frozen=True, slots=True)
class WorkspaceChoice:
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
    to_write: bool = False,
) -> WorkspaceChoice:
    """Choose what the call, the environment or a file names, else a set workspace, else the folder's if it exists.

    To write, a project's own workspace is chosen even before it exists. Raises InvalidField for a folder that cannot
    be looked at.
    """
    fallback = settings.workspace
    if folder is None:
        return WorkspaceChoice(explicit or environment or fallback, "no folder is known", None)
    identity = identify(folder, explicit=explicit, environment=environment, split=settings.workspace_split)
    if identity.rule == "explicit":
        return WorkspaceChoice(identity.id, "this call uses it", identity)
    if identity.rule in ("environment", "file"):
        return WorkspaceChoice(identity.id, "commands and hooks use it", identity)
    if fallback != DEFAULT_WORKSPACE:
        reason = f"commands and hooks use {fallback}, by the setting workspace"
        return WorkspaceChoice(fallback, reason, identity)
    if settings.paths.workspace(identity.id).events.is_file() or (to_write and identity.rule in OF_A_PROJECT):
        return WorkspaceChoice(identity.id, "commands and hooks use it", identity)
    return WorkspaceChoice(fallback, f"nothing was written to it yet, so commands and hooks use {fallback}", identity)


def history_of_folder(folder: Path) -> Path:
    """Return the place that stands for a repository's history: all its worktrees have one; else the folder."""
    root = root_of_folder(folder.resolve())
    if root is None:
        return folder
    try:
        common = open_repository(root).common_dir
    except UnreadableFile:
        return root
    return common.parent if common.name == ".git" else common
