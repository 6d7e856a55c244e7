"""Move parts of a store between databases; the files of a data directory as such a place."""

import json
import secrets
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

import sqlite_utils
from sqlite_utils import Migrations

from config.paths import HomePaths
from pipeline.errors import StoreUnavailable
from pipeline.store import backup, driver, operations_file, peers_file, people_file, transcripts
from pipeline.store.atomic_files import publish, writing
from pipeline.store.config_tables import ConfigFile
from pipeline.store.copying import Fingerprint, SqliteTables, StoreTables, Table, WritableTables
from pipeline.store.encryption import list_folders
from pipeline.store.log_start import install_triggers
from pipeline.store.migrations import MIGRATIONS, make_ready

# Number of fingerprints per part: two while one replaces another.
_KEPT: Final = 2


class PartKind(StrEnum):
    """A part that is moved completely: tables of the data directory, a workspace's settings, or its store."""

    HOME = "home"
    SETTINGS = "settings"
    WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A part with its name or workspace."""

    name: str
    kind: PartKind = PartKind.WORKSPACE

    @property
    def key(self) -> str:
        """Return the unique name of the part."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class _HomeFile:
    """The tables of a file of the data directory that belongs to no workspace."""

    migrations: Migrations
    find: Callable[[HomePaths], Path]


OPERATIONS: Final = Part("operations", PartKind.HOME)
PEERS: Final = Part("peers", PartKind.HOME)
_PEOPLE: Final = Part("people", PartKind.HOME)
_HOME_FILES: Final[Mapping[Part, _HomeFile]] = {
    PEERS: _HomeFile(peers_file.MIGRATIONS, lambda paths: paths.peers),
    Part("transcripts", PartKind.HOME): _HomeFile(transcripts.MIGRATIONS, lambda paths: paths.transcripts),
    _PEOPLE: _HomeFile(people_file.MIGRATIONS, lambda paths: paths.people),
    OPERATIONS: _HomeFile(operations_file.MIGRATIONS, lambda paths: paths.operations),
}
HOME_PARTS: Final = tuple(_HOME_FILES)
# The tables outside of workspaces whose rows are about one workspace.
RECORDS_ABOUT_WORKSPACES: Final = (
    (OPERATIONS, "error"),
    (OPERATIONS, "hook_run"),
    (PEERS, "sent"),
    (PEERS, "held_back"),
    (PEERS, "put_aside"),
    (_PEOPLE, "workspace_grant"),
    (_PEOPLE, "access"),
)


def forget_workspace(table: str) -> str:
    """Return the statement that deletes the rows of a table about the workspace `:old`."""
    return f"DELETE FROM {table} WHERE workspace = :old"  # noqa: S608 - a name from the list above


def list_tables(part: Part) -> Sequence[Table]:
    """List the tables of a part as this version creates them; none for settings."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        _migrations_of(part).apply(sqlite_utils.Database(db))
        return SqliteTables(db).tables


def _migrations_of(part: Part) -> Migrations:
    return _HOME_FILES[part].migrations if part.kind is PartKind.HOME else MIGRATIONS


class StoreLocation(ABC):
    """A database or data directory with parts of a store."""

    name: str

    @abstractmethod
    def check_unused(self) -> None:
        """Raise Conflict, which names the user, while another process uses the place."""

    @abstractmethod
    def list_parts(self) -> list[Part]:
        """List the existing parts, a workspace's settings before its store."""

    @abstractmethod
    def reading(self, part: Part) -> AbstractContextManager[StoreTables | None]:
        """Read a snapshot of a part during a block; None if the part does not exist."""

    @abstractmethod
    def writing(self, part: Part, before: Fingerprint | None) -> AbstractContextManager[WritableTables]:
        """Replace a part by the content that a block writes, atomically.

        Raises Conflict if the part changed from `before` (None for a part that did not exist).
        """

    @abstractmethod
    def delete(self, workspace_id: str) -> None:
        """Delete a workspace, its settings, and all records about it outside of it."""

    def settle(self) -> None:  # noqa: B027 - most places have nothing to do
        """Prepare moved parts for use."""

    @abstractmethod
    def known(self, part: Part, home: str) -> set[str]:
        """Return the digests of a part when it was last equal in a data directory and in another place."""

    @abstractmethod
    def note(self, part: Part, home: str, digest: str) -> None:
        """Record, while a part is written, the digest at which it is equal in both places."""


@dataclass(frozen=True, slots=True)
class _Notes:
    """The id of a data directory, and the digests at which its parts were equal in another place."""

    home: str
    known: dict[str, list[str]]


