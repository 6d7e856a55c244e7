"""The stream of events over HTTP: what arrives, what a client may ask for, and how it continues."""

import contextlib
import http.client
import json
from urllib.parse import urlencode

import pytest

from tests.fakes.in_process import fast_settings, open_web
from tests.fakes.people import add_person
from tests.support.event_streams import read_fields
from tests.support.sockets import serving
from web.features.changes import events
from web.http.app import create_app
from web.http.lazy_app import MAX_BODY_BYTES
from web.http.streams import MOST_HELD

TEAM = "team"


class Reader:
    """A connection that reads server-sent events and keeps the last id."""

    def __init__(self, port, token, cursor=None, **query):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        headers = {"Authorization": f"Bearer {token}", "X-Reverie-Workspace": TEAM}
        if cursor is not None:
            headers["Last-Event-ID"] = cursor
        self.connection.request("GET", f"/v1/events?{urlencode(query)}", headers=headers)
        self.response = self.connection.getresponse()
        self.cursor = cursor

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.response.close()
        self.connection.close()

    def read_block(self):
        """Return (event, data) of the next block, (None, None) for one without an event; None at the end."""
        fields = read_fields(self.response)
        if fields is None:
            return None
        self.cursor = fields.get("id", self.cursor)
        return fields.get("event"), json.loads(fields["data"]) if "data" in fields else None

    def take(self, number):
        """Return the next events, as many as asked for."""
        found = []
        while len(found) < number:
            name, data = self.read_block()
            if name is not None:
                assert data["type"] == name
                found.append(data)
        return found

    def drain(self):
        """Return every event until the server ends the stream."""
        found = []
        while (block := self.read_block()) is not None:
            if block[0] is not None:
                found.append(block[1])
        return found


@contextlib.contextmanager
def serve(home, threads=8):
    container = open_web(fast_settings(home, web_threads=threads))
    try:
        with serving(create_app(container), threads=threads, files=1024, max_body_bytes=2 * MAX_BODY_BYTES) as port:
            yield container, port
            # Streams that are still open would delay the end.
            container.stopping.set()
    finally:
        container.close()


@pytest.fixture
def served(tmp_path):
    with serve(tmp_path / "home") as served:
        yield served


