"""The stream of what happens: nothing is missed, few are held, and all end when the server does."""

import json
import threading

import pytest

from pipeline.features.changes.events import MOST_CHANGES, MOST_WAITING
from pipeline.kernel.errors import StoreBusy
from pipeline.kernel.records import Stage
from pipeline.kernel.records.digestion import DIGESTION
from pipeline.kernel.store import changes, memories, work
from pipeline.write import revise
from tests.fakes.in_process import scratch_database, workspace_over
from tests.fakes.job_runs import write
from web.features.changes.page import Watch, events
from web.http import streams as streams_module
from web.http.streams import BEAT, Streams


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


@pytest.fixture
def stopping():
    event = threading.Event()
    event.set()
    return event


def parse_events(message):
    """Return (number, event, data) of every event in a stretch of a stream."""
    found = []
    for block in message.decode().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


def data(message, event):
    [found] = [data for _, name, data in parse_events(message) if name == event]
    return found


def number_of(database):
    with database.read() as db:
        return changes.generation(db)


def finish(database, memory_id, *stages):
    with database.write() as db:
        seq = memories.get(db, memory_id).seq
        for stage in stages:
            db.execute("DELETE FROM work WHERE memory_seq = ? AND stage = ?", (seq, stage))


def test_live_watch_sends_a_write_with_its_pending_stages(database):
    watch = Watch(workspace_over(database), number_of(database))
    assert parse_events(watch.news()) == [(0, "digestion", {"since": 0, "waiting": {}, "failed": {}})]
    assert watch.news() == b""
    memory_id = write(database, 0, "The port of staging is 5433")
    message = watch.news()
    assert {number for number, _, _ in parse_events(message)} == {number_of(database)}
    assert data(message, "changes") == {"changes": [{"id": memory_id, "op": "create"}], "more": False}
    assert data(message, "digestion")["waiting"] == {memory_id: list(DIGESTION)}


def test_live_watch_sends_every_step_of_digestion(database):
    memory_id = write(database, 0, "The port of staging is 5433")
    watch = Watch(workspace_over(database), number_of(database))
    assert set(data(watch.news(), "digestion")["waiting"][memory_id]) == set(DIGESTION)
    finish(database, memory_id, Stage.EMBED)
    assert Stage.EMBED not in data(watch.news(), "digestion")["waiting"][memory_id]
    with database.write() as db:
        db.execute("UPDATE work SET dead = 1")
    assert data(watch.news(), "digestion")["failed"] == {memory_id: [Stage.ENTITIES]}
    finish(database, memory_id, *Stage)
    assert data(watch.news(), "digestion") == {"since": 0, "waiting": {}, "failed": {}}


def test_live_watch_sends_changes_missed_since_the_last_number(database):
    write(database, 0, "The port of staging is 5433")
    last = number_of(database)
    edited = write(database, 1, "The port of the shop is 80")
    revise.archive(database, edited)
    listed = data(Watch(workspace_over(database), last).news(), "changes")["changes"]
    assert [change["op"] for change in listed] == ["create", "archive"]


def test_fading_alone_is_no_news(database):
    memory_id = write(database, 0, "The port of staging is 5433")
    watch = Watch(workspace_over(database), number_of(database))
    watch.news()
    with database.write() as db:
        changes.append(db, changes.FADE, [memory_id] * 5)
    assert [event for _, event, _ in parse_events(watch.news())] == ["digestion"]


def test_live_watch_sends_a_limited_number_of_changes(database):
    with database.write() as db:
        changes.append(db, changes.EDIT, [f"memory-{n}" for n in range(MOST_CHANGES + 5)])
    found = data(Watch(workspace_over(database), 0).news(), "changes")
    assert (len(found["changes"]), found["more"]) == (MOST_CHANGES, True)


def test_live_watch_after_a_restore_requests_a_reload(database):
    write(database, 0, "The port of staging is 5433")
    watch = Watch(workspace_over(database), 10_000)
    assert data(watch.news(), "changes") == {"changes": [], "more": True}
    assert watch.news() == b""


def test_of_a_long_queue_the_newest_are_named_and_where_they_begin(database):
    ids = [write(database, n, f"Note number {n} about the harbour") for n in range(MOST_WAITING + 3)]
    found = data(Watch(workspace_over(database), number_of(database)).news(), "digestion")
    with database.read() as db:
        first = memories.get(db, ids[3]).seq
    assert found["since"] == first
    assert set(found["waiting"]) == set(ids[3:])
    finish(database, ids[50], *Stage)
    with database.read() as db:
        among = work.find_undigested_among(db, [memories.get(db, ids[n]).seq for n in (0, 50)])
    assert set(among.waiting) == {ids[0]}


def test_a_stream_that_is_held_goes_on_until_its_time_is_up(database, monkeypatch):
    monkeypatch.setattr(streams_module, "POLL_S", 0.0)
    streams = Streams(1, threading.Event(), held_s=60.0)
    stream = events(Watch(workspace_over(database), 0), streams)
    assert next(stream) == b"retry: 3000\n\n"
    assert parse_events(next(stream))
    assert next(stream) == BEAT
    memory_id = write(database, 0, "The port of staging is 5433")
    assert data(next(stream), "changes")["changes"][0]["id"] == memory_id
    # Somebody else finds the place taken, is told what is new, and asks again later.
    other = list(events(Watch(workspace_over(database), 0), streams))
    assert [parse_events(message) != [] for message in other] == [False, True, False]
    stream.close()
    again = events(Watch(workspace_over(database), 0), streams)
    assert [next(again), parse_events(next(again)) != [], next(again)] == [b"retry: 3000\n\n", True, BEAT]
    again.close()


def test_after_its_time_a_stream_asks_to_be_taken_up_again(database, monkeypatch):
    monkeypatch.setattr(streams_module, "POLL_S", 0.0)
    found = list(events(Watch(workspace_over(database), 0), Streams(1, threading.Event(), held_s=0.0)))
    assert found[-1] == b"retry: 200\nid: 0\n\n"


def test_unread_stream_occupies_no_slot(database, stopping):
    streams = Streams(1, stopping)
    events(Watch(workspace_over(database), 0), streams)
    with streams.hold() as held:
        assert held


def test_every_stream_ends_when_the_server_does(database, stopping):
    found = list(events(Watch(workspace_over(database), 0), Streams(2, stopping)))
    assert len(found) == 2


def test_a_store_that_is_busy_ends_the_stream_and_frees_its_place(database, stopping, monkeypatch):
    streams = Streams(1, stopping)

    def busy(*_):
        raise StoreBusy("another process holds the store")

    monkeypatch.setattr(work, "find_undigested", busy)
    assert list(events(Watch(workspace_over(database), 0), streams)) == [b"retry: 3000\n\n"]
    with streams.hold() as held:
        assert held
