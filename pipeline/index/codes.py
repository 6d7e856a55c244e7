"""Passage vectors in eight bits, in one file next to the full table, for exact search.

Records of fixed size are appended and read on from the reader's last position; a record of passage 0 starts its
memory again. The header counts the records, so a torn append is ignored and a truncated file is detected. Removing
records replaces the file, and its new header shows readers that it is another file. The file can be rebuilt from the
table. Readers map it: writers replace it, or append behind all that readers know, and never cut off what they know.
"""

import os
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import numpy as np
from numpy.typing import NDArray

from config.operating_system import make_folder, map_file, publish, sync_to_disk
from pipeline.index.row_arrays import Seqs
from pipeline.kernel.errors import IndexUnavailable

Vector = NDArray[np.float32]
Codes = NDArray[np.int8]

MAGIC = b"passage codes 2\n"
# A random number of the file, and the number of records.
HEADER = struct.Struct("<16s16sQ")
FIELDS = ("seq", "passage", "scale")
STEPS = 127


def quantize_rows(matrix: Vector) -> tuple[Codes, Vector]:
    """Return eight-bit codes of vectors, and the scales that restore the vectors' lengths."""
    largest = np.maximum(np.abs(matrix).max(axis=1, initial=0.0), 1e-9)
    codes = np.rint(matrix * (STEPS / largest)[:, None]).astype(np.int8)
    # Scaled by length, not by step: so a text has cosine 1 to itself despite rounding.
    scales = row_lengths(matrix) / np.maximum(row_lengths(codes.astype(np.float32)), 1)
    return codes, scales.astype(np.float32)


