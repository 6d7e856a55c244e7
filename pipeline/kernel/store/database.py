"""Interfaces of the store, independent of the engine: a workspace's database, and all databases."""

import sqlite3
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Mapping, Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Literal, TypeVar

from config.paths import FileState
from pipeline.kernel.enums import Stage
from pipeline.kernel.store.rows import Parameters, find_row, list_rows

_Record = TypeVar("_Record")

# State of the store file and its log: modification time (ns) and size. Other engines use the first for time and
# number of the last write.
StoreState = tuple[FileState, FileState]


# Milliseconds that a write waits for another writer before it fails as busy.
BUSY_TIMEOUT_MS = 5000


@dataclass(frozen=True, slots=True)
class WriterProfile:
    """A process's commit mode.

    `FULL` syncs every commit: a write that the web server acknowledges survives a power cut. Workers commit `NORMAL`:
    their work is idempotent and found again, and their shorter commits block the web server less. A worker that records
    in another store what it did in this one calls `sync_log` between. Workers make the
    checkpoints (`checkpoint_pages`, 0 for never), so that no acknowledged write waits for one.
    """

    synchronous: Literal["FULL", "NORMAL"]
    checkpoint_pages: int
    busy_timeout_ms: int = BUSY_TIMEOUT_MS


class WriteConnection(sqlite3.Connection, metaclass=ABCMeta):
    """A connection whose transaction collects the work of its commit; SQLCipher's connection has a separate class.

    `wake_ups` are the stages whose workers it wakes, `changed_rows` the memories whose row hash it updates.
    """

    wake_ups: set[Stage | None]
    changed_rows: set[int]


# The work that a commit has for the workers: a stage, or None for other work.
WakeUps = AbstractSet[Stage | None]


def wake_on_commit(db: Connection, *stages: Stage | None) -> None:
    """Wake the workers of stages, or with None of other work, after this transaction's commit."""
    # A copy that is being written has no workers.
    if isinstance(db, WriteConnection):
        db.wake_ups.update(stages)


def savepoint(db: Connection) -> AbstractContextManager[None]:
    """Run a block as a savepoint: if a statement fails, undo the block but not the transaction."""
    # SQLite undoes a failed statement automatically.
    opened: AbstractContextManager[None] = getattr(db, "savepoint", nullcontext)()
    return opened


def wake_no_worker(*_queued: object) -> None:
    """Do nothing after a commit: no worker waits, or the scheduler finds the work."""


class Tables(ABC):
    """Tables that are read and written in transactions."""

    @abstractmethod
    def read(self) -> AbstractContextManager[Connection]:
        """Run reads on one consistent snapshot."""

    @abstractmethod
    def write(self) -> AbstractContextManager[Connection]:
        """Run a transaction, alone; commit on success, roll back on any error."""

    def erase_deleted_data(self) -> None:  # noqa: B027 - a server manages deleted rows itself
        """Remove deleted data from the files and their logs; raise StoreBusy if a reader prevents it."""

    def sync_log(self) -> None:  # noqa: B027 - a server syncs every commit
        """Make all commits durable, also those of workers, before another store relies on them."""

    def list_rows(self, kind: type[_Record], statement: str, values: Parameters = ()) -> list[_Record]:
        """Return the rows of one query as records or values."""
        with self.read() as db:
            return list_rows(db, kind, statement, values)

    def query(self, statement: str, values: Parameters = ()) -> list[Any]:
        """Return the rows of one query as tuples."""
        with self.read() as db:
            return db.execute(statement, values).fetchall()

    def find_row(self, kind: type[_Record], statement: str, values: Parameters = ()) -> _Record | None:
        """Return the first row of one query as a record or a value, None without rows."""
        with self.read() as db:
            return find_row(db, kind, statement, values)

    def run(self, statement: str, values: Parameters = ()) -> int:
        """Run one statement as a transaction; return the number of rows that it changed."""
        with self.write() as db:
            return db.execute(statement, values).rowcount


class OpenTransaction(Tables):
    """The tables of an open transaction, which its opener commits."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def read(self) -> AbstractContextManager[Connection]:
        """Yield the connection of the transaction."""
        return nullcontext(self._db)

    write = read


class Database(Tables):
    """A workspace's store: reads from any thread, writes from one thread at a time.

    After each commit that queued work, `on_commit` is called with the work, outside of every lock.
    """

    @property
    def file(self) -> Path | None:
        """Return the file of the store, None if a server has it."""
        return None

    def install_log_triggers(self, db: Connection) -> None:
        """Have each transaction note which records it changes, for the operation log."""

    def complete_file(self) -> bool:
        """Move the log into the store's file if no connection has to wait for it; return whether the log is empty."""
        return True

    @abstractmethod
    def measure(self) -> int:
        """Return the size in bytes."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection; connections in use are closed afterwards."""


class HomeTables(Tables):
    """Tables of a data directory that belong to no workspace: people, sync, transcripts, and the operations journal.

    Reads and writes raise StoreUnavailable if the tables cannot be used.
    """

    @property
    def is_encrypted(self) -> bool:
        """Return whether the tables are unreadable without a key."""
        return False

    @abstractmethod
    def alone(self, patience_s: float) -> AbstractContextManager[None]:
        """Exclude other processes from the exchange with other machines; raise StoreBusy if one is running."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""


class Databases(ABC):
    """Provide the database of each workspace."""

    @abstractmethod
    def get(self, workspace_id: str, *, create: bool = False) -> Database:
        """Return a workspace's database; raise NotFound if it does not exist and `create` is not set."""

    @abstractmethod
    def ids(self) -> list[str]:
        """List the existing workspaces by name."""

    @abstractmethod
    def exists(self, workspace_id: str) -> bool:
        """Return whether a workspace exists."""

    @abstractmethod
    def states(self) -> Mapping[str, StoreState]:
        """Return a value per workspace that changes with every write, without opening stores."""

    @abstractmethod
    def close(self) -> None:
        """Close every database."""
