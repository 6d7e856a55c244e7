import threading

import numpy as np
import pytest

from pipeline.errors import IndexUnavailable
from pipeline.index.dense import DenseIndex
from pipeline.index.vectors import VectorTable

NO_BACKGROUND = np.empty((0, 4), np.float32)


def vectors(*seqs):
    return {seq: np.eye(4, dtype=np.float32)[[seq % 4]] for seq in seqs}


@pytest.fixture
def table(tmp_path):
    table = VectorTable(tmp_path / "vectors.lance", "model", 4)
    with table.exclusive():
        table.replace(vectors(1, 2, 3), stamp=1)
    return table


def test_a_table_that_is_broken_is_unavailable(table, tmp_path):
    for file in (tmp_path / "vectors.lance").rglob("*.manifest"):
        file.write_bytes(b"\x00" * 10)
    fresh = VectorTable(tmp_path / "vectors.lance", "model", 4)
    with pytest.raises(IndexUnavailable):
        DenseIndex(fresh, 100, NO_BACKGROUND).search(np.ones(4, np.float32), (0, 1), 5)


def test_models_have_tables_of_their_own(table, tmp_path):
    other = VectorTable(tmp_path / "vectors.lance", "other", 4)
    assert (table.count(), other.count()) == (3, 0)


def test_only_what_is_newer_is_read(table):
    with table.exclusive():
        table.replace(vectors(7), stamp=2)
    assert table.read(1).seqs.tolist() == [7]
    assert sorted(table.read(0).seqs.tolist()) == [1, 2, 3, 7]
    assert table.read(2).matrix.shape == (0, 4)


def test_one_writer_at_a_time(table):
    inside = []

    def write(number):
        with VectorTable(table._folder, "model", 4).exclusive():
            inside.append(number)
            assert len(inside) == 1
            table.count()
            inside.remove(number)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside == []
