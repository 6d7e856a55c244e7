"""Paths of all files under `$REVERIE_HOME` and of the encoder caches, the identity of files, and the bearer token."""

import os
import re
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from config.file_modes import find_public_paths, make_private
from config.foreign_variables import find_cache_folder
from config.operating_system import POSIX, is_read_only, make_folder, publish, sync_to_disk

# Inode, change time (ns) and size of a file.
FileState = tuple[int, int, int]

WORKSPACE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# Header in which a request names its workspace.
WORKSPACE_HEADER = "X-Reverie-Workspace"
# "true" makes a request part of a read-only session: recall works, and nothing is stored.
READ_ONLY_HEADER = "X-Reverie-Read-Only"
# The personal store of the data directory's owner, which is used in every workspace.
PERSONAL_WORKSPACE = "me"
WORKSPACES = "workspaces"
SNAPSHOTS = "snapshots"
STORE_KEY = "store.key"
_ENCODERS = Path("reverie", "encoders")
# The files of the spool: a waiting request, a request whose delivery was started, and the folder of refused requests.
# After a crash, parts of a started request may have been carried out. The server holds an event until it is read.
SPOOL_ENDING, SPOOL_BEGUN, SPOOL_REFUSED, SPOOL_HELD = ".json", ".begun.json", "refused", ".held"


def find_encoder_cache() -> Path | None:
    """Return the folder in which this user's data directories share encoders, None if no variable names a cache."""
    cache = find_cache_folder()
    return None if cache is None else cache / _ENCODERS


def list_encoder_caches() -> list[Path]:
    """List the folders of shared encoders: this user's, and that of an installation without torch."""
    return [cache for cache in (find_encoder_cache(), Path(sys.prefix, "share", _ENCODERS)) if cache is not None]


def personal_workspace_of(person_id: str | None) -> str:
    """Return the id of a person's personal store; without a person, of the data directory's owner."""
    return PERSONAL_WORKSPACE if person_id is None else f"{PERSONAL_WORKSPACE}.{person_id}"


def is_personal(workspace_id: str) -> bool:
    """Return whether a workspace is a personal store."""
    return workspace_id.partition(".")[0] == PERSONAL_WORKSPACE


def is_workspace_id(text: str) -> bool:
    """Return whether a text is a valid workspace id; a valid id is safe as a folder name."""
    return WORKSPACE_ID.fullmatch(text) is not None


class _Entry:
    """A file or a folder with this name in the folder `root` of its owner."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, _class: type) -> Path:
        root: Path = owner.root
        return root / self._name


# Cached because every request asks several times; joining paths would take a tenth of a write.
@dataclass(frozen=True)
class WorkspacePaths:
    """The files of one workspace."""

    root: Path

    @cached_property
    def events(self) -> Path:
        """Return the SQLite file of the store, from which everything else can be rebuilt."""
        return self.root / "events.sqlite"

    # The LanceDB folder.
    vectors = _Entry("vectors.lance")
    # The folder of lexical segments.
    lexical = _Entry("lexical")
    # The folder of lexical segments of turns.
    turn_segments = _Entry("turns")

    @property
    def segment_folders(self) -> tuple[Path, ...]:
        """Return the folders of all lexical segments."""
        return self.lexical, self.turn_segments

    # The LanceDB folder of turns.
    turn_vectors = _Entry("turns.lance")

    @property
    def indexes(self) -> tuple[Path, ...]:
        """Return the folders of everything that can be rebuilt from the store."""
        return *self.segment_folders, self.vectors, self.turn_vectors

    # The folder of the store's snapshots.
    snapshots = _Entry(SNAPSHOTS)

    @property
    def lost_store(self) -> str | None:
        """Return what is left of a store whose file is missing or empty, None for a store that is there or was never.

        A store that was deleted on purpose leaves nothing, because its folder is deleted.
        """
        # Every request asks for the personal store, which is usually missing: pathlib costs twice as much.
        if not os.path.isdir(self.root) or _size_of(self.events):  # noqa: PTH112
            return None
        log = self.events.with_name(f"{self.events.name}-wal")
        if any(entry.suffix == ".sqlite" for entry in _list_folder(self.snapshots)):
            return "its snapshots are still there"
        if any(_list_folder(folder) for folder in self.indexes):
            return "its indexes are still there"
        return "its log is still there" if _size_of(log) else None

    @cached_property
    def config(self) -> Path:
        """Return the workspace's own settings file."""
        return self.root / "config.toml"

    def sibling(self, workspace_id: str) -> "WorkspacePaths":
        """Return the files of another workspace of the same data directory."""
        return _siblings_of(self.root, workspace_id)


