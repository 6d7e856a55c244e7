import os
import threading

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.index.codes import HEADER
from pipeline.index.dense import EXACT_ROWS, DenseIndex
from pipeline.index.vectors import MOST_READ, VectorRows, VectorTable, limit_exact
from pipeline.kernel.errors import IndexUnavailable

NO_BACKGROUND = np.empty((0, 4), np.float32)


def vectors(*seqs):
    return {seq: np.eye(4, dtype=np.float32)[[seq % 4]] for seq in seqs}


@pytest.fixture
def table(tmp_path):
    table = VectorTable(tmp_path / "vectors.lance", "model", 4)
    with table.exclusive():
        table.replace(vectors(1, 2, 3))
    return table


def test_a_table_that_is_broken_is_unavailable(table, tmp_path):
    for file in (tmp_path / "vectors.lance").rglob("*.manifest"):
        file.write_bytes(b"\x00" * 10)
    fresh = VectorTable(tmp_path / "vectors.lance", "model", 4)
    with pytest.raises(IndexUnavailable):
        DenseIndex(fresh, 0, NO_BACKGROUND).search(np.ones(4, np.float32), (0, 1), 5)


def test_each_model_has_a_separate_vector_table(table, tmp_path):
    other = VectorTable(tmp_path / "vectors.lance", "other", 4)
    assert (table.count(), other.count()) == (3, 0)


def test_a_table_that_is_broken_still_answers_from_its_codes(table, tmp_path):
    for file in (tmp_path / "vectors.lance").rglob("*.manifest"):
        file.write_bytes(b"\x00" * 10)
    assert found_by(VectorTable(tmp_path / "vectors.lance", "model", 4)) == [1, 2, 3]


def found_by(table):
    index = DenseIndex(table, 100, NO_BACKGROUND)
    scores = index.search(np.ones(4, np.float32) / 2, (0, 1), 9)
    index.close()
    return sorted(scores.top(9).tolist())


def list_files_with(table, vector):
    return [
        file for file in table._place._folder.rglob("*") if file.is_file() and vector.tobytes() in file.read_bytes()
    ]


@pytest.fixture
def many(tmp_path):
    """A table of a thousand vectors, and the vectors."""
    table = VectorTable(tmp_path / "many.lance", "model", 16)
    rows = np.random.default_rng(3).normal(size=(1000, 1, 16)).astype(np.float32)
    with table.exclusive():
        table.replace(dict(enumerate(rows)))
    return table, rows


@pytest.mark.parametrize("is_indexed", [False, True])
def test_one_vector_of_many_leaves_no_byte(many, monkeypatch, is_indexed):
    table, rows = many
    monkeypatch.setattr("pipeline.index.vectors.ANN_ROWS", 500 if is_indexed else 5000)
    with table.exclusive():
        table.compact()
        assert list_files_with(table, rows[5])
        table.remove([5])
        table.scrub()
    assert list_files_with(table, rows[5]) == []
    assert table.seqs() == set(range(1000)) - {5}
    assert table.nearest(rows[7][0], 1)[0][0] == 7
    with table.exclusive():
        table.compact()
    assert bool(table._open().list_indices()) is is_indexed


@pytest.mark.parametrize("most", [998, 999])
def test_scrub_trains_an_index_only_beyond_exact_search(many, monkeypatch, most):
    table, rows = many
    monkeypatch.setattr("pipeline.index.vectors.ANN_ROWS", 500)
    monkeypatch.setattr("pipeline.index.vectors.MOST_EXACT", most)
    with table.exclusive():
        table.compact()
        table.remove([5])
        table.scrub()
    assert list_files_with(table, rows[5]) == []
    assert bool(table._open().list_indices()) is (most < 999)


def test_file_that_cannot_be_deleted_fails_the_scrub_until_it_can(many, monkeypatch):
    from lancedb.table import LanceTable

    table, rows = many
    with table.exclusive():
        table.remove([5])
        with monkeypatch.context() as patched:
            # It reports no file that it cannot delete.
            patched.setattr(LanceTable, "optimize", lambda *_, **__: None)
            with pytest.raises(IndexUnavailable, match="deleted vectors"):
                table.scrub()
        assert table.count() == 999
        table.scrub()
    assert list_files_with(table, rows[5]) == []


def test_scrub_deletes_the_draft_of_a_killed_writer(many):
    table, rows = many
    draft = table._place._folder / "model.lance" / "data" / ".tmpGdDR6I"
    draft.write_bytes(np.asarray(rows[5], np.float32).tobytes())
    with table.exclusive():
        table.remove([5])
        table.scrub()
    assert not draft.exists()
    assert list_files_with(table, rows[5]) == []


