"""While the segment is swapped, every snapshot holds every memory exactly once."""

import threading

import pytest

from pipeline.features.indexing import job as indexes
from pipeline.features.indexing.job import needs_segment, rebuild_segment
from pipeline.index.lexical import LexicalIndex
from pipeline.index.row_arrays import SessionMap
from pipeline.index.segment import list_segments
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.records import Draft, Revision
from pipeline.kernel.store import changes, index_state, meta
from pipeline.recall.feedback import ask_for_segment
from pipeline.text.tokens import search_tokens
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "lexical"


def search_rows(database, folder, text, index=None):
    with database.read() as db:
        scores = (index or LexicalIndex(folder, SessionMap())).search(db, search_tokens(text))
        return set(scores.top(1000).tolist())


def test_a_memory_is_found_in_every_snapshot_while_segments_are_swapped(database, folder):
    for number in range(30):
        accept(database, Draft(f"zebra number {number}"))
    index, stop, failures, rounds = LexicalIndex(folder, SessionMap()), threading.Event(), [], []

    def read():
        own = LexicalIndex(folder, SessionMap())
        while not stop.is_set():
            with database.read() as db:
                written = db.execute("SELECT count(*) FROM memory").fetchone()[0]
                try:
                    scores = own.search(db, ["zebra"])
                except IndexUnavailable:
                    # Removed between our snapshot and its opening; recall asks again with a new snapshot.
                    continue
                seen = scores.top(10_000).tolist()
            rounds.append(1)
            if len(seen) != len(set(seen)) or len(seen) != written:
                failures.append((written, len(seen)))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(12):
        accept(database, Draft(f"zebra of round {number}"))
        rebuild_segment(database, folder)
    stop.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert rounds
    assert len(search_rows(database, folder, "zebra", index)) == 42


class Meanwhile:
    """Do something after the texts were read and before the segment becomes current."""

    def __init__(self, monkeypatch, act):
        write = indexes.write_segment

        def write_then_act(folder, segment):
            name = write(folder, segment)
            act()
            return name

        monkeypatch.setattr(indexes, "write_segment", write_then_act)


def test_memory_written_during_a_segment_build_stays_findable(database, folder, monkeypatch):
    first = accept(database, Draft("zebra one")).id
    second = accept(database, Draft("zebra two")).id
    third = accept(database, Draft("zebra three")).id

    def act():
        accept(database, Draft("zebra four"))
        revise.edit(database, first, Revision(content="giraffe one"))
        revise.archive(database, second)
        revise.purge(database, third)

    Meanwhile(monkeypatch, act)
    rebuild_segment(database, folder)
    assert 4 in search_rows(database, folder, "zebra")
    assert search_rows(database, folder, "giraffe") == {1}
    assert 1 not in search_rows(database, folder, "zebra")
    assert needs_segment(database, 10_000), "a purge that came meanwhile still asks for a segment"
    monkeypatch.undo()
    rebuild_segment(database, folder)
    assert search_rows(database, folder, "zebra") == {4}
    assert not needs_segment(database, 10_000)


def test_a_memory_archived_and_restored_around_a_build_is_found(database, folder):
    kept = accept(database, Draft("zebra one")).id
    revise.archive(database, kept)
    rebuild_segment(database, folder)
    assert search_rows(database, folder, "zebra") == set()
    revise.restore(database, kept)
    assert search_rows(database, folder, "zebra") == {1}
    rebuild_segment(database, folder)
    assert search_rows(database, folder, "zebra") == {1}


def test_purged_words_leave_the_disk_after_an_interrupted_removal(database, folder, monkeypatch):
    secret = accept(database, Draft("zebra one")).id
    accept(database, Draft("giraffe two"))
    rebuild_segment(database, folder)
    revise.purge(database, secret)

    def stop(_folder, keep):
        raise KeyboardInterrupt(keep)

    with monkeypatch.context() as patch:
        patch.setattr(indexes, "remove_segments", stop)
        with pytest.raises(KeyboardInterrupt):
            rebuild_segment(database, folder)
    rebuild_segment(database, folder)
    assert len(list_segments(folder)) == 1
    assert not any(b"zebra" in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_segment_records_the_generation_it_covers(database, folder):
    accept(database, Draft("zebra one"))
    accept(database, Draft("zebra two"))
    rebuild_segment(database, folder)
    with database.read() as db:
        assert meta.get_int(db, meta.SEGMENT_COVERS) == changes.generation(db) == 2


def test_a_segment_is_needed_after_enough_writes(database, folder):
    for number in range(3):
        assert not needs_segment(database, 3)
        accept(database, Draft(f"zebra {number}"))
    assert needs_segment(database, 3)
    assert rebuild_segment(database, folder) == 3
    assert not needs_segment(database, 1)


def test_a_broken_segment_is_asked_for_once(database, folder):
    accept(database, Draft("zebra"))
    rebuild_segment(database, folder)
    with database.read() as db:
        broken = meta.get(db, meta.SEGMENT)
    assert ask_for_segment(database, broken)
    assert not ask_for_segment(database, broken)
    assert needs_segment(database, 10_000)
    rebuild_segment(database, folder)
    assert not needs_segment(database, 10_000)
    # A report that comes in after the healing asks for nothing.
    assert not ask_for_segment(database, broken)
    assert not needs_segment(database, 10_000)


def test_only_the_current_segment_stays_on_disk(database, folder):
    for number in range(3):
        accept(database, Draft(f"zebra {number}"))
        rebuild_segment(database, folder)
    with database.read() as db:
        current = meta.get(db, meta.SEGMENT)
        assert index_state.count_tail(db) == 0
    assert [entry.name for entry in folder.iterdir() if entry.is_dir()] == [current]


def test_waiting_segment_build_is_skipped(database, folder):
    accept(database, Draft("zebra"))
    counts = []
    together = threading.Barrier(4)

    def build():
        together.wait()
        counts.append(rebuild_segment(database, folder))

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counts) == [0, 0, 0, 1]
    assert search_rows(database, folder, "zebra") == {1}