@dataclass(frozen=True, slots=True)
class HomePaths:
    """The files of a data directory."""

    root: Path

    # The settings file of the data directory.
    config = _Entry("config.toml")
    # The file with the bearer token.
    token_file = _Entry("token")
    # The folder with one file per connected team server, including this person's token.
    servers = _Entry("servers")
    # The file of the browser sessions that are signed in to the dashboard.
    sessions = _Entry("sessions")
    # The SQLite queue's file.
    queue = _Entry("queue.sqlite")
    # The file of the data directory itself: people, synced machines, read transcripts, errors and hooks.
    home = _Entry("home.sqlite")
    # The folder of the snapshots of people.
    snapshots = _Entry(SNAPSHOTS)
    # The file that records which stores were moved between this data directory and another database.
    moves = _Entry("moves.json")
    # The file that names the encryption key; the data directory is encrypted if it exists.
    store_key = _Entry(STORE_KEY)
    # The file of the claims that projects make, and of the claims that a person approved.
    claims = _Entry("claims.json")
    # The file of the git clones with memories, and their workspaces.
    clones = _Entry("clones.json")
    # The file of the new names of renamed and merged workspaces.
    renames = _Entry("renames.json")
    # The file with the scheduler's last state of every workspace.
    outlooks = _Entry("outlooks.json")
    # The folder of files whose times say when each host was last heard and recorded.
    host_activity = _Entry("host-activity")
    # The folder of requests that wait for the web server.
    spool = _Entry("spool")
    # The folder that records how far each Codex rollout was read.
    codex_turns = _Entry("codex-turns")
    # The folder of compiled encoders.
    models = _Entry("models")
    # The folder of log files.
    logs = _Entry("logs")
    # The folder with one folder per workspace.
    workspaces = _Entry(WORKSPACES)

    def workspace(self, workspace_id: str) -> WorkspacePaths:
        """Return the files of a workspace; the id must be valid."""
        if not is_workspace_id(workspace_id):
            raise ValueError("not a workspace id")
        return _paths_of(self.root, workspace_id)

    def workspace_ids(self) -> list[str]:
        """List the existing workspaces by name."""
        if not self.workspaces.is_dir():
            return []
        # Called at every tick of the scheduler: pathlib takes three times as long.
        root = str(self.workspaces)
        with os.scandir(root) as entries:
            names = [entry.name for entry in entries if is_workspace_id(entry.name)]
        return sorted(name for name in names if os.path.isfile(f"{root}/{name}/events.sqlite"))  # noqa: PTH113

    def lost_workspace_ids(self) -> list[str]:
        """List the workspaces of which only traces are left."""
        names = [folder.name for folder in _list_folder(self.workspaces) if is_workspace_id(folder.name)]
        return sorted(name for name in names if self.workspace(name).lost_store is not None)

    def ensure(self) -> None:
        """Create the data directory and its folders, readable by their owner only."""
        for folder in (self.root, self.models, self.logs, self.workspaces):
            make_folder(folder)

    def close(self) -> list[Path]:
        """Make all files in the data directory private to their owner; return the files for which that failed."""
        if not POSIX:
            return []
        # The data directory comes first, so that no other user can exchange its files during the scan.
        return [path for path in find_public_paths(self.root) if not make_private(path)]

    def token(self) -> str:
        """Return the bearer token. Create it (mode 0600) on the first start or if the file is empty."""
        make_folder(self.root)
        if not self.token_file.exists():
            self._make_token()
        return self._stored_token() or self.renew_token()

    def renew_token(self) -> str:
        """Replace the bearer token (mode 0600) and return the new one."""
        make_folder(self.root)
        publish(self._new_token(), self.token_file)
        return self._stored_token()

    def _stored_token(self) -> str:
        return self.token_file.read_text(encoding="ascii").strip()

    def _make_token(self) -> None:
        # Written to another file and linked: two first starts agree on one token, and neither reads half of it.
        draft = self._new_token()
        try:
            sync_to_disk(draft)
            os.link(draft, self.token_file)
        except FileExistsError:
            return
        finally:
            draft.unlink()
            sync_to_disk(self.root)

    def _new_token(self) -> Path:
        # Imported here because it is needed once per data directory and costs more than a command.
        import secrets

        draft = self.root / f".token-{os.getpid()}-{os.urandom(4).hex()}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        return draft