def codes_of(table):
    return table._place._folder / "model.codes"


def test_many_appends_leave_few_fragments(table, monkeypatch):
    monkeypatch.setattr("pipeline.index.vectors.MOST_FRAGMENTS", 3)
    with table.exclusive():
        for seq in range(4, 9):
            table.replace(vectors(seq))
    assert table.fragments() < 3
    assert table.seqs() == set(range(1, 9))


@pytest.mark.parametrize("size", [0, HEADER.size, HEADER.size + 30])
def test_a_search_survives_that_another_program_cuts_the_mapped_file(table, size):
    lost = []
    index = DenseIndex(table, 100, NO_BACKGROUND, lost.append)
    query = np.ones(4, np.float32) / 2
    before = index.search(query, (0, 1), 9)
    os.truncate(codes_of(table), size)
    after = index.search(query, (0, 1), 9)
    assert (after.cosines.tolist(), len(lost)) == (before.cosines.tolist(), 1)
    with table.exclusive():
        assert table.repair_codes()
    assert index.search(query, (1, 1), 9).cosines.tolist() == before.cosines.tolist()
    index.close()


def test_a_mapped_file_is_replaced_and_appended_to_while_it_is_searched(table):
    index = DenseIndex(table, 100, NO_BACKGROUND)
    query = np.ones(4, np.float32) / 2
    for stamp, seq in enumerate((7, 3, 9), 1):
        index.refresh((0, stamp))
        with table.exclusive():
            table.replace(vectors(seq))
        assert len(index.search(query, (0, stamp), 9).cosines)
        index.refresh((0, stamp + 1))
    with table.exclusive():
        table.remove([2])
    assert index.search(query, (0, 4), 9).top(9).tolist() == [1, 2, 3, 7, 9]
    assert index.search(query, (1, 4), 9).top(9).tolist() == found_by(table) == [1, 3, 7, 9]
    index.close()


def test_only_newer_codes_are_read_after_a_position(table):
    first = table.read_codes(None, 100)
    with table.exclusive():
        table.replace(vectors(7))
    newer = table.read_codes(first.position, 100)
    assert (newer.seqs.tolist(), newer.continues) == ([7], True)
    assert sorted(table.read_codes(None, 100).seqs.tolist()) == [1, 2, 3, 7]
    assert table.read_codes(newer.position, 100).codes.shape == (0, 4)
    assert table.read_codes(None, 3) is None


def test_no_byte_of_a_removed_vector_is_left(table):
    first = table.read_codes(None, 100)
    with table.exclusive():
        table.replace({2: np.array([[0.6, 0.8, 0, 0]], np.float32)})
        old, new = (table._codes.pack(rows) for rows in (first.select(first.seqs == 2), changed(table, 2)))
        assert codes_of(table).read_bytes().count(old) == codes_of(table).read_bytes().count(new) == 1
        codes_of(table).with_name(".model.codes.partial").write_bytes(old)
        table.remove([2])
    [left] = [file.read_bytes()[HEADER.size :] for file in table._place._folder.iterdir() if file.is_file()]
    assert left
    assert not any(trace in left for trace in (old, new, (2).to_bytes(8, "little")))
    again = table.read_codes(first.position, 100)
    assert (again.seqs.tolist(), again.continues) == ([1, 3], False)


def changed(table, seq):
    latest = table.read_codes(None, 100).latest()
    return latest.select(latest.seqs == seq)


@pytest.mark.parametrize("torn", [1, 20, 33])
def test_a_record_that_was_torn_is_not_read_and_is_overwritten(table, torn):
    first = table.read_codes(None, 100)
    with codes_of(table).open("ab") as file:
        file.write(b"\xff" * torn if torn < RECORD else b"\xff")
    assert table.read_codes(first.position, 100).seqs.tolist() == []
    with table.exclusive():
        table.replace(vectors(7))
    assert table.read_codes(first.position, 100).seqs.tolist() == [7]


RECORD = 24


def spoil_codes(table, damage):
    file = codes_of(table)
    whole = file.read_bytes()
    match damage:
        case "lost":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "short":
            file.write_bytes(whole[:-RECORD])
        case "zeros":
            file.write_bytes(whole[:-RECORD] + bytes(RECORD))
        case "bent":
            file.write_bytes(whole[:-3] + b"\x55" + whole[-2:])


@pytest.mark.parametrize("damage", ["lost", "empty", "short", "zeros", "bent"])
def test_codes_that_are_lost_are_made_again_and_are_the_tables_until_then(table, damage):
    spoil_codes(table, damage)
    with pytest.raises(IndexUnavailable):
        table._codes.read(None)
    assert found_by(table) == [1, 2, 3]
    with table.exclusive():
        assert table.repair_codes()
        assert not table.repair_codes()
    assert codes_of(table).exists()
    assert found_by(table) == [1, 2, 3]


