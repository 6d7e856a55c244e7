"""The passage vectors of a model in a LanceDB table, with an ANN index for large tables.

A `TableStorage` is the storage of tables: a folder or object storage. Writers hold its lock for each change: LanceDB
resolves conflicts between appends, but not between two upserts of one key. The same vectors in eight bits (`codes`)
are stored next to the table for exact search.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from config.operating_system import POSIX
from config.process import trim_heap
from config.steps import reached
from pipeline.index.codes import PassageCodes, Position, Vector
from pipeline.index.encoder import table_name
from pipeline.index.table_storage import LANCE_ERRORS, FolderTables, TableStorage
from pipeline.kernel.errors import IndexUnavailable

KEPT_VERSIONS = timedelta(hours=1)
# With fewer rows, a sequential scan is faster and more accurate than any index.
ANN_ROWS = 20_000
# With more allowed passages than this, the index is faster than comparing each of them.
MOST_COMPARED = 50_000
# Up to this many passages are searched exactly; larger workspaces use LanceDB's approximate index (decision 0107).
MOST_EXACT = 2_000_000
# A process reads no more passages than this into its own memory: their vectors have 300 MB at 384 dimensions.
MOST_READ = 200_000
# A write merges the fragments of a table if it has at least this many, and one for so many rows: reads and deletions
# open every fragment, but a merge rewrites every row.
MOST_FRAGMENTS = 16
ROWS_PER_FRAGMENT = 256


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Passage vectors: row numbers of their memories, and a unit-length vector per row."""

    seqs: NDArray[np.int64]
    matrix: Vector

    @classmethod
    def empty(cls, dimension: int) -> Self:
        """Return no passages."""
        return cls(np.empty(0, np.int64), np.empty((0, dimension), np.float32))

    def by_memory(self) -> dict[int, Vector]:
        """Return the passages (n × dimension) of each memory by row number."""
        order = np.argsort(self.seqs, kind="stable")
        seqs, starts = np.unique(self.seqs[order], return_index=True)
        return dict(zip(seqs.tolist(), np.split(self.matrix[order], starts[1:]), strict=False))