@lru_cache(maxsize=1024)
def _siblings_of(root: Path, workspace_id: str) -> WorkspacePaths:
    return WorkspacePaths(root.parent / workspace_id)


@lru_cache(maxsize=1024)
def _paths_of(root: Path, workspace_id: str) -> WorkspacePaths:
    return WorkspacePaths(root / WORKSPACES / workspace_id)


def find_store_key(file: Path) -> Path | None:
    """Return the key file of the data directory that contains a store file, or None if it is not encrypted."""
    # Called at every opening, so it checks only two folders: a store can also be in a folder without workspaces.
    folder = file.absolute().parent
    home = folder.parent if folder.name == SNAPSHOTS else folder
    if home.parent.name == WORKSPACES:
        home = home.parent.parent
    for candidate in dict.fromkeys((folder, home)):
        # An error while checking is raised: an encrypted data directory must never be taken for a plain one.
        if file_identity(candidate / STORE_KEY) is not None:
            return candidate / STORE_KEY
    return None


class CurrentToken:
    """Return the bearer token of a data directory when called; read the file only if it changed.

    A renewed token is valid from the next request on, in every process.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._known: tuple[FileState | None, str] = (None, "")

    def __call__(self) -> str:
        """Return the token; if the file is missing, return the last known token, or ""."""
        mark, token = self._known
        try:
            state = file_state(self.file)
            if state != mark:
                token = self.file.read_text(encoding="ascii", errors="replace").strip() or token
                self._known = (state, token)
        except OSError:
            # The file is gone or out of reach: keep the last known token.
            return token
        return token


def file_state(file: str | os.PathLike[str]) -> FileState:
    """Return a value that changes when a file is written or replaced; raise OSError if it does not exist."""
    status = os.stat(file)  # noqa: PTH116 - before every request; Path.stat costs twice as much
    return status.st_ino, status.st_mtime_ns, status.st_size


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _list_folder(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def file_identity(file: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Return (device, inode) of a file, or None if it does not exist. A replaced file has another identity."""
    try:
        status = os.stat(file)  # noqa: PTH116 - before every write and queue message; Path.stat costs twice as much
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


# A store cannot start a transaction with less free space than this.
NO_ROOM = 1024**2


def list_problems(root: Path) -> list[str]:
    """List the problems that keep a data directory from being used, each with a remedy; empty if there is none yet."""
    try:
        if not root.exists():
            return []
        return [problem for problem in (find_access_problem(root), _find_room_problem(root)) if problem is not None]
    except OSError as error:
        return [f"{root} cannot be read: {error.strerror}; run Reverie as its owner"]


def find_access_problem(root: Path) -> str | None:
    """Return why nothing can be written to a folder, or None if it can."""
    if not root.is_dir():
        return f"{root} is not a folder; set REVERIE_HOME to a folder"
    if os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return None
    if is_read_only(root):
        return f"{root} is on a read-only file system; mount it for writing, or set REVERIE_HOME to another folder"
    owner = root.stat().st_uid
    return (
        f"{root} belongs to another user (uid {owner}); run Reverie as its owner, or change the owner with `chown -R`"
    )


def _find_room_problem(root: Path) -> str | None:
    # Every command imports this module.
    import shutil

    free = shutil.disk_usage(root).free
    return f"the disk of {root} has {free // 1024} KiB left; free some space" if free < NO_ROOM else None
