"""Storage of the vector tables: a folder of one machine, or object storage that many machines share.

Both allow only one writer at a time: a folder by a file lock, object storage by a lease in the store.
"""

import json
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence, Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from config.import_stubs import LANCEDB_EXTRAS, stub_packages
from config.operating_system import make_folder, sync_to_disk, sync_tree
from pipeline.index.codes import CodesFile, PassageCodes, Position
from pipeline.kernel.errors import IndexUnavailable, ReverieError, StorageUnreachable
from pipeline.kernel.store.leases import Lease
from pipeline.kernel.store.objects import ObjectExists, ObjectStorage, first_line, list_client_options

TABLE, CODES = ".lance", ".codes"
# File systems round the times of files down, by up to two seconds.
ROUNDED_NS = 2_000_000_000
# LanceDB's errors for all problems with its files. The class of a panic in its Rust code cannot be imported.
LANCE_ERRORS = (Exception,)


def preload_vectors() -> Any:
    """Import LanceDB before the first search needs it, because that takes longer than loading an encoder; return it."""
    with stub_packages(LANCEDB_EXTRAS):
        import lancedb
        import pyarrow as pa

    # The default pool keeps what reading has freed in each thread: 12 MiB of a worker.
    pa.set_memory_pool(pa.system_memory_pool())
    return lancedb


class FolderTables:
    """Tables in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder.with_suffix(".lock"), thread_local=False)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Exclude every other writer of this machine."""
        make_folder(self._folder.parent)
        with self._lock:
            yield

    def check(self) -> None:
        """Do nothing: a file lock cannot be lost."""

    def codes(self, name: str, dimension: int) -> CodesFile:
        """Return the file of codes of a table."""
        return CodesFile(self._folder / f"{name}{CODES}", dimension)

    def exists(self, name: str) -> bool:
        """Return whether a table exists."""
        return (self._folder / f"{name}{TABLE}").is_dir()

    def list_names(self) -> list[str]:
        """List the names of the existing tables."""
        return sorted(folder.stem for folder in self._folder.glob(f"*{TABLE}"))

    def list_files(self, name: str) -> list[str]:
        """List the files of a table, relative to its folder."""
        folder = self._folder / f"{name}{TABLE}"
        return [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]

    def delete_drafts(self, name: str) -> None:
        """Delete the files that a killed writer did not complete, which LanceDB keeps; the caller has the lock."""
        for draft in (self._folder / f"{name}{TABLE}").rglob(".tmp*"):
            draft.unlink()

    def identify(self, name: str) -> object:
        """Return the inode of a table and, because inode numbers are reused, its change time."""
        status = (self._folder / f"{name}{TABLE}").stat()
        return status.st_ino, status.st_ctime_ns

    def connect(self) -> Any:
        """Return LanceDB's connection."""
        return preload_vectors().connect(self._folder)

    @contextmanager
    def synced(self) -> Iterator[None]:
        """Flush what a block changes to disk, which LanceDB does not."""
        make_folder(self._folder)
        began_ns = time.time_ns() - ROUNDED_NS
        yield
        sync_tree(self._folder, began_ns)

    def drop_all(self, keep: AbstractSet[str]) -> None:
        """Delete the tables and codes of all names except some; without exceptions, the folder."""
        if not keep and self._folder.exists():
            shutil.rmtree(self._folder)
        for folder in self._folder.glob(f"*{TABLE}"):
            if folder.stem not in keep:
                shutil.rmtree(folder)
        _delete_codes(self._folder, keep)
        # They may contain vectors of purged memories.
        sync_to_disk(self._folder if self._folder.exists() else self._folder.parent)

    @contextmanager
    def typed_errors(self) -> Iterator[None]:
        """Translate LanceDB's errors to IndexUnavailable."""
        try:
            yield
        except ReverieError:
            raise
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

    def synced(self) -> AbstractContextManager[None]:
        """Do nothing: object storage is durable."""
        return nullcontext()

    def check(self) -> None:
        """Raise StoreBusy if another writer got the lease, for example while this process was suspended."""
        if self._held is not None:
            self._held.check()

    def codes(self, name: str, dimension: int) -> "SharedCodes":
        """Return the codes of a table."""
        return SharedCodes(self._objects.below(f"{name}{CODES}"), self._folder / f"{name}{CODES}", dimension)

    def exists(self, name: str) -> bool:
        """Return whether a table exists; raise StorageUnreachable if that is unknown."""
        return bool(self._objects.list(f"{name}{TABLE}/_versions/"))

    def list_names(self) -> list[str]:
        """List the names of the existing tables."""
        return sorted(name.removesuffix(TABLE) for name in self._objects.list_folders() if name.endswith(TABLE))

    def list_files(self, name: str) -> list[str]:
        """List the objects of a table, relative to its prefix."""
        prefix = f"{name}{TABLE}/"
        return [key.removeprefix(prefix) for key in self._objects.list(prefix)]

    def delete_drafts(self, name: str) -> None:
        """Do nothing: an object appears when it is complete."""

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
        except ReverieError:
            raise
        except LANCE_ERRORS as error:
            if "Generic S3 error" in str(error) or "timed out" in str(error):
                raise StorageUnreachable(f"{self._objects.url} cannot be used: {first_line(error)}") from error
            # For any error: if the storage does not answer, nothing is known about its content.
            self._objects.list_folders()
            raise IndexUnavailable(f"vectors: {first_line(error)}") from error


def _delete_codes(folder: Path, keep: AbstractSet[str]) -> None:
    for file in folder.glob(f"*{CODES}"):
        if file.stem not in keep:
            file.unlink()


