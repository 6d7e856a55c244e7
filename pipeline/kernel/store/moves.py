"""Move parts of a store between databases; the files of a data directory as such a place."""

import json
import secrets
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, TypedDict

import sqlite_utils

from config.operating_system import make_folder, publish, sync_to_disk
from config.paths import HomePaths
from config.toml_files import UnreadableSettings, read_text
from config.workspace_configs import write_config
from pipeline.kernel.errors import StoreDamaged, StoreUnavailable
from pipeline.kernel.store import backup, driver
from pipeline.kernel.store.atomic_files import writing
from pipeline.kernel.store.copying import ConfigTable, Fingerprint, SqliteTables, StoreTables, Table
from pipeline.kernel.store.encryption import list_folders
from pipeline.kernel.store.home_file import MIGRATIONS as HOME_MIGRATIONS, HomeFile
from pipeline.kernel.store.log_start import install_triggers
from pipeline.kernel.store.migrations import MIGRATIONS, make_ready, writing_new_file
from pipeline.kernel.store.tables import HOME, HOME_BY_PART

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


OPERATIONS: Final = Part("operations", PartKind.HOME)
_HOME_TABLES: Final[Mapping[Part, Sequence[str]]] = {
    Part(name, PartKind.HOME): [table.name for table in of_part] for name, of_part in HOME_BY_PART.items()
}
HOME_PARTS: Final = tuple(_HOME_TABLES)


def forget_workspace(table: str) -> str:
    """Return the statement that deletes the rows of a table about the workspace `:old`."""
    return f"DELETE FROM {table} WHERE workspace = :old"  # noqa: S608 - a name of the schema


def list_tables(part: Part) -> Sequence[Table]:
    """List the tables of a part as this version creates them; none for settings."""
    migrations = HOME_MIGRATIONS if part.kind is PartKind.HOME else MIGRATIONS
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrations.apply(sqlite_utils.Database(db))
        return SqliteTables(db, _HOME_TABLES.get(part)).tables


class StoreLocation(ABC):
    """A database or data directory with parts of a store."""

    name: str

    def check_unused(self) -> None:  # noqa: B027 - of a data directory, the caller excludes other processes
        """Raise Conflict, which names the user, while another process uses the place."""

    @abstractmethod
    def list_parts(self) -> list[Part]:
        """List the existing parts, a workspace's settings before its store."""

    @abstractmethod
    def reading(self, part: Part) -> AbstractContextManager[StoreTables | None]:
        """Read a snapshot of a part during a block; None if the part does not exist."""

    @abstractmethod
    def writing(self, part: Part, before: Fingerprint | None) -> AbstractContextManager[StoreTables]:
        """Replace a part by the content that a block writes, atomically.

        Raises Conflict if the part changed from `before` (None for a part that did not exist).
        """

    @abstractmethod
    def delete(self, workspace_id: str) -> None:
        """Delete a workspace, its settings, and all records about it outside of it."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection."""

    def settle(self) -> None:  # noqa: B027 - most places have nothing to do
        """Prepare moved parts for use."""

    @abstractmethod
    def known(self, part: Part, home: str) -> set[str]:
        """Return the digests of a part when it was last equal in a data directory and in another place."""

    @abstractmethod
    def note(self, part: Part, home: str, digest: str) -> None:
        """Record, while a part is written, the digest at which it is equal in both places."""


class _Notes(TypedDict):
    """The id of a data directory, and the digests at which its parts were equal in another place."""

    home: str
    known: dict[str, list[str]]


def _read_config(file: Path) -> str:
    try:
        return read_text(file)
    except UnreadableSettings as error:
        raise StoreDamaged(str(error)) from error


