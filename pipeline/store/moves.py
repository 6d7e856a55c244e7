"""What can be moved from one place of a store to another, part by part, and the place that is a home's files."""

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
from pipeline.store.config_tables import ConfigFile
from pipeline.store.copying import Fingerprint, SqliteTables, StoreTables, Table, WritableTables
from pipeline.store.encryption import list_folders
from pipeline.store.migrations import MIGRATIONS, make_ready
from pipeline.store.whole_file import publish, writing

# How many fingerprints of a part are kept: while one is put in the place of another, both.
_KEPT: Final = 2


class PartKind(StrEnum):
    """What is moved as a whole: what a home keeps beside its workspaces, a workspace's own settings, or its store."""

    HOME = "home"
    SETTINGS = "settings"
    WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One of these, by its name or its workspace's."""

    name: str
    kind: PartKind = PartKind.WORKSPACE

    @property
    def key(self) -> str:
        """Return the name that no other part has."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class _HomeFile:
    """The tables of one file of the data directory that belongs to no workspace."""

    migrations: Migrations
    find: Callable[[HomePaths], Path]


OPERATIONS: Final = Part("operations", PartKind.HOME)
_HOME_FILES: Final[Mapping[Part, _HomeFile]] = {
    Part("peers", PartKind.HOME): _HomeFile(peers_file.MIGRATIONS, lambda paths: paths.peers),
    Part("transcripts", PartKind.HOME): _HomeFile(transcripts.MIGRATIONS, lambda paths: paths.transcripts),
    Part("people", PartKind.HOME): _HomeFile(people_file.MIGRATIONS, lambda paths: paths.people),
    OPERATIONS: _HomeFile(operations_file.MIGRATIONS, lambda paths: paths.operations),
}
HOME_PARTS: Final = tuple(_HOME_FILES)


def list_tables(part: Part) -> Sequence[Table]:
    """List the tables of a part, none of settings, as this version of Reverie makes them."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        _migrations_of(part).apply(sqlite_utils.Database(db))
        return SqliteTables(db).tables


def _migrations_of(part: Part) -> Migrations:
    return _HOME_FILES[part].migrations if part.kind is PartKind.HOME else MIGRATIONS


class StorePlace(ABC):
    """Where a store is kept, by its `name`, and what of it is there."""

    name: str

    @abstractmethod
    def check_unused(self) -> None:
        """Raise Conflict, which tells who, while anybody else uses the place."""

    @abstractmethod
    def list_parts(self) -> list[Part]:
        """List the parts that are there, a workspace's settings before its store."""

    @abstractmethod
    def reading(self, part: Part) -> AbstractContextManager[StoreTables | None]:
        """Read one snapshot of a part during a block; None if there is none."""

    @abstractmethod
    def writing(self, part: Part, before: Fingerprint | None) -> AbstractContextManager[WritableTables]:
        """Put what a block writes in a part's place: all of it when the block ends, nothing of it when that fails.

        Raises Conflict where the part is not what it was `before`, which is None for a part that was not there.
        """

    def settle(self) -> None:  # noqa: B027 - most have nothing to do
        """Make ready what parts were moved into."""

    @abstractmethod
    def known(self, part: Part, home: str) -> set[str]:
        """Return the digests by which a part was left equal in a data directory and in another place."""

    @abstractmethod
    def note(self, part: Part, home: str, digest: str) -> None:
        """Note, while a part is written, the digest by which it is left equal in a home and in another place."""


@dataclass(frozen=True, slots=True)
class _Notes:
    """By which name a home is known from others, and by which digests its parts were left equal in another place."""

    home: str
    known: dict[str, list[str]]