class HomeFiles(StoreLocation):
    """The files of a data directory; no other process may have any of them open (see `nothing_runs`)."""

    def __init__(self, paths: HomePaths) -> None:
        self.paths = paths
        self.name = str(paths.root)

    def check_unused(self) -> None:
        """Do nothing: the caller excludes other processes."""

    def identify(self) -> str:
        """Return the unique id of this data directory; create it the first time."""
        return self._read_notes().home

    def list_parts(self) -> list[Part]:
        """List the existing parts."""
        beside = [*HOME_PARTS, *(Part(name, PartKind.SETTINGS) for name in list_folders(self.paths))]
        return [*(part for part in beside if self._file(part).is_file()), *map(Part, self.paths.workspace_ids())]

    @contextmanager
    def reading(self, part: Part) -> Iterator[StoreTables | None]:
        """Read a snapshot of a part during a block; None if the part does not exist."""
        file = self._file(part)
        if not file.is_file():
            yield None
            return
        if part.kind is PartKind.SETTINGS:
            yield ConfigFile(part.name, file)
            return
        if part.kind is PartKind.WORKSPACE:
            backup.check_not_lost(file)
        with backup.typed_errors(file), closing(driver.connect(file)) as db:
            make_ready(db, file, _migrations_of(part), snapshots=self._snapshots(part))
            db.execute("BEGIN")
            yield SqliteTables(db)

    @contextmanager
    def writing(self, part: Part, before: Fingerprint | None) -> Iterator[WritableTables]:  # noqa: ARG002 - see check_unused
        """Replace a part by the content that a block writes; keep the old store of a workspace as a snapshot."""
        file = self._file(part)
        draft = file.with_name(f".{file.name}.partial")
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        backup.remove(draft)
        try:
            with backup.typed_errors(file):
                if part.kind is PartKind.SETTINGS:
                    yield ConfigFile(part.name, draft)
                    publish(draft, file)
                    return
                draft.touch(0o600, exist_ok=False)
                with closing(driver.connect(draft)) as db:
                    make_ready(db, draft, _migrations_of(part))
                    # Synced once, when it is complete.
                    db.execute("PRAGMA synchronous=OFF")
                    db.execute("BEGIN")
                    yield SqliteTables(db)
                    if part.kind is PartKind.WORKSPACE:
                        install_triggers(db)
                    db.execute("COMMIT")
                    db.execute("PRAGMA journal_mode=DELETE")
                    backup.verify(db, backup.row_counts(db))
                self._put_aside(part)
                backup.replace_store_file(draft, file)
        finally:
            backup.remove(draft)

    def delete(self, workspace_id: str) -> None:
        """Delete the folder of a workspace, and the other records about it."""
        shutil.rmtree(self.paths.workspace(workspace_id).root)
        for part, table in RECORDS_ABOUT_WORKSPACES:
            self._execute(part, forget_workspace(table), {"old": workspace_id})

    def _execute(self, part: Part, statement: str, values: Mapping[str, str]) -> None:
        file = self._file(part)
        if not file.is_file():
            return
        with backup.typed_errors(file), closing(driver.connect(file)) as db:
            make_ready(db, file, _migrations_of(part))
            db.execute(statement, values)

    def known(self, part: Part, home: str) -> set[str]:
        """Return the digests of a part when it was last equal here and in another place."""
        notes = self._read_notes()
        return set(notes.known.get(part.key, ())) if notes.home == home else set()

    def note(self, part: Part, home: str, digest: str) -> None:
        """Record the digest at which a part is equal here and in another place."""
        notes = self._read_notes()
        assert notes.home == home
        before = [earlier for earlier in notes.known.get(part.key, ()) if earlier != digest]
        notes.known[part.key] = [digest, *before][:_KEPT]
        self._write_notes(notes)

    def _file(self, part: Part) -> Path:
        if part.kind is PartKind.HOME:
            return _HOME_FILES[part].find(self.paths)
        files = self.paths.workspace(part.name)
        return files.config if part.kind is PartKind.SETTINGS else files.events

    def _snapshots(self, part: Part) -> Path | None:
        return None if part.kind is PartKind.HOME else self.paths.workspace(part.name).snapshots

    def _put_aside(self, part: Part) -> None:
        if part.kind is PartKind.HOME:
            return
        files, file = self.paths.workspace(part.name), self._file(part)
        if file.exists():
            with backup.locked(files.snapshots):
                backup.put_aside(file, backup.new_file(files.snapshots, backup.Taken.BEFORE_RESTORE, datetime.now(UTC)))
        # The row numbers in the indexes may belong to other memories now: rebuild the indexes.
        for derived in files.indexes:
            if derived.exists():
                shutil.rmtree(derived)

    def _read_notes(self) -> _Notes:
        file = self.paths.moves
        try:
            notes_read = json.loads(file.read_text(encoding="utf-8"))
            return _Notes(notes_read["home"], notes_read["known"])
        except FileNotFoundError:
            notes = _Notes(secrets.token_hex(8), {})
            self._write_notes(notes)
            return notes
        except (ValueError, KeyError, TypeError) as error:
            raise StoreUnavailable(f"{file} cannot be read; it records earlier moves") from error

    def _write_notes(self, notes: _Notes) -> None:
        self.paths.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with writing(self.paths.moves) as file:
            file.write(json.dumps({"home": notes.home, "known": notes.known}, indent=1).encode())