class HomeFiles(StoreLocation):
    """The files of a data directory; no other process may have any of them open (see `nothing_runs`)."""

    def __init__(self, paths: HomePaths) -> None:
        self.paths = paths
        self.name = str(paths.root)
        self._home = HomeFile(paths.home)

    def identify(self) -> str:
        """Return the unique id of this data directory; create it the first time."""
        return self._read_notes()["home"]

    def list_parts(self) -> list[Part]:
        """List the existing parts."""
        settings = [name for name in list_folders(self.paths) if self.paths.workspace(name).config.is_file()]
        with self._home.read() as db:
            tables = {part: SqliteTables(db, names) for part, names in _HOME_TABLES.items()}
            home = [part for part, of_part in tables.items() if of_part.count(of_part.tables)]
        return [*home, *(Part(name, PartKind.SETTINGS) for name in settings), *map(Part, self.paths.workspace_ids())]

    @contextmanager
    def reading(self, part: Part) -> Iterator[StoreTables | None]:
        """Read a snapshot of a part during a block; None if the part does not exist."""
        if part.kind is PartKind.HOME:
            with self._home.read() as db:
                tables = SqliteTables(db, _HOME_TABLES[part])
                yield tables if tables.count(tables.tables) else None
            return
        files, file = self.paths.workspace(part.name), self._file(part)
        if not file.is_file():
            yield None
        elif part.kind is PartKind.SETTINGS:
            with ConfigTable.opened(part.name, _read_config(file)) as table:
                yield table
        else:
            backup.check_not_lost(file)
            with backup.typed_errors(file), closing(driver.connect(file)) as db:
                make_ready(db, file, MIGRATIONS, snapshots=files.snapshots)
                db.execute("BEGIN")
                yield SqliteTables(db)

    @contextmanager
    def writing(self, part: Part, before: Fingerprint | None) -> Iterator[StoreTables]:  # noqa: ARG002 - see check_unused
        """Replace a part by the content that a block writes; keep the old store of a workspace as a snapshot."""
        if part.kind is PartKind.HOME:
            with self._home.write() as db:
                yield SqliteTables(db, _HOME_TABLES[part])
            return
        file = self._file(part)
        draft = file.with_name(f".{file.name}.partial")
        make_folder(file.parent)
        backup.remove(draft)
        try:
            if part.kind is PartKind.SETTINGS:
                with backup.typed_errors(file), ConfigTable.opened(part.name) as table:
                    yield table
                    write_config(draft, table.text)
                    publish(draft, file)
                return
            with writing_new_file(draft, MIGRATIONS) as db:
                yield SqliteTables(db)
                install_triggers(db)
            files = self.paths.workspace(part.name)
            with backup.locked(files.snapshots):
                backup.replace_store(files, draft, datetime.now(UTC))
        finally:
            backup.remove(draft)

    def delete(self, workspace_id: str) -> None:
        """Delete the folder of a workspace, and the other records about it."""
        shutil.rmtree(self.paths.workspace(workspace_id).root)
        sync_to_disk(self.paths.workspaces)
        with self._home.write() as db:
            for table in HOME:
                if table.has_workspace:
                    db.execute(forget_workspace(table.name), {"old": workspace_id})

    def close(self) -> None:
        """Close the file of the data directory."""
        self._home.close()

    def known(self, part: Part, home: str) -> set[str]:
        """Return the digests of a part when it was last equal here and in another place."""
        notes = self._read_notes()
        return set(notes["known"].get(part.key, ())) if notes["home"] == home else set()

    def note(self, part: Part, home: str, digest: str) -> None:
        """Record the digest at which a part is equal here and in another place."""
        notes = self._read_notes()
        assert notes["home"] == home
        before = [earlier for earlier in notes["known"].get(part.key, ()) if earlier != digest]
        notes["known"][part.key] = [digest, *before][:_KEPT]
        self._write_notes(notes)

    def _file(self, part: Part) -> Path:
        files = self.paths.workspace(part.name)
        return files.config if part.kind is PartKind.SETTINGS else files.events

    def _read_notes(self) -> _Notes:
        file = self.paths.moves
        try:
            known = json.loads(file.read_text(encoding="utf-8"))
            return {"home": known["home"], "known": known["known"]}
        except FileNotFoundError:
            notes: _Notes = {"home": secrets.token_hex(8), "known": {}}
            self._write_notes(notes)
            return notes
        except (ValueError, KeyError, TypeError) as error:
            raise StoreUnavailable(f"{file} cannot be read; it records earlier moves") from error

    def _write_notes(self, notes: _Notes) -> None:
        make_folder(self.paths.root)
        with writing(self.paths.moves) as file:
            file.write(json.dumps(notes, indent=1).encode())