class HomeFiles(StorePlace):
    """The files of a data directory, of which nobody else may have any open meanwhile; see `nothing_runs`."""

    def __init__(self, paths: HomePaths) -> None:
        self.paths = paths
        self.name = str(paths.root)

    def check_unused(self) -> None:
        """Do nothing: whoever works on a data directory's files keeps everybody else from them."""

    def identify(self) -> str:
        """Return the name of this data directory among others, which is made the first time."""
        return self._read_notes().home

    def list_parts(self) -> list[Part]:
        """List the parts that are there."""
        beside = [*HOME_PARTS, *(Part(name, PartKind.SETTINGS) for name in list_folders(self.paths))]
        return [*(part for part in beside if self._file(part).is_file()), *map(Part, self.paths.workspace_ids())]

    @contextmanager
    def reading(self, part: Part) -> Iterator[StoreTables | None]:
        """Read one snapshot of a part during a block; None if there is none."""
        file = self._file(part)
        if not file.is_file():
            yield None
            return
        if part.kind is PartKind.SETTINGS:
            yield ConfigFile(part.name, file)
            return
        with backup.typed_errors(file), closing(driver.connect(file)) as db:
            make_ready(db, file, _migrations_of(part), snapshots=self._snapshots(part))
            db.execute("BEGIN")
            yield SqliteTables(db)

    @contextmanager
    def writing(self, part: Part, before: Fingerprint | None) -> Iterator[WritableTables]:  # noqa: ARG002 - nobody else writes
        """Put what a block writes in a part's place; what was there of a workspace's store is kept as a snapshot."""
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
                    # It is synced once, when it is whole.
                    db.execute("PRAGMA synchronous=OFF")
                    db.execute("BEGIN")
                    yield SqliteTables(db)
                    db.execute("COMMIT")
                    db.execute("PRAGMA journal_mode=DELETE")
                    backup.verify(db, backup.row_counts(db))
                self._put_aside(part)
                backup.put_in_place(draft, file)
        finally:
            backup.remove(draft)

    def known(self, part: Part, home: str) -> set[str]:
        """Return the digests by which a part was left equal here and in another place."""
        notes = self._read_notes()
        return set(notes.known.get(part.key, ())) if notes.home == home else set()

    def note(self, part: Part, home: str, digest: str) -> None:
        """Note the digest by which a part is left equal here and in another place."""
        notes = self._read_notes()
        assert notes.home == home
        before = [one for one in notes.known.get(part.key, ()) if one != digest]
        notes.known[part.key] = [digest, *before][:_KEPT]
        self._write_notes(notes)

    def _file(self, part: Part) -> Path:
        if part.kind is PartKind.HOME:
            return _HOME_FILES[part].find(self.paths)
        place = self.paths.workspace(part.name)
        return place.config if part.kind is PartKind.SETTINGS else place.events

    def _snapshots(self, part: Part) -> Path | None:
        return None if part.kind is PartKind.HOME else self.paths.workspace(part.name).snapshots

    def _put_aside(self, part: Part) -> None:
        if part.kind is PartKind.HOME:
            return
        place, file = self.paths.workspace(part.name), self._file(part)
        if file.exists():
            with backup.locked(place.snapshots):
                backup.put_aside(file, backup.new_file(place.snapshots, backup.Taken.BEFORE_RESTORE, datetime.now(UTC)))
        # What the indexes hold by row number may be what a memory said before: they are built anew.
        for derived in (place.lexical, place.vectors):
            if derived.exists():
                shutil.rmtree(derived)

    def _read_notes(self) -> _Notes:
        file = self.paths.moves
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            return _Notes(found["home"], found["known"])
        except FileNotFoundError:
            notes = _Notes(secrets.token_hex(8), {})
            self._write_notes(notes)
            return notes
        except (ValueError, KeyError, TypeError) as error:
            raise StoreUnavailable(f"{file} cannot be read; without it, what was moved before is not known") from error

    def _write_notes(self, notes: _Notes) -> None:
        self.paths.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with writing(self.paths.moves) as file:
            file.write(json.dumps({"home": notes.home, "known": notes.known}, indent=1).encode())
