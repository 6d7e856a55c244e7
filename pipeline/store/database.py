"""What a store is to who reads and writes it, whichever engine keeps it: a workspace's database, and all of them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Literal

from config.paths import FileState
from pipeline.enums import Stage
from pipeline.store.driver import WriteConnection

# Of a file and of its log; a store that is none tells by the first when it was written to last (ns) and how often.
StoreState = tuple[FileState, FileState]


@dataclass(frozen=True, slots=True)
class WriterProfile:
    """How a process commits.

    `FULL` syncs every commit: what the web server acknowledges survives a power cut. Workers commit `NORMAL`: their
    work is idempotent and is found again, and their shorter commits hold up the web server less. Checkpoints
    (`checkpoint_pages`, 0 for never) are the workers' job, so that no acknowledged write pays for one.
    """

    synchronous: Literal["FULL", "NORMAL"]
    checkpoint_pages: int
    busy_timeout_ms: int


# What a commit has for the workers: work of a stage, or, as None, of some other sort.
WakeUps = AbstractSet[Stage | None]


def wake_on_commit(db: Connection, *stages: Stage | None) -> None:
    """Have the workers of stages, or with None whoever looks after the rest, woken as soon as this is committed."""
    # A copy of a store that is written to has no workers.
    if isinstance(db, WriteConnection):
        db.wake_ups.update(stages)


def savepoint(db: Connection) -> AbstractContextManager[None]:
    """Let a transaction go on after a statement that fails in a block: what else the block did is undone with it."""
    # SQLite undoes the one statement by itself.
    opened: AbstractContextManager[None] = getattr(db, "savepoint", nullcontext)()
    return opened


def wake_nobody(*_queued: object) -> None:
    """Commit where no worker waits, or where the scheduler finds the work."""


class Database(ABC):
    """One workspace's store, for reading from any thread and writing from one at a time.

    After each commit that queued work, `on_commit` is called with what it queued, outside of every lock.
    """

    @property
    def file(self) -> Path | None:
        """Return the file that holds it all, None if a server does."""
        return None

    @abstractmethod
    def write(self) -> AbstractContextManager[Connection]:
        """Run one transaction beside which nobody writes; commit on success, roll back on any error."""

    @abstractmethod
    def read(self) -> AbstractContextManager[Connection]:
        """Run reads on one consistent snapshot; nested reads share the outer one."""

    @abstractmethod
    def checkpoint(self) -> None:
        """Leave nothing of what was deleted in a log; raise StoreBusy when a reader is in the way."""

    @abstractmethod
    def measure(self) -> int:
        """Return how many bytes it takes."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection, those in use as soon as they are not."""


class HomeTables(ABC):
    """What a home keeps beside its workspaces."""

    @property
    def is_encrypted(self) -> bool:
        """Return whether the tables are unreadable without a key."""
        return False

    @abstractmethod
    def opened(self) -> AbstractContextManager[Connection]:
        """Yield a connection; raise StoreUnavailable if the tables cannot be used."""

    @abstractmethod
    def checkpoint(self) -> None:
        """Leave nothing of what was deleted in a log; raise StoreBusy when a reader is in the way."""

    @abstractmethod
    def close(self) -> None:
        """Close what was opened."""


class PeersTables(HomeTables):
    """What a home keeps of its other machines."""

    @property
    @abstractmethod
    def tell_of_peers(self) -> bool:
        """Return whether anything was ever kept there."""

    @property
    @abstractmethod
    def state(self) -> FileState | None:
        """Return what changes when something is written, None if only a look tells."""

    @abstractmethod
    def alone(self, patience_s: float) -> AbstractContextManager[None]:
        """Keep another process from exchanging meanwhile; raise StoreBusy if one goes on doing so."""


class Databases(ABC):
    """Know each workspace's database."""

    @abstractmethod
    def get(self, workspace_id: str, *, create: bool = False) -> Database:
        """Return a workspace's database; raise NotFound when it does not exist and is not to be made."""

    @abstractmethod
    def ids(self) -> list[str]:
        """List the workspaces that exist, by name."""

    @abstractmethod
    def exists(self, workspace_id: str) -> bool:
        """Return whether anything was ever written to a workspace."""

    @abstractmethod
    def states(self) -> Mapping[str, StoreState]:
        """Return, by workspace, what changes when something is written there; no store is opened for it."""

    @abstractmethod
    def close(self) -> None:
        """Close every database."""