@pytest.mark.parametrize("damage", ["lost", "empty", "short", "zeros", "bent"])
def test_a_large_table_is_not_read_instead_of_its_lost_codes(table, monkeypatch, damage):
    spoil_codes(table, damage)
    monkeypatch.setattr("pipeline.index.vectors.MOST_READ", 2)
    lost = []
    monkeypatch.setattr(VectorTable, "_read_all", lambda _table: pytest.fail("the table was read"))
    index = DenseIndex(table, 100, NO_BACKGROUND, lost.append)
    query = np.ones(4, np.float32) / 2
    for _ in range(2):
        scores = index.search(query, (0, 1), 9)
        assert (sorted(scores.top(9).tolist()), scores.held) == ([1, 2, 3], None)
    # Without a report, no worker would repair the file.
    assert len(lost) == 2
    monkeypatch.undo()
    with table.exclusive():
        assert table.repair_codes()
    assert index.search(query, (1, 1), 9).held is not None
    assert len(lost) == 2
    index.close()


def test_lost_codes_beyond_exact_search_are_not_reported(table, monkeypatch):
    spoil_codes(table, "lost")
    monkeypatch.setattr("pipeline.index.vectors.MOST_READ", 1)
    lost = []
    index = DenseIndex(table, 2, NO_BACKGROUND, lost.append)
    assert sorted(index.search(np.ones(4, np.float32) / 2, (0, 1), 9).top(9).tolist()) == [1, 2, 3]
    assert lost == []
    index.close()


def test_without_mapped_files_fewer_passages_are_searched_exactly(table, monkeypatch):
    monkeypatch.setattr("pipeline.index.vectors.POSIX", False)
    assert (limit_exact(EXACT_ROWS), limit_exact(100)) == (MOST_READ, 100)
    monkeypatch.setattr("pipeline.index.vectors.MOST_READ", 2)
    assert table.read_codes(None, 100) is None
    monkeypatch.setattr("pipeline.index.vectors.POSIX", True)
    assert len(table.read_codes(None, 100).seqs) == 3


def test_codes_of_no_passages_are_a_file_too(table):
    with table.exclusive():
        table.drop()
        assert table.repair_codes()
        assert not table.repair_codes()
    assert (table.has_codes(), found_by(table)) == (True, [])


def test_missing_codes_are_created_with_the_next_vectors(table):
    codes_of(table).unlink()
    with table.exclusive():
        table.replace(vectors(7))
    assert table.read_codes(None, 100).position is not None
    assert found_by(table) == [1, 2, 3, 7]


def test_a_writer_that_dies_between_table_and_codes_is_made_up_for(table, monkeypatch):
    monkeypatch.setattr(table._codes, "append", lambda _rows: (_ for _ in ()).throw(KeyboardInterrupt))
    with table.exclusive(), pytest.raises(KeyboardInterrupt):
        table.replace(vectors(7))
    monkeypatch.undo()
    assert (table.count(), found_by(table)) == (4, [1, 2, 3])
    # Its work was not done, so that it is done again; or else the repair finds out.
    with table.exclusive():
        table.replace(vectors(7))
        assert not table.repair_codes()
    assert found_by(table) == [1, 2, 3, 7]


def test_compaction_drops_replaced_vectors(table):
    for _ in range(4):
        with table.exclusive():
            table.replace(vectors(2, 3))
    assert len(table.read_codes(None, 100).seqs) == 11
    with table.exclusive():
        table.compact()
    assert sorted(table.read_codes(None, 100).seqs.tolist()) == [1, 2, 3]


def test_exact_search_never_loads_lancedb(table, monkeypatch):
    monkeypatch.setattr("pipeline.index.table_storage.preload_vectors", lambda: pytest.fail("LanceDB was loaded"))
    fresh = VectorTable(table._place._folder, "model", 4)
    assert found_by(fresh) == [1, 2, 3]
    assert found_by(VectorTable(table._place._folder, "of another model", 4)) == []


def test_one_writer_at_a_time(table):
    inside = []

    def write(number):
        with VectorTable(table._place._folder, "model", 4).exclusive():
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


@given(st.lists(st.integers(1, 5)))
def test_passages_of_a_memory_keep_their_order(seqs):
    rows = VectorRows(np.array(seqs, np.int64), np.arange(2 * len(seqs), dtype=np.float32).reshape(-1, 2))
    by_memory = rows.by_memory()
    assert by_memory.keys() == set(seqs)
    for seq, passages in by_memory.items():
        assert np.array_equal(passages, rows.matrix[rows.seqs == seq])
