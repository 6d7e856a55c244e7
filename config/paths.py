"""Where everything lives under `$REVERIE_HOME`, and what stands there now: files by identity, the bearer token."""

import os
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from config.modes import close_place, find_open_places
from config.operating_system import POSIX

# Inode, time of change (ns) and size of a file.
FileState = tuple[int, int, int]

WORKSPACE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# By which a request names the workspace that it is about.
WORKSPACE_HEADER = "X-Reverie-Workspace"
# The store of what is about the person whose home this is, which every workspace is told.
PERSONAL_WORKSPACE = "me"
WORKSPACES = "workspaces"
SNAPSHOTS = "snapshots"
STORE_KEY = "store.key"


def personal_workspace_of(person_id: str | None) -> str:
    """Return the store of what is about a person, the one of the home's owner where none is named."""
    return PERSONAL_WORKSPACE if person_id is None else f"{PERSONAL_WORKSPACE}.{person_id}"


def is_personal(workspace_id: str) -> bool:
    """Tell whether a workspace is somebody's personal store."""
    return workspace_id.partition(".")[0] == PERSONAL_WORKSPACE


def is_workspace_id(text: str) -> bool:
    """Tell whether a text may name a workspace; such a name is safe as a folder's name."""
    return WORKSPACE_ID.fullmatch(text) is not None


# Asked for several times by every request; joining paths would be a tenth of a write.
@dataclass(frozen=True)
class WorkspacePaths:
    """The files of one workspace."""

    root: Path

    @cached_property
    def events(self) -> Path:
        """Return the SQLite file that is the truth."""
        return self.root / "events.sqlite"

    @property
    def vectors(self) -> Path:
        """Return the LanceDB folder."""
        return self.root / "vectors.lance"

    @property
    def lexical(self) -> Path:
        """Return the folder of lexical segments."""
        return self.root / "lexical"

    @property
    def snapshots(self) -> Path:
        """Return the folder of the store's copies."""
        return self.root / SNAPSHOTS

    @cached_property
    def config(self) -> Path:
        """Return the workspace's own settings file."""
        return self.root / "config.toml"