class VectorTable:
    """A model's passage vectors in LanceDB."""

    def __init__(self, folder: Path, model: str, dimension: int, place: TableStorage | None = None) -> None:
        self.model = model
        self.dimension = dimension
        self._place = FolderTables(folder) if place is None else place
        self._name = table_name(model)
        self._codes = self._place.codes(self._name, dimension)
        self._table: Any = None
        self._identity: object = None

    def exclusive(self) -> AbstractContextManager[None]:
        """Exclude every other writer."""
        return self._place.exclusive()

    def replace(self, vectors: Mapping[int, Vector]) -> None:
        """Replace the passages (n × dimension) of memories; the caller has the lock."""
        import pyarrow as pa

        seqs = np.repeat(list(vectors), [len(passages) for passages in vectors.values()])
        flat = np.concatenate(list(vectors.values())).astype(np.float32, copy=False).reshape(-1)
        rows = pa.table(
            {
                "seq": pa.array(seqs, pa.int64()),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(flat), self.dimension),
            },
            schema=self._schema(),
        )
        with self._place.typed_errors(), self._place.synced():
            table = self._open(create=True)
            self._place.check()
            self._delete(list(vectors))
            table.add(rows)
        reached("vectors added")
        try:
            self._codes.append(PassageCodes.of(seqs, flat.reshape(-1, self.dimension)))
        except IndexUnavailable:
            # Not created yet, or lost: a file with only these would look complete.
            self._codes.replace(self._read_all())
        reached("codes added")
        self._merge_many_fragments()

    def _merge_many_fragments(self) -> None:
        fragments = self.fragments()
        if fragments < MOST_FRAGMENTS:
            return
        rows = self.count()
        if rows < ANN_ROWS and fragments >= rows // ROWS_PER_FRAGMENT:
            with self._place.typed_errors(), self._place.synced():
                self._open().optimize(cleanup_older_than=KEPT_VERSIONS)

    def remove(self, seqs: Sequence[int]) -> None:
        """Delete the passages of memories; the caller has the lock."""
        self._delete(seqs)
        self._codes.remove(seqs)

    def _delete(self, seqs: Sequence[int]) -> None:
        if seqs and self.exists():
            with self._place.typed_errors():
                self._open().delete(f"seq IN ({','.join(str(int(seq)) for seq in seqs)})")

    def exists(self) -> bool:
        """Return whether the table is there."""
        return self._place.exists(self._name)

    def count(self) -> int:
        """Count the passages."""
        return int(self._read_reopening(lambda table: table.count_rows())) if self.exists() else 0

    def seqs(self) -> set[int]:
        """List the memories that have passages."""
        return set(self._rows(["seq"], None)["seq"].to_pylist()) if self.exists() else set()

    def read_codes(self, position: Position | None, most: int) -> PassageCodes | None:
        """Return the passages since a position in eight bits, None if there are more than `most` in total.

        Raise IndexUnavailable with the part `codes` if the file is lost and the table is too large to be read instead.
        """
        most = limit_exact(most)
        try:
            return None if self._codes.count() > most else self._codes.read(position)
        except IndexUnavailable as error:
            # Until a worker has rebuilt it.
            rows = self.count()
            if rows > most:
                return None
            if rows > MOST_READ:
                raise IndexUnavailable(str(error), "codes") from error
            return self._read_all()

    def has_codes(self) -> bool:
        """Return whether the file of codes is there."""
        return self._codes.exists()

    def repair_codes(self) -> bool:
        """Rewrite the file of codes if it differs from the table; return whether it did; the caller has the lock."""
        held = np.sort(self._rows(["seq"], None)["seq"].to_numpy()) if self.exists() else np.empty(0, np.int64)
        with suppress(IndexUnavailable):
            if np.array_equal(held, np.sort(self._codes.read(None).latest().seqs)):
                return False
        # Also for no passages: recall requests the repair as long as there is no file.
        self._codes.replace(self._read_all())
        return True

    def list_differing(self) -> list[int]:
        """List the memories whose codes are not those of their vectors, after reading every byte of both."""
        held, expected = (
            {(seq, code.tobytes()) for seq, code in zip(rows.seqs.tolist(), rows.codes, strict=True)}
            for rows in (self._codes.read(None).latest(), self._read_all())
        )
        return sorted({seq for seq, _ in held ^ expected})

    def _read_all(self) -> PassageCodes:
        rows = self._read(None)
        codes = PassageCodes.of(rows.seqs, rows.matrix)
        if len(rows.seqs):
            trim_heap()
        return codes

    def _read(self, condition: str | None) -> VectorRows:
        if not self.exists():
            return VectorRows.empty(self.dimension)
        rows = self._rows(["seq", "vector"], condition).combine_chunks()
        vectors = rows["vector"].combine_chunks()
        flat = vectors.flatten() if rows.num_rows else []
        return VectorRows(np.asarray(rows["seq"], np.int64), np.asarray(flat, np.float32).reshape(-1, self.dimension))

    def vectors(self, seqs: Sequence[int]) -> VectorRows:
        """Return the passages of memories."""
        return self._read(f"seq IN ({','.join(str(int(seq)) for seq in seqs)})" if len(seqs) else "false")

    def nearest(self, query: Vector, limit: int, only: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Return (row number, cosine) of the passages nearest to a unit vector, by LanceDB's search."""
        if not self.exists() or (only is not None and not only):
            return []

        def search(table: Any) -> Any:
            query_builder = table.search(query).distance_type("dot").select(["seq", "_distance"]).limit(limit)
            if only is not None:
                query_builder = query_builder.where(
                    f"seq IN ({','.join(str(int(seq)) for seq in only)})", prefilter=True
                )
                # By default the index probes 20 partitions, and the allowed passages may be in others.
                if len(only) <= MOST_COMPARED:
                    query_builder = query_builder.bypass_vector_index()
                else:
                    query_builder = query_builder.maximum_nprobes(0)
            return query_builder.to_arrow()

        rows = self._read_reopening(search)
        return [(seq, 1.0 - d) for seq, d in zip(rows["seq"].to_pylist(), rows["_distance"].to_pylist(), strict=True)]

    def fragments(self) -> int:
        """Count the fragments that appends have left."""
        if not self.exists():
            return 0
        return int(self._read_reopening(lambda table: table.stats())["fragment_stats"]["num_fragments"])

    def compact(self) -> None:
        """Merge fragments, drop old versions, and maintain an ANN index for large tables; the caller has the lock."""
        if not self.exists():
            return
        with self._place.typed_errors(), self._place.synced():
            table = self._open()
            _index_large(table)
            table.optimize(cleanup_older_than=KEPT_VERSIONS)
        reached("vectors compacted")
        with suppress(IndexUnavailable):
            # A lost file is rebuilt by the repair.
            self._codes.compact()

    def scrub(self) -> None:
        """Rewrite the table so that no file contains a deleted vector; the caller has the lock."""
        if self.exists():
            # Readers of older versions get an error and open the newest, as a purge requires.
            import warnings

            with self._place.typed_errors(), self._place.synced(), warnings.catch_warnings():
                # Not a compaction: it keeps a file of which less than a tenth is deleted.
                rows = self._open().search().select(["seq", "vector"]).limit(2**31).to_batches()
                self._place.check()
                table = self._place.connect().create_table(self._name, rows, schema=self._schema(), mode="overwrite")
                if table.count_rows() > limit_exact(MOST_EXACT):
                    # Exact search needs no index, and training one takes long; compaction creates it.
                    _index_large(table)
                warnings.filterwarnings("ignore", message="optimize\\(cleanup_older_than=0\\)", category=UserWarning)
                table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
                self._place.delete_drafts(self._name)
                self._check_scrubbed(table)

    def _check_scrubbed(self, table: Any) -> None:
        """Raise IndexUnavailable if files of older versions are left: LanceDB ignores that it cannot delete one."""
        folders = [tuple(name.split("/")[:2]) for name in self._place.list_files(self._name)]
        data = sum(folder == "data" for folder, _ in folders)
        indexes = len({name for folder, name in folders if folder == "_indices"})
        if data > table.stats()["fragment_stats"]["num_fragments"] or indexes > len(table.list_indices()):
            raise IndexUnavailable("vectors: files with deleted vectors could not be removed. A worker tries it again.")

    def drop(self) -> None:
        """Delete the table; the caller has the lock."""
        if self.exists():
            with self._place.typed_errors():
                self._place.connect().drop_table(self._name)
        self._codes.drop()
        self._table = None

    def drop_others(self, keep: str | None = None) -> None:
        """Delete the vectors of every model except this one and `keep`; the caller has the lock."""
        self._place.drop_all(keep={self._name, table_name(keep or self.model)})

    def drop_broken(self) -> None:
        """Delete the vectors of every model, even if they cannot be read; the caller has the lock."""
        self._place.drop_all(keep=frozenset())
        self._table = None

    def _rows(self, columns: list[str], condition: str | None) -> Any:
        def read(table: Any) -> Any:
            query_builder = table.search().select(columns).limit(2**31)
            return (query_builder.where(condition) if condition else query_builder).to_arrow()

        return self._read_reopening(read)

    def _read_reopening(self, read: Callable[[Any], Any]) -> Any:
        try:
            return read(self._open())
        except LANCE_ERRORS:
            # The files of the opened version are gone: compacted, purged or deleted. Open the current version.
            self._table = None
        with self._place.typed_errors():
            return read(self._open())

    def _open(self, *, create: bool = False) -> Any:
        if not self.exists():
            self._table = None
            if not create:
                raise IndexUnavailable("vectors: the table does not exist")
            self._table = self._place.connect().create_table(self._name, schema=self._schema())
            self._identity = None
            return self._table
        # A table that was deleted and created again is another one: an open handle would return the old one's
        # numbers.
        identity = self._place.identify(self._name)
        if self._table is None or identity is None or identity != self._identity:
            self._table = self._place.connect().open_table(self._name)
            self._identity = identity
        self._table.checkout_latest()
        return self._table

    def _schema(self) -> Any:
        import pyarrow as pa

        return pa.schema([("seq", pa.int64()), ("vector", pa.list_(pa.float32(), self.dimension))])


def limit_exact(most: int) -> int:
    """Limit a number of passages to search exactly to what this system can map or a process may read."""
    # Windows reads the whole file of codes again for each embedded batch.
    return most if POSIX else min(most, MOST_READ)


def _index_large(table: Any) -> None:
    """Create the indexes of a large table that has none."""
    if table.count_rows() >= ANN_ROWS and not table.list_indices():
        from lancedb.index import BTree, IvfFlat

        table.create_index("vector", config=IvfFlat(distance_type="dot"))
        # Without an index, a filter by row number would read every row.
        table.create_index("seq", config=BTree())


class AllTables:
    """The tables of every model in one place, opened without their encoders, to erase memories from all of them."""

    def __init__(self, folder: Path, place: TableStorage | None = None) -> None:
        self._folder = folder
        self._place = FolderTables(folder) if place is None else place

    def exclusive(self) -> AbstractContextManager[None]:
        """Exclude every other writer."""
        return self._place.exclusive()

    def list_names(self) -> list[str]:
        """List the names of the tables."""
        return self._place.list_names()

    def list_seqs(self) -> set[int]:
        """List the row numbers that have passages in any table."""
        return {seq for table in self.list_tables() for seq in table.seqs()}

    def remove(self, seqs: Sequence[int]) -> None:
        """Delete the passages of memories; the caller has the lock."""
        for table in self.list_tables():
            table.remove(seqs)
        # Codes without a table cannot be read, because the dimension is unknown.
        self._place.drop_all(keep=frozenset(self._place.list_names()))

    def scrub(self) -> None:
        """Rewrite the tables so that no file contains a deleted vector; the caller has the lock."""
        for table in self.list_tables():
            table.scrub()

    def list_tables(self) -> list[VectorTable]:
        """Return the tables of all models."""
        with self._place.typed_errors():
            schemas = {name: self._place.connect().open_table(name).schema for name in self._place.list_names()}
        return [
            VectorTable(self._folder, name, schema.field("vector").type.list_size, self._place)
            for name, schema in schemas.items()
        ]
