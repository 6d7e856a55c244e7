"""While segments come and go, every search is answered, and every answer is complete."""

import shutil
import threading

import numpy as np
import pytest

from pipeline.errors import IndexUnavailable
from pipeline.index import lexical
from pipeline.index.lexical import LexicalIndex
from pipeline.index.rows import SessionMap
from pipeline.index.segment import MANIFEST, load_segment
from pipeline.jobs.indexes import rebuild_segment
from pipeline.records import Draft, Revision
from pipeline.store import meta
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.house import scratch_database

LONG = 60.0


class Shelf:
    """A database, its segments, and an index over both whose background loading a test can hold up."""

    def __init__(self, database):
        self.database = database
        self.folder = database.file.parent / "lexical"
        self.index = LexicalIndex(self.folder, SessionMap())
        self.loading = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def write(self, *contents):
        return [accept(self.database, Draft(content)).id for content in contents]

    def fold(self):
        rebuild_segment(self.database, self.folder)
        with self.database.read() as db:
            return meta.get(db, meta.SEGMENT)

    def found(self, *tokens):
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
def shelf(monkeypatch):
    with scratch_database() as database:
        shelf = Shelf(database)
        monkeypatch.setattr(lexical, "load_segment", shelf.load)
        yield shelf
        shelf.go_on.set()
        shelf.loaded()


@pytest.fixture
def serving(shelf):
    """A shelf whose index serves a first segment and has taken in two memories of the tail."""
    shelf.write("zebra one")
    shelf.fold()
    shelf.write("zebra two", "zebra three")
    assert shelf.found() == [1, 2, 3]
    return shelf


def test_a_new_row_is_found_at_once(shelf):
    assert shelf.found() == []
    for number in range(1, 8):
        shelf.write(f"zebra {number}")
        assert shelf.found() == list(range(1, number + 1))
        if number == 4:
            shelf.fold()


def test_searches_go_on_while_a_new_segment_is_loaded(serving):
    serving.go_on.clear()
    serving.fold()
    assert serving.found() == [1, 2, 3]
    assert serving.loading.wait(LONG)
    serving.write("zebra four")
    assert serving.found() == [1, 2, 3, 4]
    serving.go_on.set()
    serving.loaded()
    serving.write("zebra five")
    assert serving.found() == [1, 2, 3, 4, 5]


def test_an_edit_while_a_new_segment_is_loaded_hides_nothing_else(serving):
    edited, _ = serving.write("zebra four", "zebra five")
    assert serving.found() == [1, 2, 3, 4, 5]
    serving.go_on.clear()
    serving.fold()
    assert serving.found() == [1, 2, 3, 4, 5]
    revise.edit(serving.database, edited, Revision(content="giraffe four"))
    assert serving.found() == [1, 2, 3, 5]
    assert serving.found("giraff") == [4]
    serving.go_on.set()
    serving.loaded()
    assert (serving.found(), serving.found("giraff")) == ([1, 2, 3, 5], [4])


def test_what_went_into_a_segment_between_two_searches_is_not_missed(serving):
    """The tail no longer has it and the old segment never had it: the new one must be there before the answer."""
    serving.write("zebra four")
    serving.go_on.clear()
    serving.fold()
    assert serving.found() == [1, 2, 3, 4]


def test_a_broken_segment_is_told_once_and_the_old_one_keeps_serving(serving):
    broken = serving.fold()
    (serving.folder / broken / MANIFEST).write_text("{}")
    for _ in range(2):
        assert serving.found() == [1, 2, 3]
        serving.loaded()
        with pytest.raises(IndexUnavailable) as raised:
            serving.found()
        assert raised.value.part == broken
    serving.write("zebra four")
    assert serving.found() == [1, 2, 3, 4]
    serving.loaded()
    serving.fold()
    for _ in range(2):
        assert serving.found() == [1, 2, 3, 4]
        serving.loaded()


def test_a_broken_segment_that_alone_has_what_was_written_is_told_every_time(serving):
    serving.write("zebra four")
    broken = serving.fold()
    shutil.rmtree(serving.folder / broken)
    for _ in range(3):
        with pytest.raises(IndexUnavailable):
            serving.found()


def test_a_first_segment_that_is_broken_is_unavailable_until_there_is_another(shelf):
    shelf.write("zebra one")
    (shelf.folder / shelf.fold() / MANIFEST).write_text("{}")
    for _ in range(2):
        with pytest.raises(IndexUnavailable):
            shelf.found()
    shelf.write("zebra two")
    shelf.fold()
    assert shelf.found() == [1, 2]


def test_a_search_on_an_older_snapshot_takes_nothing_back(serving):
    go_on, done = threading.Event(), []

    def older():
        with serving.database.read() as db:
            db.execute("SELECT count(*) FROM memory").fetchone()
            snapshot_taken.set()
            assert go_on.wait(LONG)
            done.append(serving.index.search(db, ["zebra"]).top(9).tolist())

    snapshot_taken = threading.Event()
    thread = threading.Thread(target=older)
    thread.start()
    assert snapshot_taken.wait(LONG)
    serving.write("zebra four")
    serving.fold()
    assert serving.found() == [1, 2, 3, 4]
    go_on.set()
    thread.join(LONG)
    # It may show more than its snapshot knew: what is shown is checked against the store.
    assert done == [[1, 2, 3, 4]]
    assert serving.found() == [1, 2, 3, 4]


def test_scores_that_a_search_holds_outlive_what_is_written_meanwhile(serving):
    with serving.database.read() as db:
        held = serving.index.refresh(db)
    serving.write("zebra four " + "giraffe " * 50)
    assert serving.found() == [1, 2, 3, 4]
    assert held.posting("zebra")[0].max() < len(held.norms)
    assert np.isin([1, 2, 3], held.posting("zebra")[0]).all()


def test_many_readers_beside_a_writer_see_all_that_was_written_before_they_asked(shelf):
    shelf.write("zebra zero")
    shelf.fold()
    stop, wrong, asked = threading.Event(), [], []

    def read():
        while not stop.is_set():
            with shelf.database.read() as db:
                written = db.execute("SELECT count(*) FROM memory").fetchone()[0]
                try:
                    found = shelf.index.search(db, ["zebra"]).top(1000).tolist()
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
        shelf.write(f"zebra {number}")
        if number % 5 == 4:
            shelf.fold()
    stop.set()
    for reader in readers:
        reader.join(LONG)
    assert asked
    assert wrong == []