HEAD = "head"
# A piece of this many passages has about 20 MiB.
MOST_PASSAGES = 50_000
# Each batch of a worker is a piece: compaction joins them from this number on.
COMPACT_FROM_PIECES = 64
# A writer may replace everything while a reader reads the pieces.
TRIES = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """An object, and its number of passages."""

    key: str
    count: int


@dataclass(frozen=True, slots=True)
class Head:
    """A random number of the codes, their pieces in order, and the head's tag."""

    identity: bytes
    pieces: tuple[Piece, ...]
    tag: str

    @property
    def count(self) -> int:
        """Count the passages."""
        return sum(piece.count for piece in self.pieces)


class SharedCodes:
    """The codes of a model in a separate part of object storage, read through a local copy."""

    def __init__(self, objects: ObjectStorage, copy: Path, dimension: int) -> None:
        self._objects = objects
        self._copy = CodesFile(copy, dimension)
        # The processes of this machine share the copy.
        self._lock = FileLock(copy.with_suffix(".codes.lock"))
        self._folder = copy.parent

    def exists(self) -> bool:
        """Assume that they exist: every search asks, and a read detects if they do not."""
        return True

    def append(self, rows: PassageCodes) -> None:
        """Append passages; raise IndexUnavailable if there is nothing to append to."""
        head = self._read_head()
        self._publish(replace(head, pieces=(*head.pieces, *self._put(head.identity, rows))), replacing=head.tag)

    def replace(self, rows: PassageCodes) -> None:
        """Replace all passages."""
        identity = secrets.token_bytes(16)
        head = Head(identity, tuple(self._put(identity, rows)), "")
        self._publish(head, replacing=None)
        self._delete_unnamed(head)

    def remove(self, seqs: Sequence[int]) -> None:
        """Remove all bytes of memories; remove unreadable codes completely."""
        try:
            rows = self.read(None)
        except IndexUnavailable:
            self.drop()
            return
        gone = np.isin(rows.seqs, np.asarray(seqs, np.int64))
        if gone.any():
            self.replace(rows.select(~gone).latest())
            self._copy.drop()
        else:
            # A writer that was killed before it named its piece may have left one with these memories.
            self._delete_unnamed(self._read_head())

    def compact(self) -> None:
        """Drop passages that were replaced since, and join many pieces to few."""
        rows = self.read(None)
        latest = rows.latest()
        if len(latest.seqs) < len(rows.seqs) or len(self._read_head().pieces) > COMPACT_FROM_PIECES:
            self.replace(latest)

    def drop(self) -> None:
        """Delete the codes."""
        self._objects.clear()
        self._copy.drop()

    def count(self) -> int:
        """Count the passages, including replaced ones; raise IndexUnavailable if there are none to read."""
        return self._read_head().count

    def read(self, position: Position | None) -> PassageCodes:
        """Return the passages since a position, or all if the codes are others by now."""
        for last in (False,) * (TRIES - 1) + (True,):
            try:
                self._fetch()
                return self._copy.read(position)
            except IndexUnavailable:
                # The copy was damaged or deleted, or a writer has replaced the codes.
                self._copy.drop()
                if last:
                    raise
        raise AssertionError

    def _fetch(self) -> None:
        """Update the copy."""
        head = self._read_head()
        if self._copy.identify() == Position(head.identity, head.count):
            return
        make_folder(self._folder)
        with self._lock:
            held = self._copy.identify()
            # Other records in the copy are useless.
            offset = held.offset if held is not None and held.file == head.identity and held.offset <= head.count else 0
            content, passed = [], 0
            for piece in head.pieces:
                passed += piece.count
                if passed > offset:
                    content.append(self._get(piece, skipped=max(0, offset - passed + piece.count)))
            if content or not offset:
                self._copy.follow(Position(head.identity, offset), b"".join(content))

    def _get(self, piece: Piece, skipped: int) -> bytes:
        content = self._objects.get(piece.key)
        if content is None or len(content) != piece.count * self._copy.record_size:
            raise IndexUnavailable(f"vectors: {self._objects.url}/{piece.key} is missing or damaged")
        return content[skipped * self._copy.record_size :]

    def _put(self, identity: bytes, rows: PassageCodes) -> list[Piece]:
        content, size, pieces = self._copy.pack(rows), self._copy.record_size, []
        for start in range(0, len(rows.seqs), MOST_PASSAGES):
            part = content[start * size : (start + MOST_PASSAGES) * size]
            piece = Piece(f"{identity.hex()}/{secrets.token_hex(8)}", len(part) // size)
            self._objects.put(piece.key, part, once=True)
            pieces.append(piece)
        return pieces

    def _read_head(self) -> Head:
        tagged = self._objects.get_tagged(HEAD)
        if tagged is None:
            raise IndexUnavailable(f"vectors: there are no codes at {self._objects.url}")
        try:
            content = json.loads(tagged[0])
            pieces = tuple(Piece(str(key), int(count)) for key, count in content["pieces"])
            return Head(bytes.fromhex(content["identity"]), pieces, tagged[1])
        except (ValueError, KeyError, TypeError) as error:
            raise IndexUnavailable(f"vectors: the head of {self._objects.url} is damaged: {error}") from error

    def _publish(self, head: Head, replacing: str | None) -> None:
        pieces = [[piece.key, piece.count] for piece in head.pieces]
        content = json.dumps({"identity": head.identity.hex(), "pieces": pieces}).encode("ascii")
        try:
            self._objects.put(HEAD, content, replacing=replacing)
        except ObjectExists as error:
            raise IndexUnavailable(f"vectors: another writer changed {self._objects.url} meanwhile") from error

    def _delete_unnamed(self, head: Head) -> None:
        named = {HEAD, *(piece.key for piece in head.pieces)}
        self._objects.delete(key for key in self._objects.list() if key not in named)


# Storage of a workspace's tables and codes, by the names of their models.
TableStorage = FolderTables | SharedTables
