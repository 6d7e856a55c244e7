"""Passage vectors in eight bits on object storage: write-once pieces, and a head object that names them.

Each machine copies fetched pieces to a file of codes, which may be deleted at any time. Two concurrent writers cannot
damage the codes: only a writer that has read the current head can replace it.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from filelock import FileLock

from pipeline.errors import IndexUnavailable
from pipeline.index.codes import CodesFile, PassageCodes, Position
from pipeline.store.objects import ObjectExists, ObjectStorage

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
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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
