"""Storage of the vector tables: a folder of one machine, or object storage that many machines share.

Both allow only one writer at a time: a folder by a file lock, object storage by a lease in the store.
"""

import shutil
from collections.abc import Callable, Iterator, Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock

from config.import_stubs import LANCEDB_EXTRAS, stub_packages
from pipeline.errors import IndexUnavailable, StorageUnreachable
from pipeline.index.codes import CodesFile, CodesStore
from pipeline.index.shared_codes import SharedCodes
from pipeline.store.leases import Lease
from pipeline.store.objects import ObjectStorage, first_line, list_client_options

TABLE, CODES = ".lance", ".codes"
# LanceDB's errors for all problems with its files, including missing ones.
LANCE_ERRORS = (RuntimeError, OSError, ValueError)


def preload_vectors() -> Any:
    """Import LanceDB before the first search needs it, because that takes longer than loading an encoder; return it."""
    with stub_packages(LANCEDB_EXTRAS):
        import lancedb
        import pyarrow as pa

    # The default pool keeps what reading has freed in each thread: 12 MiB of a worker.
    pa.set_memory_pool(pa.system_memory_pool())
    return lancedb


class TableStorage(Protocol):
    """Storage of a workspace's tables and codes, by the names of their models."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Exclude every other writer during a block."""

    def check(self) -> None:
        """Raise StoreBusy if the writer has lost its lock."""

    def codes(self, name: str, dimension: int) -> CodesStore:
        """Return the codes of a table."""

    def exists(self, name: str) -> bool:
        """Return whether a table exists."""

    def list_names(self) -> list[str]:
        """List the names of the existing tables."""

    def identify(self, name: str) -> object:
        """Return the identity of a table, None if it cannot be determined."""

    def connect(self) -> Any:
        """Return LanceDB's connection."""

    def drop_all(self, keep: AbstractSet[str]) -> None:
        """Delete the tables and codes of all names except some."""

    def typed_errors(self) -> AbstractContextManager[None]:
        """Translate LanceDB's errors to IndexUnavailable, or to StorageUnreachable if the storage cannot be reached."""


class FolderTables:
    """Tables in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder.with_suffix(".lock"), thread_local=False)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Exclude every other writer of this machine."""
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock:
            yield

    def check(self) -> None:
        """Do nothing: a file lock cannot be lost."""

    def codes(self, name: str, dimension: int) -> CodesStore:
        """Return the file of codes of a table."""
        return CodesFile(self._folder / f"{name}{CODES}", dimension)

    def exists(self, name: str) -> bool:
        """Return whether a table exists."""
        return (self._folder / f"{name}{TABLE}").is_dir()

    def list_names(self) -> list[str]:
        """List the names of the existing tables."""
        return sorted(folder.stem for folder in self._folder.glob(f"*{TABLE}"))

    def identify(self, name: str) -> object:
        """Return the inode of a table and, because inode numbers are reused, its change time."""
        status = (self._folder / f"{name}{TABLE}").stat()
        return status.st_ino, status.st_ctime_ns

    def connect(self) -> Any:
        """Return LanceDB's connection."""
        return preload_vectors().connect(self._folder)

    def drop_all(self, keep: AbstractSet[str]) -> None:
        """Delete the tables and codes of all names except some; without exceptions, the folder."""
        if not keep and self._folder.exists():
            shutil.rmtree(self._folder)
        for folder in self._folder.glob(f"*{TABLE}"):
            if folder.stem not in keep:
                shutil.rmtree(folder)
        _delete_codes(self._folder, keep)

    @contextmanager
    def typed_errors(self) -> Iterator[None]:
        """Translate LanceDB's errors to IndexUnavailable."""
        try:
            yield
        except LANCE_ERRORS as error:
            raise IndexUnavailable(f"vectors: {error}") from error


class SharedTables:
    """Tables on object storage, and a folder for copies of their codes; writers hold `lease`."""

    def __init__(
        self, objects: ObjectStorage, folder: Path, lease: Callable[[], AbstractContextManager[Lease]]
    ) -> None:
        self._objects = objects
        self._folder = folder
        self._lease = lease
        self._held: Lease | None = None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Exclude every other writer on all machines."""
        with self._lease() as lease:
            self._held = lease
            try:
                yield
            finally:
                self._held = None

    def check(self) -> None:
        """Raise StoreBusy if another writer got the lease, for example while this process was suspended."""
        if self._held is not None:
            self._held.check()

    def codes(self, name: str, dimension: int) -> CodesStore:
        """Return the codes of a table."""
        return SharedCodes(self._objects.below(f"{name}{CODES}"), self._folder / f"{name}{CODES}", dimension)

    def exists(self, name: str) -> bool:
        """Return whether a table exists; raise StorageUnreachable if that is unknown."""
        return bool(self._objects.list(f"{name}{TABLE}/_versions/"))

    def list_names(self) -> list[str]:
        """List the names of the existing tables."""
        return sorted(name.removesuffix(TABLE) for name in self._objects.list_folders() if name.endswith(TABLE))

    def identify(self, name: str) -> object:  # noqa: ARG002 - object storage has no identities
        """Return None: a table is opened each time."""
        return None

    @cached_property
    def _connection(self) -> Any:
        return preload_vectors().connect(self._objects.url, storage_options=list_client_options())

    def connect(self) -> Any:
        """Return LanceDB's connection, shared by all threads: it caches the indexes that it has read."""
        return self._connection

    def drop_all(self, keep: AbstractSet[str]) -> None:
        """Delete the tables and codes of all names except some."""
        for folder in self._objects.list_folders():
            name, _, kind = folder.rpartition(".")
            if f".{kind}" in (TABLE, CODES) and name not in keep:
                self._objects.clear(f"{folder}/")
        _delete_codes(self._folder, keep)

    @contextmanager
    def typed_errors(self) -> Iterator[None]:
        """Translate LanceDB's errors to IndexUnavailable, or to StorageUnreachable if the storage cannot be reached.

        LanceDB has one error class for both, and an unreachable table must not be treated as lost.
        """
        try:
            yield
        except LANCE_ERRORS as error:
            if _is_of_transport(error):
                raise StorageUnreachable(f"{self._objects.url} cannot be used: {first_line(error)}") from error
            # For any error: if the storage does not answer, nothing is known about its content.
            self._objects.list_folders()
            raise IndexUnavailable(f"vectors: {first_line(error)}") from error


def _delete_codes(folder: Path, keep: AbstractSet[str]) -> None:
    for file in folder.glob(f"*{CODES}"):
        if file.stem not in keep:
            file.unlink()


def _is_of_transport(error: Exception) -> bool:
    return "Generic S3 error" in str(error) or "timed out" in str(error)
