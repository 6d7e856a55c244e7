"""The thread that follows events: it continues after a cursor, and ends when no session wants events."""

import json
import queue
import threading

from pipeline.errors import ServerUnreachable
from pipeline.http.event_stream import Block
from web.mcp import event_follower
from web.mcp.event_follower import EventFollower

DEADLINE_S = 30


class Source:
    """Plays connections, one after the other; the last one waits until the test ends it."""

    def __init__(self, *connections):
        self.connections = list(connections)
        self.cursors = []
        self.release = threading.Event()

    def __call__(self, after):
        self.cursors.append(after)
        if not self.connections:
            yield Block("", "last", 0)
            self.release.wait(DEADLINE_S)
            return
        played = self.connections.pop(0)
        if isinstance(played, Exception):
            raise played
        yield from played


class Session:
    def __init__(self, source):
        self.wanted = True
        self.events = queue.Queue()
        self.follower = EventFollower(source, lambda: self.wanted, self.events.put)

    def take(self, number):
        return [self.events.get(timeout=DEADLINE_S) for _ in range(number)]


def event(number):
    return {"type": "written", "memory_id": str(number)}


def block(number):
    return Block(json.dumps(event(number)), f"c{number}", 0)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "mcp-events"]


def test_it_continues_after_the_last_event_of_a_connection():
    source = Source([Block("", "c0", 0), block(1), block(2)], [block(3)])
    session = Session(source)
    session.follower.start()
    assert session.take(5) == [event(1), event(2), None, event(3), None]
    while len(source.cursors) < 3:
        session.follower.wake()
    assert source.cursors == [None, "c2", "c3"]
    session.wanted = False
    source.release.set()


def test_it_waits_for_a_server_that_is_away(monkeypatch):
    monkeypatch.setattr(event_follower, "RETRY_S", 0.0)
    source = Source([Block("", "c0", 0)], ServerUnreachable("away"), OSError("away"), [block(1)])
    session = Session(source)
    session.follower.start()
    assert session.take(3) == [None, event(1), None]
    assert source.cursors[:4] == [None, "c0", "c0", "c0"]
    session.wanted = False
    source.release.set()


def test_its_thread_ends_when_no_event_is_wanted_and_starts_again():
    source = Source([block(1)])
    session = Session(source)
    session.follower.start()
    session.take(2)
    [thread] = threads()
    session.wanted = False
    source.release.set()
    session.follower.wake()
    thread.join(DEADLINE_S)
    assert threads() == []
    connections = len(source.cursors)
    session.wanted = True
    source.release.clear()
    source.connections.append([block(2)])
    session.follower.start()
    while session.take(1) != [event(2)]:
        pass
    # What happened in between concerned no subscription.
    assert source.cursors[connections] is None
    session.wanted = False
    source.release.set()


def test_it_is_started_once():
    source = Source()
    session = Session(source)
    session.follower.start()
    session.follower.start()
    assert len(threads()) == 1
    session.wanted = False
    source.release.set()
    for thread in threads():
        thread.join(DEADLINE_S)


def test_it_ends_with_the_event_loop_of_its_session():
    source = Source([block(1)])

    def fail(_event):
        raise RuntimeError("Event loop is closed")

    follower = EventFollower(source, lambda: True, fail)
    follower.start()
    for thread in threads():
        thread.join(DEADLINE_S)
    assert threads() == []
