"""The passage vectors of one model in a LanceDB table, with an ANN index once it pays.

Writers hold one file lock for each change: LanceDB resolves conflicts between appends, but not between two upserts
of one key. Beside the table lies a file of the same vectors in eight bits (`codes`), which is what exact search reads.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from config.left_out import OF_LANCEDB, hollow_packages
from config.process import trim_heap
from pipeline.errors import IndexUnavailable
from pipeline.index.codes import CodesFile, PassageCodes, Position, Vector
from pipeline.index.encoder import table_name

KEPT_VERSIONS = timedelta(hours=1)
# A sequential scan of fewer rows beats any index, in time and in recall.
ANN_ROWS = 20_000


def preload_vectors() -> Any:
    """Import LanceDB, which takes longer than loading an encoder, before the first search needs it; return it."""
    with hollow_packages(OF_LANCEDB):
        import lancedb
    return lancedb


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Passage vectors: row numbers of their memories, and one unit-length vector a row."""

    seqs: NDArray[np.int64]
    matrix: Vector

    @classmethod
    def empty(cls, dimension: int) -> Self:
        """Return no passages."""
        return cls(np.empty(0, np.int64), np.empty((0, dimension), np.float32))


class VectorTable:
    """One model's passage vectors in LanceDB."""

    def __init__(self, folder: Path, model: str, dimension: int) -> None:
        self.model = model
        self._folder = folder
        self._name = table_name(model)
        self._dimension = dimension
        self._codes = CodesFile(folder / f"{self._name}.codes", dimension)
        self._lock = FileLock(folder.with_suffix(".lock"), thread_local=False)
        self._table: Any = None
        self._identity: tuple[int, int] | None = None

    @property
    def dimension(self) -> int:
        """Tell the length of a vector."""
        return self._dimension

    @property
    def _place(self) -> Path:
        return self._folder / f"{self._name}.lance"

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep every other writer out."""
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock:
            yield

    def replace(self, vectors: Mapping[int, Vector]) -> None:
        """Store the passages (n × dimension) of memories in place of what was there; the caller holds the lock."""
        import pyarrow as pa

        seqs = np.repeat(list(vectors), [len(passages) for passages in vectors.values()])
        flat = np.concatenate(list(vectors.values())).astype(np.float32, copy=False).reshape(-1)
        rows = pa.table(
            {
                "seq": pa.array(seqs, pa.int64()),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(flat), self._dimension),
            },
            schema=self._schema(),
        )
        with _typed_errors():
            table = self._open(create=True)
            self._delete(list(vectors))
            table.add(rows)
        try:
            self._codes.append(PassageCodes.of(seqs, flat.reshape(-1, self._dimension)))
        except IndexUnavailable:
            # Not made yet, or lost: a file of these alone would look whole.
            self._codes.replace(self._read_all())

    def remove(self, seqs: Sequence[int]) -> None:
        """Delete the passages of memories; the caller holds the lock."""
        self._delete(seqs)
        self._codes.remove(seqs)

    def _delete(self, seqs: Sequence[int]) -> None:
        if seqs and self.exists():
            with _typed_errors():
                self._open().delete(f"seq IN ({','.join(str(int(seq)) for seq in seqs)})")

    def exists(self) -> bool:
        """Tell whether the table is there."""
        return self._place.is_dir()

    def count(self) -> int:
        """Count the passages."""
        return int(self._read_reopening(lambda table: table.count_rows())) if self.exists() else 0

    def seqs(self) -> set[int]:
        """List the memories that have passages."""
        return set(self._rows(["seq"], None)["seq"].to_pylist()) if self.exists() else set()

    def read_codes(self, position: Position | None, most: int) -> PassageCodes | None:
        """Return the passages written since a position in eight bits, None where there are more than `most` in all."""
        try:
            return None if self._codes.count() > most else self._codes.read(position)
        except IndexUnavailable:
            # Until a worker has made it again.
            return None if self.count() > most else self._read_all()

    def has_codes(self) -> bool:
        """Tell whether the file of codes is there."""
        return self._codes.exists()

    def repair_codes(self) -> bool:
        """Make the file of codes anew unless it holds what the table holds; tell whether; the caller holds the lock."""
        held = np.sort(self._rows(["seq"], None)["seq"].to_numpy()) if self.exists() else np.empty(0, np.int64)
        with suppress(IndexUnavailable):
            if np.array_equal(held, np.sort(self._codes.read(None).latest().seqs)):
                return False
        # Of no passages too: recall asks for the repair as long as there is no file.
        self._codes.replace(self._read_all())
        return True

    def _read_all(self) -> PassageCodes:
        rows = self._read(None)
        codes = PassageCodes.of(rows.seqs, rows.matrix)
        if len(rows.seqs):
            release_memory()
        return codes

    def _read(self, condition: str | None) -> VectorRows:
        if not self.exists():
            return VectorRows.empty(self._dimension)
        rows = self._rows(["seq", "vector"], condition).combine_chunks()
        vectors = rows["vector"].combine_chunks()
        flat = vectors.flatten() if rows.num_rows else []
        return VectorRows(np.asarray(rows["seq"], np.int64), np.asarray(flat, np.float32).reshape(-1, self._dimension))

    def vectors(self, seqs: Sequence[int]) -> VectorRows:
        """Return the passages of memories."""
        return self._read(f"seq IN ({','.join(str(int(seq)) for seq in seqs)})" if len(seqs) else "false")

    def nearest(self, query: Vector, limit: int, only: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Return (row number, cosine) of the passages nearest to a unit vector, by LanceDB's own search."""
        if not self.exists() or (only is not None and not only):
            return []

        def search(table: Any) -> Any:
            wanted = table.search(query).distance_type("dot").select(["seq", "_distance"]).limit(limit)
            if only is not None:
                wanted = wanted.where(f"seq IN ({','.join(str(int(seq)) for seq in only)})", prefilter=True)
            return wanted.to_arrow()

        found = self._read_reopening(search)
        return [(seq, 1.0 - d) for seq, d in zip(found["seq"].to_pylist(), found["_distance"].to_pylist(), strict=True)]

    def fragments(self) -> int:
        """Count the fragments that appends have left."""
        if not self.exists():
            return 0
        return int(self._read_reopening(lambda table: table.stats())["fragment_stats"]["num_fragments"])

    def compact(self) -> None:
        """Merge fragments, drop old versions, and keep an ANN index once it pays; the caller holds the lock."""
        if not self.exists():
            return
        with _typed_errors():
            table = self._open()
            if table.count_rows() >= ANN_ROWS and not table.list_indices():
                from lancedb.index import BTree, IvfFlat

                table.create_index("vector", config=IvfFlat(distance_type="dot"))
                # A filter by row number would read every row otherwise.
                table.create_index("seq", config=BTree())
            table.optimize(cleanup_older_than=KEPT_VERSIONS)
        with suppress(IndexUnavailable):
            # One that is lost is made again by the repair.
            self._codes.compact()

    def scrub(self) -> None:
        """Rewrite the table so that no file keeps a deleted vector; the caller holds the lock."""
        if self.exists():
            # Readers of older versions get an error and open the newest: that is what a purge asks for.
            import warnings

            with _typed_errors(), warnings.catch_warnings():
                table = self._open()
                table.optimize()
                warnings.filterwarnings("ignore", message="optimize\\(cleanup_older_than=0\\)", category=UserWarning)
                table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)

    def drop(self) -> None:
        """Delete the table; the caller holds the lock."""
        if self.exists():
            with _typed_errors():
                self._connect().drop_table(self._name)
        self._codes.drop()
        self._table = None

    def drop_others(self, keep: str | None = None) -> None:
        """Delete the vectors of every model but this one and one to keep; the caller holds the lock."""
        kept = {self._name, table_name(keep or self.model)}
        for place in self._folder.glob("*.lance"):
            if place.stem not in kept:
                shutil.rmtree(place)
        for file in self._folder.glob("*.codes"):
            if file.stem not in kept:
                file.unlink()

    def _rows(self, columns: list[str], condition: str | None) -> Any:
        def read(table: Any) -> Any:
            wanted = table.search().select(columns).limit(2**31)
            return (wanted.where(condition) if condition else wanted).to_arrow()

        return self._read_reopening(read)

    def _read_reopening(self, read: Callable[[Any], Any]) -> Any:
        try:
            return read(self._open())
        except (RuntimeError, OSError, ValueError):
            # The files of the version that we had open are gone: compacted, purged or deleted. Open what is there now.
            self._table = None
        with _typed_errors():
            return read(self._open())

    def _open(self, *, create: bool = False) -> Any:
        if not self.exists():
            self._table = None
            if not create:
                raise IndexUnavailable("vectors: the table is not there")
            return self._create()
        # A table that was deleted and made anew by the same name is another one: an open handle would answer with the
        # old one's numbers. Inode numbers are given out again, so the time of change belongs to the identity.
        status = self._place.stat()
        identity = status.st_ino, status.st_ctime_ns
        if self._table is None or identity != self._identity:
            self._table = self._connect().open_table(self._name)
            self._identity = identity
        self._table.checkout_latest()
        return self._table

    def _create(self) -> Any:
        self._table, self._identity = self._connect().create_table(self._name, schema=self._schema()), None
        return self._table

    def _connect(self) -> Any:
        return preload_vectors().connect(self._folder)

    def _schema(self) -> Any:
        import pyarrow as pa

        return pa.schema([("seq", pa.int64()), ("vector", pa.list_(pa.float32(), self._dimension))])


def release_memory() -> None:
    """Give back to the system what reading a whole table has left in the allocators."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    trim_heap()


@contextmanager
def _typed_errors() -> Iterator[None]:
    # LanceDB names every trouble with its files, a missing one too, by one of these.
    try:
        yield
    except (RuntimeError, OSError, ValueError) as error:
        raise IndexUnavailable(f"vectors: {error}") from error
