"""Choose the workspace of a folder, and manage the workspace names claimed by project files."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from config.settings import SETTINGS, Settings
from pipeline.features.workspaces.clones import Clone, Clones, choose_for_folder, list_moved_away
from pipeline.features.workspaces.config import is_in_use
from pipeline.features.workspaces.identify import Identity, identify
from pipeline.features.workspaces.project_file import Claim, Claims, read_nearest_override
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.git.repository import UnreadableFile, open_repository, printable, resolve_upwards, root_of_folder
from pipeline.kernel.store.atomic_files import lock_file, replace_file


class Renames:
    """The new names in a data directory, in one private file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def find(self, workspace: str) -> str:
        """Return the current name of a workspace."""
        return self._read().get(workspace, workspace)

    def add(self, workspace: str, new_name: str) -> None:
        """Use another workspace from now on wherever this one, or one that was renamed to it, would be used."""
        with lock_file(self._file):
            renames = {old: new_name if name == workspace else name for old, name in self._read().items()}
            renames[workspace] = new_name
            self._store({old: name for old, name in renames.items() if old != name})

    def forget(self, workspace: str) -> None:
        """Forget the names that lead to a deleted workspace."""
        with lock_file(self._file):
            renames = self._read()
            if workspace in renames.values():
                self._store({old: name for old, name in renames.items() if name != workspace})

    def _read(self) -> dict[str, str]:
        try:
            renames: dict[str, str] = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return {}
        return renames

    def _store(self, renames: Mapping[str, str]) -> None:
        replace_file(self._file, json.dumps(renames, indent=1))


DEFAULT_WORKSPACE: str = SETTINGS["workspace"].default
# The form of ids derived from a folder or a remote.
DERIVED = re.compile(r".+-[0-9a-f]{8}")
# Rules that identify a folder as a project, which never uses the workspace of another folder.
OF_A_PROJECT = frozenset({"git-remote", "git"})


@dataclass(frozen=True, slots=True)
class WorkspaceChoice:
    """The chosen workspace, the reason, and the identity of its folder, if any."""

    workspace: str
    reason: str
    identity: Identity | None

    @property
    def detail(self) -> str:
        """Return how the folder was identified, and which workspace commands and hooks use."""
        return self.reason if self.identity is None else f"{self.identity.detail}; {self.reason}"


def choose_workspace(
    folder: Path | None,
    settings: Settings,
    *,
    explicit: str | None,
    environment: str | None,
    is_used: Callable[[str], bool] | None = None,
    is_of_team: bool = False,
) -> WorkspaceChoice:
    """Choose a workspace: that of the call, environment or project file, else the setting, else the folder's own.

    A Git project starts with its own empty workspace. Other folders share the default one, unless they have their own.
    A caller with open stores passes their `is_in_use`. For a team, only a clone's location counts. Raises InvalidField.
    """
    renames = Renames(settings.paths.renames)
    fallback, is_used = renames.find(settings.workspace), is_used or partial(is_in_use, settings)
    if folder is None:
        return WorkspaceChoice(explicit or environment or fallback, "no folder is known", None)
    identity = identify(
        folder,
        explicit=explicit,
        environment=environment,
        split=settings.workspace_split,
        is_agreed=partial(_is_granted, settings, is_used),
        clones=() if is_of_team else Clones(settings.paths.clones).list_all(),
        is_in_use=lambda name: not is_of_team and is_used(renames.find(name)),
    )
    if identity.rule == "explicit":
        return WorkspaceChoice(identity.id, "this call uses it", identity)
    name = renames.find(identity.id)
    if name != identity.id:
        identity = replace(identity, id=name, detail=f"{identity.detail}; renamed from {identity.id} to {name}")
    if identity.rule in ("environment", "file"):
        return WorkspaceChoice(identity.id, "commands and hooks use it", identity)
    if fallback != DEFAULT_WORKSPACE:
        identity = replace(identity, clone=None)
        return WorkspaceChoice(fallback, f"commands and hooks use {fallback}, by the setting workspace", identity)
    if identity.rule in OF_A_PROJECT or is_used(identity.id):
        return WorkspaceChoice(identity.id, "commands and hooks use it", identity)
    return _choose_shared(folder, identity, fallback)


