"""Choose the workspaces of imported sessions by their folders, and say why a session is not stored."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from config.settings import Settings
from pipeline.features.workspaces.usecases import choose_workspace, note_claim, project_of_folder
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.workspace import Workspace

# Why a session is not stored.
NO_FOLDER = "session without a folder"
UNUSABLE_FOLDER = "folder that cannot be used"
OTHER_PROJECT = "session of another project"
TOO_OLD = "session before the chosen date"
OFF = "Reverie is off in this project"
CAPTURE_OFF = "capture is off in this project"
INCOGNITO = "incognito project"
READ_ONLY = "read-only project"
NEW_IN_PROJECT = "chat that no import of the person has read"
# The files of these agents are in projects, and may come with them, in an archive for example.
IN_PROJECTS = frozenset({"aider"})


class SessionFolders:
    """The workspaces of folders, by the rules of hooks; `project` limits them to one project."""

    def __init__(
        self, settings: Settings, workspace: Callable[[str], Workspace], project: Path | None, *, to_write: bool
    ) -> None:
        self._settings = settings
        self._open_workspace = workspace
        self._project = None if project is None else project_of_folder(project)
        # The workspace of the project, if no other folder shares it.
        self._project_workspace: str | None = None
        if project is not None:
            choice = choose_workspace(project.absolute(), settings, explicit=None, environment=None)
            is_own = choice.identity is not None and choice.workspace == choice.identity.id
            self._project_workspace = choice.workspace if is_own else None
        self._to_write = to_write
        self._known: dict[str, tuple[Workspace | None, str]] = {}

    def find(self, cwd: str) -> tuple[Workspace | None, str]:
        """Return the workspace of a session's folder, or None and the reason why nothing is stored."""
        if cwd not in self._known:
            self._known[cwd] = self._map(cwd)
        return self._known[cwd]

    def _map(self, cwd: str) -> tuple[Workspace | None, str]:
        folder = Path(cwd)
        if not (cwd and folder.is_absolute()):
            return None, NO_FOLDER
        try:
            choice = choose_workspace(folder, self._settings, explicit=None, environment=None)
        except InvalidField:
            return None, UNUSABLE_FOLDER
        workspace_id, identity = choice.workspace, choice.identity
        if identity is not None and identity.rule == "path" and not _is_folder(folder):
            # A folder that is gone was a project of its own: its sessions must not mix with those of other folders.
            workspace_id = identity.id
        is_of_project = workspace_id == self._project_workspace or (
            self._project and folder.is_relative_to(self._project)
        )
        if self._project is not None and not is_of_project:
            return None, OTHER_PROJECT
        workspace = self._open_workspace(workspace_id)
        reason = find_refusal(workspace)
        if reason is not None:
            return None, reason
        if identity is not None and self._to_write:
            with suppress(OSError):
                note_claim(self._settings, identity, to_write=True)
        return workspace, ""


def _is_folder(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except OSError:
        return False


def find_refusal(workspace: Workspace) -> str | None:
    """Return why nothing is stored in a workspace, None if something is."""
    access = workspace.access
    reasons = (
        (not access.is_enabled, OFF),
        (access.is_incognito, INCOGNITO),
        (access.is_read_only, READ_ONLY),
        (not access.captures, CAPTURE_OFF),
    )
    return next((reason for applies, reason in reasons if applies), None)
