"""While segments come and go, every search is answered, and every answer is complete."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pipeline.features.indexing.job import rebuild_segment
from pipeline.index import lexical
from pipeline.index.lexical import LexicalIndex
from pipeline.index.row_arrays import SessionMap
from pipeline.index.segment import MANIFEST, load_segment
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.records import Draft, Revision
from pipeline.kernel.store import meta
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import folder_of, scratch_database

LONG = 60.0


class SegmentStore:
    """A database, its segments, and an index over both whose background loading a test can hold up."""

    def __init__(self, database):
        self.database = database
        self.folder = folder_of(database) / "lexical"
        self.sessions = SessionMap()
        self.index = LexicalIndex(self.folder, self.sessions)
        self.loading = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def write(self, *contents):
        return [accept(self.database, Draft(content, session_id="one")).id for content in contents]

    def fold(self):
        rebuild_segment(self.database, self.folder)
        with self.database.read() as db:
            return meta.get(db, meta.SEGMENT)

    def refresh_sessions(self):
        with self.database.read() as db:
            self.sessions.refresh(db)

    def find_ids(self, *tokens):
        with self.database.read() as db:
            return self.index.search(db, tokens or ["zebra"]).top(1000).tolist()

    def load(self, folder, name):
        if threading.current_thread().name == "load-segment":
            self.loading.set()
            assert self.go_on.wait(LONG)
        return load_segment(folder, name)

    def loaded(self):
        """Wait until nothing is loaded in the background any more."""
        for thread in threading.enumerate():
            if thread.name == "load-segment":
                thread.join(LONG)


@pytest.fixture
def store(monkeypatch):
    with scratch_database() as database:
        store = SegmentStore(database)
        monkeypatch.setattr(lexical, "load_segment", store.load)
        yield store
        store.go_on.set()
        store.loaded()


@pytest.fixture
def serving_store(store):
    """A store whose index serves a first segment and has taken in two memories of the tail."""
    store.write("zebra one")
    store.fold()
    store.write("zebra two", "zebra three")
    assert store.find_ids() == [1, 2, 3]
    return store


def test_a_new_row_is_found_at_once(store):
    assert store.find_ids() == []
    for number in range(1, 8):
        store.write(f"zebra {number}")
        assert store.find_ids() == list(range(1, number + 1))
        if number == 4:
            store.fold()


def test_searches_go_on_while_a_new_segment_is_loaded(serving_store):
    serving_store.go_on.clear()
    serving_store.fold()
    assert serving_store.find_ids() == [1, 2, 3]
    assert serving_store.loading.wait(LONG)
    serving_store.write("zebra four")
    assert serving_store.find_ids() == [1, 2, 3, 4]
    serving_store.go_on.set()
    serving_store.loaded()
    serving_store.write("zebra five")
    assert serving_store.find_ids() == [1, 2, 3, 4, 5]


def test_an_edit_while_a_new_segment_is_loaded_hides_nothing_else(serving_store):
    edited, _ = serving_store.write("zebra four", "zebra five")
    assert serving_store.find_ids() == [1, 2, 3, 4, 5]
    serving_store.go_on.clear()
    serving_store.fold()
    assert serving_store.find_ids() == [1, 2, 3, 4, 5]
    revise.edit(serving_store.database, edited, Revision(content="giraffe four"))
    assert serving_store.find_ids() == [1, 2, 3, 5]
    assert serving_store.find_ids("giraff") == [4]
    serving_store.go_on.set()
    serving_store.loaded()
    assert (serving_store.find_ids(), serving_store.find_ids("giraff")) == ([1, 2, 3, 5], [4])


def test_search_includes_a_segment_built_since_the_last_search(serving_store):
    """The tail no longer has it and the old segment never had it: the new one must be there before the answer."""
    serving_store.write("zebra four")
    serving_store.go_on.clear()
    serving_store.fold()
    assert serving_store.find_ids() == [1, 2, 3, 4]


def test_broken_segment_is_reported_once_and_the_old_segment_is_used(serving_store):
    broken = serving_store.fold()
    (serving_store.folder / broken / MANIFEST).write_text("{}")
    for _ in range(2):
        assert serving_store.find_ids() == [1, 2, 3]
        serving_store.loaded()
        with pytest.raises(IndexUnavailable) as raised:
            serving_store.find_ids()
        assert raised.value.part == broken
    serving_store.write("zebra four")
    assert serving_store.find_ids() == [1, 2, 3, 4]
    serving_store.loaded()
    serving_store.fold()
    for _ in range(2):
        assert serving_store.find_ids() == [1, 2, 3, 4]
        serving_store.loaded()


def test_broken_segment_with_unique_memories_is_reported_every_time(serving_store):
    serving_store.write("zebra four")
    broken = serving_store.fold()
    shutil.rmtree(serving_store.folder / broken)
    for _ in range(3):
        with pytest.raises(IndexUnavailable):
            serving_store.find_ids()


def test_broken_first_segment_is_unavailable_until_another_is_built(store):
    store.write("zebra one")
    (store.folder / store.fold() / MANIFEST).write_text("{}")
    for _ in range(2):
        with pytest.raises(IndexUnavailable):
            store.find_ids()
    store.write("zebra two")
    store.fold()
    assert store.find_ids() == [1, 2]


def test_a_search_on_an_older_snapshot_takes_nothing_back(serving_store):
    go_on, done = threading.Event(), []

    def older():
        with serving_store.database.read() as db:
            db.execute("SELECT count(*) FROM memory").fetchone()
            snapshot_taken.set()
            assert go_on.wait(LONG)
            done.append(serving_store.index.search(db, ["zebra"]).top(9).tolist())

    snapshot_taken = threading.Event()
    thread = threading.Thread(target=older)
    thread.start()
    assert snapshot_taken.wait(LONG)
    serving_store.write("zebra four")
    serving_store.fold()
    assert serving_store.find_ids() == [1, 2, 3, 4]
    go_on.set()
    thread.join(LONG)
    # It may show more than its snapshot knew: what is shown is checked against the store.
    assert done == [[1, 2, 3, 4]]
    assert serving_store.find_ids() == [1, 2, 3, 4]


def test_search_excludes_memories_refreshed_later_by_another_thread(store):
    store.write("zebra one")
    with store.database.read() as older:
        older.execute("SELECT count(*) FROM memory").fetchone()
        store.write("zebra two", "zebra three")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.refresh_sessions).result(LONG)
        corpus = store.index.refresh(older)
    store.find_ids()
    posting = corpus.posting("zebra")
    assert posting[0].tolist() == [1]
    assert corpus.score_memories({"zebra": posting}).max() > 0


def test_refreshed_scores_stay_valid_after_later_writes(serving_store):
    with serving_store.database.read() as db:
        held = serving_store.index.refresh(db)
    serving_store.write("zebra four " + "giraffe " * 50)
    assert serving_store.find_ids() == [1, 2, 3, 4]
    assert held.posting("zebra")[0].max() < len(held.norms)
    assert np.isin([1, 2, 3], held.posting("zebra")[0]).all()


def test_concurrent_readers_see_all_memories_written_before_the_search(store):
    store.write("zebra zero")
    store.fold()
    stop, wrong, asked = threading.Event(), [], []

    def read():
        while not stop.is_set():
            with store.database.read() as db:
                written = db.execute("SELECT count(*) FROM memory").fetchone()[0]
                try:
                    found = store.index.search(db, ["zebra"]).top(1000).tolist()
                except IndexUnavailable:
                    # Replaced between our snapshot and its opening; recall asks again with a new snapshot.
                    continue
            asked.append(1)
            if len(set(found)) != len(found) or len(found) < written:
                wrong.append((written, len(found)))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(30):
        store.write(f"zebra {number}")
        if number % 5 == 4:
            store.fold()
    stop.set()
    for reader in readers:
        reader.join(LONG)
    assert asked
    assert wrong == []
