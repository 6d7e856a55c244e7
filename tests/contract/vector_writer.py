"""One of several writers of a table on object storage, in a process of its own.

`python -m tests.contract.vector_writer STORE URL FIRST COUNT` writes the memories from FIRST on, one batch after the
other, beside whoever else does; each memory twice, as one is that was edited.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

from pipeline.index.table_storage import SharedTables
from pipeline.index.vectors import VectorTable
from pipeline.kernel.store.database import Database, WriterProfile
from pipeline.kernel.store.leases import hold
from pipeline.kernel.store.objects import ObjectStorage
from pipeline.kernel.store.sqlite import SqliteDatabase

DIMENSION, BATCH = 8, 5


def vectors_of(seq: int) -> np.ndarray:
    """Return the passages of a memory: one, two or three."""
    rows = np.random.default_rng(seq).normal(size=(seq % 3 + 1, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def open_shared(folder: Path, database: Database, url: str) -> VectorTable:
    """Open the table as a machine does that keeps its copies in a folder."""
    place = SharedTables(ObjectStorage.open(url), folder, partial(hold, database, "vectors"))
    return VectorTable(folder, "model", DIMENSION, place)


def main(store: str, url: str, first: str, count: str) -> None:
    """Write."""
    database = SqliteDatabase(Path(store), WriterProfile("NORMAL", 1000, 30_000), create=False)
    table = open_shared(Path(store).parent / f"copies-{first}", database, url)
    numbers = range(int(first), int(first) + int(count))
    for _ in range(2):
        for start in numbers[::BATCH]:
            with table.exclusive():
                table.replace({seq: vectors_of(seq) for seq in range(start, start + BATCH)})
                # All write this one.
                table.replace({0: vectors_of(0)})
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