def ask(port, token, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Authorization": f"Bearer {token}", "X-Reverie-Workspace": TEAM, "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    content = json.loads(response.read())
    connection.close()
    return response.status, content


def remember(port, token, content, **fields):
    status, receipt = ask(port, token, "POST", "/v1/memories", {"content": content, **fields})
    assert status == 201
    return receipt["id"]


def test_an_open_stream_gets_each_change_as_it_happens(served):
    container, port = served
    with Reader(port, container.token) as reader:
        assert (reader.response.status, reader.response.getheader("Content-Type").partition(";")[0]) == (
            200,
            "text/event-stream",
        )
        # A workspace that does not exist yet has no events, and no error.
        reader.read_block()
        memory_id = remember(port, container.token, "The port of staging is 5433", kind="decision")
        [event] = reader.take(1)
        assert set(event) == {"cursor", "type", "memory_id", "kind", "at", "workspace"}
        assert (event["type"], event["memory_id"], event["kind"], event["workspace"]) == (
            "written",
            memory_id,
            "decision",
            TEAM,
        )
        ask(port, container.token, "PATCH", f"/v1/memories/{memory_id}", {"content": "The port is 6543"})
        ask(port, container.token, "DELETE", f"/v1/memories/{memory_id}")
        ask(port, container.token, "POST", f"/v1/memories/{memory_id}/restore")
        ask(port, container.token, "DELETE", f"/v1/memories/{memory_id}?hard=true")
        types = []
        while "purged" not in types:
            types.append(reader.take(1)[0]["type"])
        # Events of a memory that is gone before they are read are left out.
        assert types == [name for name in ("changed", "archived", "restored", "purged") if name in types]


def test_a_reader_continues_where_it_was(served):
    container, port = served
    ids = [remember(port, container.token, f"Note number {number} about the harbour") for number in range(5)]
    with Reader(port, container.token, after="0") as reader:
        first = reader.take(2)
    with Reader(port, container.token, cursor=reader.cursor, after="0") as again:
        rest = again.take(3)
    assert [event["memory_id"] for event in first + rest] == ids
    with Reader(port, container.token, after=rest[1]["cursor"]) as again:
        assert [event["memory_id"] for event in again.take(1)] == ids[4:]


def test_a_reader_without_events_so_far_continues_from_its_start(served):
    container, port = served
    remember(port, container.token, "The crane lifts on Mondays")
    with Reader(port, container.token) as reader:
        reader.read_block()
    missed = remember(port, container.token, "The port of staging is 5433")
    with Reader(port, container.token, cursor=reader.cursor) as again:
        assert [event["memory_id"] for event in again.take(1)] == [missed]


def test_a_cursor_is_valid_after_a_restart(tmp_path):
    with serve(tmp_path / "home") as (container, port):
        remember(port, container.token, "The crane lifts on Mondays")
        with Reader(port, container.token, after="0") as reader:
            reader.take(1)
        missed = remember(port, container.token, "The port of staging is 5433")
    with serve(tmp_path / "home") as (container, port), Reader(port, container.token, cursor=reader.cursor) as again:
        assert [event["memory_id"] for event in again.take(1)] == [missed]


def test_a_cursor_of_the_future_is_a_reset_after_which_events_go_on(served):
    container, port = served
    remember(port, container.token, "The crane lifts on Mondays")
    with Reader(port, container.token, after="999.1764247881000.0") as reader:
        [reset] = reader.take(1)
        assert reset["type"] == "reset"
        new = remember(port, container.token, "The port of staging is 5433")
        assert [event["memory_id"] for event in reader.take(1)] == [new]


@pytest.mark.parametrize(
    "query", [{"after": "12"}, {"after": "x"}, {"type": "reset"}, {"kind": "fact,"}, {"kind": "facts"}, {"other": "1"}]
)
def test_a_wrong_query_is_a_problem(served, query):
    container, port = served
    assert ask(port, container.token, "GET", f"/v1/events?{urlencode(query)}")[0] == 422


def test_filters_and_titles(served):
    container, port = served
    remember(port, container.token, "The crane lifts on Mondays")
    decision = remember(port, container.token, "Staging stays on PostgreSQL", kind="decision")
    with Reader(port, container.token, after="0", kind="decision,goal", type="written", titles="true") as reader:
        [event] = reader.take(1)
    assert (event["memory_id"], event["title"]) == (decision, "Staging stays on PostgreSQL")


def test_people_get_no_events_of_each_others_memories(served):
    container, port = served
    ada = add_person(container, "Ada", **{TEAM: "owner"})
    bob = add_person(container, "Bob", **{TEAM: "reader"})
    hidden = remember(port, ada, "Ada prefers tea in the morning", scope={"kind": "session", "id": "s1"})
    private = remember(port, ada, "The salary of the crane driver", sensitivity="private")
    ask(port, ada, "DELETE", f"/v1/memories/{hidden}?hard=true")
    ask(port, ada, "DELETE", f"/v1/memories/{private}?hard=true")
    shared = remember(port, ada, "The crane lifts on Mondays")
    ask(port, ada, "DELETE", f"/v1/memories/{shared}?hard=true")
    last = remember(port, ada, "The port of staging is 5433")
    expected = [("purged", shared), ("written", last)]
    for token, own in ((bob, []), (container.token, []), (ada, [("purged", hidden)])):
        session = {"session": "s1"}
        with Reader(port, token, after="0", **session) as reader:
            events = reader.take(len(own + expected))
        assert [(event["type"], event["memory_id"]) for event in events] == own + expected
    stranger = add_person(container, "Cyd")
    assert ask(port, stranger, "GET", "/v1/events")[0] == 404
    entries = ask(port, container.token, "GET", "/v1/access-log")[1]["items"]
    read_by_bob = {memory_id for entry in entries if entry["person"] == "bob" for memory_id in entry["memory_ids"]}
    assert {shared, last} == read_by_bob


def test_event_streams_are_limited_and_excess_clients_get_new_events(served):
    container, port = served
    remember(port, container.token, "The crane lifts on Mondays")
    with contextlib.ExitStack() as held:
        for _ in range(MOST_HELD):
            held.enter_context(Reader(port, container.token, after="0")).take(1)
        with Reader(port, container.token, after="0") as other:
            assert [event["type"] for event in other.drain()] == ["written"]
        # Threads are left for other requests.
        assert ask(port, container.token, "GET", "/v1/memories")[0] == 200


def test_a_long_history_arrives_in_parts(served, monkeypatch):
    monkeypatch.setattr(events, "MAX_EVENTS", 3)
    container, port = served
    items = [{"content": f"Note number {number} about the harbour"} for number in range(300)]
    receipts = ask(port, container.token, "POST", "/v1/memories/batch", {"items": items})[1]["results"]
    cursor, found, parts = "0", [], 0
    while len(found) < 300:
        with Reader(port, container.token, after=cursor) as reader:
            found += [event["memory_id"] for event in reader.drain()]
        cursor, parts = reader.cursor, parts + 1
    assert found == [receipt["id"] for receipt in receipts]
    assert parts > 1


def test_a_stream_ends_with_its_token_and_with_the_server(served):
    container, port = served
    with Reader(port, container.token) as reader:
        reader.read_block()
        container.settings.paths.renew_token()
        assert reader.drain() == []
    with Reader(port, container.token) as reader:
        reader.read_block()
        container.stopping.set()
        assert reader.drain() == []