@dataclass(frozen=True, slots=True)
class HomePaths:
    """The files of one Reverie home."""

    root: Path

    @property
    def config(self) -> Path:
        """Return the home's settings file."""
        return self.root / "config.toml"

    @property
    def token_file(self) -> Path:
        """Return the file that holds the bearer token."""
        return self.root / "token"

    @property
    def servers(self) -> Path:
        """Return the folder of the team servers that this home knows, a file each with this person's token."""
        return self.root / "servers"

    @property
    def sessions(self) -> Path:
        """Return the file that tells which browsers are signed in."""
        return self.root / "sessions"

    @property
    def queue(self) -> Path:
        """Return the SQLite queue's file."""
        return self.root / "queue.sqlite"

    @property
    def operations(self) -> Path:
        """Return the operations journal: error log and running workers."""
        return self.root / "operations.sqlite"

    @property
    def peers(self) -> Path:
        """Return the file of this home's other machines, of the keys that they share, and of the remotes between."""
        return self.root / "peers.sqlite"

    @property
    def transcripts(self) -> Path:
        """Return the file that says which records of transcripts were read, by their hashes."""
        return self.root / "transcripts.sqlite"

    @property
    def people(self) -> Path:
        """Return the file of the people who share this home: their tokens' hashes and their grants."""
        return self.root / "people.sqlite"

    @property
    def moves(self) -> Path:
        """Return the file that tells what was moved between this home's files and another place of a store."""
        return self.root / "moves.json"

    @property
    def store_key(self) -> Path:
        """Return the file that names the key of an encrypted home: while it stands, the home is one."""
        return self.root / STORE_KEY

    @property
    def claims(self) -> Path:
        """Return the file of what projects claim, and what of it a person agreed to."""
        return self.root / "claims.json"

    @property
    def outlooks(self) -> Path:
        """Return the file of what the scheduler knew of every workspace when it ended."""
        return self.root / "outlooks.json"

    @property
    def codex_turns(self) -> Path:
        """Return the folder that tells how far each of Codex' rollouts was read."""
        return self.root / "codex-turns"

    @property
    def models(self) -> Path:
        """Return the folder of compiled encoders."""
        return self.root / "models"

    @property
    def logs(self) -> Path:
        """Return the folder of log files."""
        return self.root / "logs"

    @property
    def workspaces(self) -> Path:
        """Return the folder that holds one folder a workspace."""
        return self.root / WORKSPACES

    def workspace(self, workspace_id: str) -> WorkspacePaths:
        """Return one workspace's files; the id must be a valid one."""
        if not is_workspace_id(workspace_id):
            raise ValueError("not a workspace id")
        return _paths_of(self.root, workspace_id)

    def workspace_ids(self) -> list[str]:
        """List the workspaces that exist, by name."""
        if not self.workspaces.is_dir():
            return []
        # At every tick of the scheduler: pathlib takes three times as long.
        root = str(self.workspaces)
        with os.scandir(root) as entries:
            names = [entry.name for entry in entries if is_workspace_id(entry.name)]
        return sorted(name for name in names if os.path.isfile(f"{root}/{name}/events.sqlite"))  # noqa: PTH113

    def ensure(self) -> None:
        """Make the home and its folders, readable by their owner only."""
        for folder in (self.root, self.models, self.logs, self.workspaces):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def close(self) -> list[Path]:
        """Take from others what they may enter, read or change in the home; return what could not be closed."""
        if not POSIX:
            return []
        # The home comes first: nobody exchanges what is in it while it is looked at.
        return [place for place in find_open_places(self.root) if not close_place(place)]

    def token(self) -> str:
        """Return the bearer token, making it (mode 0600) on the first start and where the file holds none."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.token_file.exists():
            self._make_token()
        return self._stored_token() or self.renew_token()

    def renew_token(self) -> str:
        """Put a new bearer token (mode 0600) in the place of the present one and return it."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._new_token().replace(self.token_file)
        return self._stored_token()

    def _stored_token(self) -> str:
        return self.token_file.read_text(encoding="ascii").strip()

    def _make_token(self) -> None:
        # Written aside and linked into place: two first starts agree on one token and none reads half of it.
        draft = self._new_token()
        try:
            os.link(draft, self.token_file)
        except FileExistsError:
            return
        finally:
            draft.unlink()

    def _new_token(self) -> Path:
        # Once in the life of a home; it brings along more than a whole command needs.
        import secrets

        draft = self.root / f".token-{os.getpid()}-{os.urandom(4).hex()}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
            file.flush()
            os.fsync(descriptor)
        return draft


@lru_cache(maxsize=1024)
def _paths_of(root: Path, workspace_id: str) -> WorkspacePaths:
    return WorkspacePaths(root / WORKSPACES / workspace_id)


def find_store_key(file: Path) -> Path | None:
    """Return what names the key of the home that a file of the store stands in, None where it is not encrypted."""
    # Asked at every opening, so that it looks in two places at most. A store in a folder of its own is a home here.
    folder = file.absolute().parent
    home = folder.parent if folder.name == SNAPSHOTS else folder
    if home.parent.name == WORKSPACES:
        home = home.parent.parent
    for place in dict.fromkeys((folder, home)):
        # Where it cannot be looked for, that raises: nobody takes such a home for a plain one.
        if file_identity(place / STORE_KEY) is not None:
            return place / STORE_KEY
    return None


class CurrentToken:
    """Return a home's token when called; read again only when the file changed.

    A new one counts from the next request on, in every process.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._known: tuple[FileState | None, str] = (None, "")

    def __call__(self) -> str:
        """Return the token; while there is none in the file the last known one, "" where there never was any."""
        mark, token = self._known
        try:
            found = file_state(self.file)
            if found != mark:
                token = self.file.read_text(encoding="ascii", errors="replace").strip() or token
                self._known = (found, token)
        except OSError:
            # Gone or out of reach: whoever knew it goes on with it.
            return token
        return token


def file_state(file: str | os.PathLike[str]) -> FileState:
    """Return what changes when a file is written or replaced; raise OSError where there is none."""
    status = os.stat(file)  # noqa: PTH116 - before every request; Path.stat costs twice as much
    return status.st_ino, status.st_mtime_ns, status.st_size


def file_identity(file: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Return (device, inode) of a file, None when there is none; another file by the same name has another identity."""
    try:
        status = os.stat(file)  # noqa: PTH116 - before every write and queue message; Path.stat costs twice as much
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