def _choose_shared(folder: Path, identity: Identity, workspace: str) -> WorkspaceChoice:
    """Choose the workspace of all folders outside git; the folder is recorded in case it becomes a repository."""
    identity = replace(identity, clone=choose_for_folder(resolve_upwards(folder)[0], workspace))
    return WorkspaceChoice(workspace, f"commands and hooks use {workspace}, as in all folders outside git", identity)


def note_claim(settings: Settings, identity: Identity, *, to_write: bool) -> None:
    """Record the workspace of a clone at its first write, and the one that a project's file claims.

    A claim is pending, or agreed at the first write.
    """
    if identity.clone is not None and (to_write or identity.clone.is_known) and not _has_secret(identity.clone.clone):
        Clones(settings.paths.clones).record(identity.clone)
    if identity.claim is None or identity.claim.workspace is None:
        return
    claims, claim = Claims(settings.paths.claims), (identity.claim.file, identity.claim.workspace)
    if identity.waits:
        claims.note(*claim)
    elif to_write and not claims.is_agreed(*claim):
        claims.agree(*claim)


def _has_secret(clone: Clone) -> bool:
    """Return whether the folder or the remote of a clone contains a secret, which must not be stored."""
    # Imported here because compiling its expressions is slow, and most commands write nothing.
    from pipeline.text.redaction import redact

    return any(redact(text).text != text for text in (clone.git_dir, clone.remote))


def list_earlier(settings: Settings, choice: WorkspaceChoice) -> list[str]:
    """List the workspaces, other than the chosen one, that may contain earlier memories of a folder's project."""
    if choice.identity is None or choice.identity.clone is None:
        return []
    clone, renames = choice.identity.clone, Renames(settings.paths.renames)
    names = [*clone.earlier, *list_moved_away(clone, Clones(settings.paths.clones).list_all())]
    current = dict.fromkeys(map(renames.find, names))
    return [name for name in current if name != choice.workspace and is_in_use(settings, name)]


def describe_earlier(workspace: str, memories: int | None, current: str) -> str:
    """Describe a workspace with earlier memories of a project, and the command that moves them to the current one."""
    count = "" if memories is None else f" ({memories} {'memory' if memories == 1 else 'memories'})"
    return (
        f"Earlier memories of this project may be in workspace {workspace}{count}. "
        f"If so, run `reverie workspace move {workspace} {current}`."
    )


def _is_granted(settings: Settings, exists: Callable[[str], bool], file: Path, workspace: str) -> bool:
    """Return whether a project's file may use a workspace: a person agreed, or the name is unused.

    A name derived from a folder or a remote always needs agreement, because any file could contain it.
    """
    claims = Claims(settings.paths.claims)
    return claims.is_agreed(file, workspace) or (
        DERIVED.fullmatch(workspace) is None
        and workspace not in (DEFAULT_WORKSPACE, settings.workspace)
        and not exists(workspace)
        and claims.is_free(workspace)
    )


def list_claims(settings: Settings) -> list[Claim]:
    """List the claims of project files: the agreed ones, then the pending ones."""
    return Claims(settings.paths.claims).list_all()


def claim_of_folder(folder: Path) -> tuple[Path, str]:
    """Return the project file of a folder and the workspace that it claims; raise InvalidField if there is none."""
    try:
        own = read_nearest_override(folder)
    except UnreadableFile as error:
        raise InvalidField(FieldError(printable(error.file), error.reason)) from error
    if own is None or own.workspace is None:
        raise InvalidField(FieldError("folder", "no .reverie.toml names a workspace, here or above"))
    return own.file, own.workspace


def agree_to_claim(settings: Settings, file: Path, workspace: str) -> Claim:
    """Agree that the folders below a project's file use the workspace that it claims."""
    return Claims(settings.paths.claims).agree(file, workspace)


def withdraw_claim(settings: Settings, file: Path) -> Claim:
    """Withdraw the agreement for a project's file; raise NotFound if there was none."""
    return Claims(settings.paths.claims).withdraw(file)


def project_of_folder(folder: Path) -> Path:
    """Return the root of the repository around a folder, else the folder."""
    resolved = folder.resolve()
    return root_of_folder(resolved) or resolved


def history_of_folder(folder: Path) -> Path:
    """Return the folder that identifies a repository's history, the same for all its worktrees; else the folder."""
    root = root_of_folder(folder.resolve())
    if root is None:
        return folder
    try:
        common = open_repository(root).common_dir
    except UnreadableFile:
        return root
    return common.parent if common.name == ".git" else common