def row_lengths(matrix: Vector) -> Vector:
    """Return the length of each vector."""
    return cast(Vector, np.sqrt(np.einsum("ij,ij->i", matrix, matrix)).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Position:
    """The end of a read, and the file that was read."""

    file: bytes
    offset: int


@dataclass(frozen=True, slots=True)
class PassageCodes:
    """Passages in writing order: memory, passage number, codes and scale.

    `position` is the start of the next read; `continues` means that the passages add to those read before. `stored` are
    all records of the file, also those read before; None without a file.
    """

    seqs: Seqs
    passages: NDArray[np.int32]
    codes: Codes
    scales: Vector
    position: Position | None = None
    continues: bool = False
    stored: "StoredCodes | None" = None

    @classmethod
    def of(cls, seqs: Seqs, matrix: Vector) -> Self:
        """Return the codes of vectors, those of a memory in order."""
        order = np.argsort(seqs, kind="stable")
        ordered = seqs[order]
        _, starts, counts = np.unique(ordered, return_index=True, return_counts=True)
        passages = np.arange(len(seqs)) - np.repeat(starts, counts)
        return cls(ordered, passages.astype(np.int32), *quantize_rows(matrix[order]))

    def select(self, mask: NDArray[np.bool_]) -> Self:
        """Return some of the passages."""
        rows = self.seqs[mask], self.passages[mask], self.codes[mask], self.scales[mask]
        return type(self)(*rows, self.position, self.continues)

    def latest(self) -> Self:
        """Return each memory's latest passages."""
        return self.select(self.are_latest())

    def are_latest(self) -> NDArray[np.bool_]:
        """Return which passages belong to the latest ones of their memory."""
        begins = np.flatnonzero(self.passages == 0)
        since = np.zeros(int(self.seqs.max(initial=-1)) + 1, np.int64)
        # Among several starts of a memory, the last one counts.
        since[self.seqs[begins]] = begins
        are_latest: NDArray[np.bool_] = np.arange(len(self.seqs)) >= since[self.seqs]
        return are_latest


@dataclass(frozen=True, slots=True)
class StoredCodes:
    """The codes of every record of a file, in its order, and the content that they are a view of."""

    codes: Codes
    content: mmap | bytes = b""

    def are_whole(self) -> bool:
        """Return whether no other program has cut off the mapped file: touching the lost part kills the process."""
        return not isinstance(self.content, mmap) or self.content.size() >= len(self.content)


class CodesFile:
    """The file of a model's codes; writers must have the table's lock."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._path = path
        self._partial = path.with_name(f".{path.name}.partial")
        self._type = np.dtype(
            [("check", "<u4"), ("scale", "<f4"), ("seq", "<i8"), ("passage", "<i4"), ("code", "i1", (dimension,))]
        )

    @property
    def record_size(self) -> int:
        """Return the size of a record in bytes."""
        return self._type.itemsize

    def exists(self) -> bool:
        """Return whether the file is there."""
        return self._path.exists()

    def append(self, rows: PassageCodes) -> None:
        """Append passages; raise IndexUnavailable if there is no file."""
        with self._open("r+b") as file:
            known, count = self._read_header(file)
            end = HEADER.size + count * self._type.itemsize
            # Overwrites a torn append of a crash.
            file.truncate(end)
            file.seek(end)
            file.write(self.pack(rows))
            file.seek(0)
            file.write(HEADER.pack(MAGIC, known, count + len(rows.seqs)))
        # Before the store says so: without the latest vectors of an edited memory, its old ones would count.
        sync_to_disk(self._path)

    def replace(self, rows: PassageCodes) -> None:
        """Replace the file by one with these passages."""
        self._write_anew(HEADER.pack(MAGIC, secrets.token_bytes(16), len(rows.seqs)) + self.pack(rows))

    def remove(self, seqs: Sequence[int]) -> None:
        """Remove all bytes of memories; remove an unreadable file completely."""
        self._partial.unlink(missing_ok=True)
        try:
            rows = self.read(None)
        except IndexUnavailable:
            self._path.unlink(missing_ok=True)
            return
        gone = np.isin(rows.seqs, np.asarray(seqs, np.int64))
        if gone.any():
            self.replace(rows.select(~gone).latest())

    def compact(self) -> None:
        """Drop passages that were replaced since; raise IndexUnavailable if there is no file."""
        rows = self.read(None)
        latest = rows.latest()
        if len(latest.seqs) < len(rows.seqs):
            self.replace(latest)

    def identify(self) -> Position | None:
        """Return the identity of the file and its end, None if no readable file exists."""
        try:
            with self._open("rb") as file:
                return Position(*self._read_header(file))
        except IndexUnavailable:
            return None

    def follow(self, start: Position, content: bytes) -> None:
        """Replace the records from a position on by those of another storage."""
        if start.offset:
            with self._open("r+b") as file:
                file.seek(HEADER.size + start.offset * self._type.itemsize)
                file.write(content)
                file.seek(0)
                file.write(HEADER.pack(MAGIC, start.file, start.offset + len(content) // self._type.itemsize))
            return
        self._write_anew(HEADER.pack(MAGIC, start.file, len(content) // self._type.itemsize) + content)

    def drop(self) -> None:
        """Delete the file."""
        for file in (self._partial, self._path):
            file.unlink(missing_ok=True)

    def count(self) -> int:
        """Count the passages, including replaced ones; raise IndexUnavailable if there is no file."""
        with self._open("rb") as file:
            return self._read_header(file)[1]

    def read(self, position: Position | None) -> PassageCodes:
        """Return the passages since a position, or all if the file is another one by now."""
        with self._open("rb") as file:
            known, count = self._read_header(file)
            continues = position is not None and position.file == known and position.offset <= count
            first = position.offset if position is not None and continues else 0
            content = map_file(file, HEADER.size + count * self._type.itemsize)
        stored = np.frombuffer(content, self._type, count, HEADER.size)
        records = stored[first:]
        if (records["check"] != _checks(records)).any():
            raise IndexUnavailable(f"vectors: {self._path.name} is damaged")
        end = Position(known, first + len(records))
        seqs, passages, scales = (np.ascontiguousarray(records[name]) for name in FIELDS)
        every = StoredCodes(stored["code"], content)
        return PassageCodes(seqs, passages, records["code"], scales, end, continues, every)

    def _write_anew(self, content: bytes) -> None:
        make_folder(self._partial.parent)
        self._partial.write_bytes(content)
        publish(self._partial, self._path)

    def pack(self, rows: PassageCodes) -> bytes:
        """Return the records of passages in file format."""
        records = np.zeros(len(rows.seqs), self._type)
        records["seq"], records["passage"] = rows.seqs, rows.passages
        records["code"], records["scale"] = rows.codes, rows.scales
        records["check"] = _checks(records)
        return records.tobytes()

    def _read_header(self, file: BinaryIO) -> tuple[bytes, int]:
        size = os.fstat(file.fileno()).st_size
        magic, known, count = HEADER.unpack(file.read(HEADER.size)) if size >= HEADER.size else (b"", b"", 0)
        if magic != MAGIC or size < HEADER.size + count * self._type.itemsize:
            raise IndexUnavailable(f"vectors: {self._path.name} is damaged")
        return known, count

    def _open(self, mode: str) -> Any:
        try:
            return self._path.open(mode)
        except OSError as error:
            raise IndexUnavailable(f"vectors: {error}") from error


def _checks(records: NDArray[Any]) -> NDArray[np.uint32]:
    """Return a checksum per record, which is not 0 for a record of zeros."""
    flat = records.view(np.uint8).reshape(len(records), records.dtype.itemsize)
    return cast(NDArray[np.uint32], flat[:, 4:].sum(axis=1, dtype=np.uint32) + np.uint32(1))
