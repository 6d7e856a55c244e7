"""Where the tables of vectors stand: in a folder of one machine, or on object storage that many machines share.

Both keep one writer out of another's way: a folder by a lock of the system, object storage by a lease in the store.
"""

import shutil
from collections.abc import Callable, Iterator, Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock

from config.left_out import OF_LANCEDB, hollow_packages
from pipeline.errors import IndexUnavailable, StorageUnreachable
from pipeline.index.codes import CodesFile, CodesStore
from pipeline.index.shared_codes import SharedCodes
from pipeline.store.leases import Lease
from pipeline.store.objects import ObjectStorage, first_line, list_client_options

TABLE, CODES = ".lance", ".codes"
# LanceDB names every trouble with its files, a missing one too, by one of these.
LANCE_ERRORS = (RuntimeError, OSError, ValueError)


def preload_vectors() -> Any:
    """Import LanceDB, which takes longer than loading an encoder, before the first search needs it; return it."""
    with hollow_packages(OF_LANCEDB):
        import lancedb
    return lancedb


class TablePlace(Protocol):
    """What holds the tables and codes of a workspace, by their models' names."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep every other writer out during a block."""

    def check(self) -> None:
        """Raise StoreBusy where the lock that a writer took is not its own any more."""

    def codes(self, name: str, dimension: int) -> CodesStore:
        """Return the codes beside a table."""

    def exists(self, name: str) -> bool:
        """Return whether a table is there."""

    def list_names(self) -> list[str]:
        """List the names of the tables that are there."""

    def identify(self, name: str) -> object:
        """Return what tells a table from any other of its name, None if nothing does."""

    def connect(self) -> Any:
        """Return LanceDB's connection."""

    def drop_all(self, keep: AbstractSet[str]) -> None:
        """Delete the tables and codes of every name but some."""

    def typed_errors(self) -> AbstractContextManager[None]:
        """Raise what LanceDB raises as IndexUnavailable, or as StorageUnreachable where the place is out of reach."""


class FolderPlace:
    """Tables in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder.with_suffix(".lock"), thread_local=False)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep every other writer of this machine out."""
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock:
            yield

    def check(self) -> None:
        """Know that a lock of the system is never lost."""

    def codes(self, name: str, dimension: int) -> CodesStore:
        """Return the file of codes beside a table."""
        return CodesFile(self._folder / f"{name}{CODES}", dimension)

    def exists(self, name: str) -> bool:
        """Return whether a table is there."""
        return (self._folder / f"{name}{TABLE}").is_dir()

    def list_names(self) -> list[str]:
        """List the names of the tables that are there."""
        return sorted(place.stem for place in self._folder.glob(f"*{TABLE}"))

    def identify(self, name: str) -> object:
        """Return the inode of a table; since inode numbers are given out again, with its time of change."""
        status = (self._folder / f"{name}{TABLE}").stat()
        return status.st_ino, status.st_ctime_ns

    def connect(self) -> Any:
        """Return LanceDB's connection."""
        return preload_vectors().connect(self._folder)

    def drop_all(self, keep: AbstractSet[str]) -> None:
        """Delete the tables and codes of every name but some, and with none to keep the folder."""
        if not keep and self._folder.exists():
            shutil.rmtree(self._folder)
        for place in self._folder.glob(f"*{TABLE}"):
            if place.stem not in keep:
                shutil.rmtree(place)
        _delete_codes(self._folder, keep)

    @contextmanager
    def typed_errors(self) -> Iterator[None]:
        """Raise what LanceDB raises as IndexUnavailable."""
        try:
            yield
        except LANCE_ERRORS as error:
            raise IndexUnavailable(f"vectors: {error}") from error


class SharedPlace:
    """Tables on object storage, and a folder for copies of their codes; `lease` is what its writers hold."""

    def __init__(
        self, objects: ObjectStorage, folder: Path, lease: Callable[[], AbstractContextManager[Lease]]
    ) -> None:
        self._objects = objects
        self._folder = folder
        self._lease = lease
        self._held: Lease | None = None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep every other writer out, on whatever machine."""
        with self._lease() as lease:
            self._held = lease
            try:
                yield
            finally:
                self._held = None

    def check(self) -> None:
        """Raise StoreBusy where the lease went to another writer: a process may have stood still for that long."""
        if self._held is not None:
            self._held.check()

    def codes(self, name: str, dimension: int) -> CodesStore:
        """Return the codes beside a table."""
        return SharedCodes(self._objects.below(f"{name}{CODES}"), self._folder / f"{name}{CODES}", dimension)

    def exists(self, name: str) -> bool:
        """Return whether a table is there; raise StorageUnreachable if that cannot be told."""
        return bool(self._objects.list(f"{name}{TABLE}/_versions/"))

    def list_names(self) -> list[str]:
        """List the names of the tables that are there."""
        return sorted(name.removesuffix(TABLE) for name in self._objects.list_folders() if name.endswith(TABLE))

    def identify(self, name: str) -> object:  # noqa: ARG002 - nothing on object storage tells
        """Return None: a table is opened each time."""
        return None

    @cached_property
    def _connection(self) -> Any:
        return preload_vectors().connect(self._objects.url, storage_options=list_client_options())

    def connect(self) -> Any:
        """Return LanceDB's connection, one for all threads: what it has read of its indexes it keeps."""
        return self._connection

    def drop_all(self, keep: AbstractSet[str]) -> None:
        """Delete the tables and codes of every name but some."""
        for folder in self._objects.list_folders():
            name, _, kind = folder.rpartition(".")
            if f".{kind}" in (TABLE, CODES) and name not in keep:
                self._objects.clear(f"{folder}/")
        _delete_codes(self._folder, keep)

    @contextmanager
    def typed_errors(self) -> Iterator[None]:
        """Raise what LanceDB raises as IndexUnavailable, or as StorageUnreachable where storage is out of reach.

        LanceDB has one class of error for both, and what cannot be reached must not be taken for lost.
        """
        try:
            yield
        except LANCE_ERRORS as error:
            if _is_of_transport(error):
                raise StorageUnreachable(f"{self._objects.url} cannot be used: {first_line(error)}") from error
            # Whatever it is called: where the storage does not answer, nothing is known of what lies there.
            self._objects.list_folders()
            raise IndexUnavailable(f"vectors: {first_line(error)}") from error


def _delete_codes(folder: Path, keep: AbstractSet[str]) -> None:
    for file in folder.glob(f"*{CODES}"):
        if file.stem not in keep:
            file.unlink()


def _is_of_transport(error: Exception) -> bool:
    return "Generic S3 error" in str(error) or "timed out" in str(error)
