import threading

import pytest

from pipeline.errors import StoreBusy
from pipeline.recall import read_ahead
from pipeline.recall.read_ahead import ReadAhead
from pipeline.records.recall import Step

WITHIN_S = 60.0


class Unreadable:
    """A database that tells that the thread has come to it, and cannot be read."""

    def __init__(self, error):
        self._error = error
        self.reached = threading.Event()

    def read(self):
        self.reached.set()
        raise self._error


class Reader:
    """What the thread read, and what it reported."""

    def __init__(self, monkeypatch):
        self.texts, self.errors = [], []
        monkeypatch.setattr(read_ahead, "find_stated_values", self.texts.append)
        self.thread = ReadAhead()

    def add(self, workspace, database):
        self.thread.add(workspace, database, self._report)

    def finish(self):
        """Wait until everything added so far is read."""
        last = Unreadable(StoreBusy("the end"))
        self.thread.add("last", last, self._report)
        assert last.reached.wait(WITHIN_S)

    def _report(self, step, error):
        self.errors.append((step, error))


@pytest.fixture
def reader(monkeypatch):
    reader = Reader(monkeypatch)
    yield reader
    reader.thread.close()


def test_reads_the_newest_texts_first(reader, workspace, monkeypatch):
    monkeypatch.setattr(read_ahead, "PAGE", 2)
    for number in range(5):
        workspace.write(f"The limit is {number}.")
    reader.add("w", workspace.database)
    reader.finish()
    assert reader.texts == [f"The limit is {number}." for number in (4, 3, 2, 1, 0)]


def test_reads_no_more_than_its_share(reader, workspace, monkeypatch):
    monkeypatch.setattr(read_ahead, "PAGE", 1)
    monkeypatch.setattr(read_ahead, "MOST_TEXTS", 2)
    for number in range(4):
        workspace.write(f"The limit is {number}.")
    reader.add("w", workspace.database)
    reader.finish()
    assert reader.texts == ["The limit is 3.", "The limit is 2."]


def test_reads_a_workspace_once(reader, workspace):
    workspace.write("The limit is 4.")
    for _ in range(2):
        reader.add("w", workspace.database)
    reader.finish()
    assert reader.texts == ["The limit is 4."]


def test_reports_a_store_that_cannot_be_read_and_goes_on(reader, workspace):
    busy = StoreBusy("the store is busy")
    workspace.write("The limit is 4.")
    reader.add("busy", Unreadable(busy))
    reader.add("w", workspace.database)
    reader.finish()
    assert reader.errors[0] == (Step.CURRENCY, busy)
    assert reader.texts == ["The limit is 4."]
