"""Notifications of MCP sessions over HTTP: of resources that they subscribed to and of lists."""

import contextlib
import http.client
import json

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from config.workspace_configs import ConfigFiles, save_workspace_setting
from tests.fakes.in_process import fast_settings, open_web
from tests.fakes.people import add_person
from tests.support.event_streams import read_fields
from tests.support.served import serve_home
from tests.support.sockets import serving
from web.http import streams
from web.http.app import create_app
from web.http.lazy_app import MAX_BODY_BYTES
from web.mcp import route

pytestmark = [
    pytest.mark.timeout(120),
    # Newer versions of the protocol open a stream instead.
    pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning"),
]

BRIEF = "reverie://brief"
TEAM = "team"
UPDATED = "notifications/resources/updated"
ACCEPT = "application/json, text/event-stream"


class Session:
    """A session over HTTP: it sends messages, and reads notifications on streams that it opens."""

    def __init__(self, port, token, workspace=TEAM, **headers):
        self.port = port
        self.headers = {
            "Authorization": f"Bearer {token}",
            "X-Reverie-Workspace": workspace,
            "Accept": ACCEPT,
            **headers,
        }
        self.id = None
        client = {"name": "probe", "version": "1"}
        answer = self.send("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        self.capabilities = answer["result"]["capabilities"]

    def send(self, method, **params):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        connection.request("POST", "/mcp", body, self._headers() | {"Content-Type": "application/json"})
        response = connection.getresponse()
        self.id = response.getheader("Mcp-Session-Id") or self.id
        answer = json.loads(response.read())
        connection.close()
        return answer

    def subscribe(self, uri):
        assert self.send("resources/subscribe", uri=uri)["result"] == {}

    def remember(self, content, **fields):
        answer = self.send("tools/call", name="remember_batch", arguments={"items": [{"content": content, **fields}]})
        return answer["result"]["_meta"]["reverie/ids"][0]

    def _headers(self):
        return self.headers | ({"Mcp-Session-Id": self.id} if self.id else {})

    @contextlib.contextmanager
    def stream(self, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", "/mcp", headers=self._headers() | headers)
        response = connection.getresponse()
        try:
            yield Stream(response)
        finally:
            response.close()
            connection.close()


class Stream:
    def __init__(self, response):
        self.response = response
        self.status = response.status
        self.cursor = None
        self.retries = []

    def read_block(self):
        """Return the notification of the next block, None for one without; raise EOFError at the end."""
        fields = read_fields(self.response)
        if fields is None:
            raise EOFError
        self.cursor = fields.get("id", self.cursor)
        self.retries += [int(fields["retry"])] if "retry" in fields else []
        return json.loads(fields["data"]) if "data" in fields else None

    def take(self, number):
        taken = []
        while len(taken) < number:
            if (message := self.read_block()) is not None:
                taken.append(message)
        return taken

    def drain(self):
        drained = []
        with contextlib.suppress(EOFError):
            while True:
                drained += [message for message in [self.read_block()] if message is not None]
        return drained


def updated(*uris):
    return [{"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}} for uri in uris]


def changed(*names):
    return [{"jsonrpc": "2.0", "method": f"notifications/{name}/list_changed"} for name in names]


def uri_of(memory_id):
    return f"reverie://memory/{memory_id}"


def is_held(session):
    """Return whether a stream of a session stays open: it gets a second sign of life before its end."""
    with session.stream() as stream, contextlib.suppress(EOFError):
        for _ in range(4):
            stream.read_block()
        return True
    return False


@pytest.fixture
def served(tmp_path):
    container = open_web(fast_settings(tmp_path / "home", web_threads=8))
    try:
        with serving(create_app(container), threads=8, files=1024, max_body_bytes=2 * MAX_BODY_BYTES) as port:
            yield container, port
            # Streams that are still open would delay the end.
            container.stopping.set()
    finally:
        container.close()


@pytest.fixture
def session(served):
    container, port = served
    return Session(port, container.token)


def test_mcp_server_announces_subscription_capabilities(session):
    assert session.capabilities["resources"] == {"subscribe": True, "listChanged": True}
    assert session.capabilities["tools"] == {"listChanged": True}


def test_changes_since_the_subscription_are_sent(session):
    other = session.remember("The crane lifts on Mondays")
    memory_id = session.remember("The port of staging is 5433", kind="decision")
    session.subscribe(uri_of(memory_id))
    session.send("tools/call", name="forget", arguments={"id": memory_id})
    with session.stream() as stream:
        assert stream.take(1) == updated(uri_of(memory_id))
        session.subscribe(BRIEF)
        session.send("tools/call", name="restore", arguments={"id": memory_id})
        assert stream.take(2) == updated(uri_of(memory_id), BRIEF)
        session.send("resources/unsubscribe", uri=uri_of(memory_id))
        session.send("tools/call", name="forget", arguments={"id": memory_id})
        session.send("tools/call", name="forget", arguments={"id": other})
        assert stream.take(1) == updated(BRIEF)


def test_a_stream_continues_where_it_was(session):
    session.subscribe(BRIEF)
    session.remember("The crane lifts on Mondays")
    with session.stream() as stream:
        assert stream.take(1) == updated(BRIEF)
    # The cursor of the notification repeats nothing, an older one does.
    first = stream.cursor
    session.remember("The port of staging is 5433")
    for _ in range(2):
        with session.stream(**{"Last-Event-ID": first}) as again:
            assert again.take(1) == updated(BRIEF)
            assert again.cursor != first


def test_many_changes_are_one_notification_per_resource(session):
    session.subscribe(BRIEF)
    items = [{"content": f"Note number {number} about the harbour"} for number in range(50)]
    session.send("tools/call", name="remember_batch", arguments={"items": items})
    memory_id = session.remember("The port of staging is 5433")
    session.subscribe(uri_of(memory_id))
    session.send("tools/call", name="forget", arguments={"id": memory_id})
    with session.stream() as stream:
        assert stream.take(2) == updated(BRIEF, uri_of(memory_id))


def test_a_long_history_arrives_in_parts(session, monkeypatch):
    monkeypatch.setattr(route, "MAX_NOTIFICATIONS", 1)
    session.subscribe(BRIEF)
    session.remember("The crane lifts on Mondays")
    with session.stream() as stream:
        assert stream.drain() == updated(BRIEF)
        assert stream.retries[-1] == streams.SOON_MS


def test_a_session_without_subscriptions_occupies_no_thread(session):
    with session.stream() as stream:
        assert stream.drain() == []
        assert stream.retries[-1] == route.IDLE_RETRY_MS


def test_only_the_newest_stream_sends(session):
    session.subscribe(BRIEF)
    with session.stream() as older:
        older.read_block()
        with session.stream() as newer:
            newer.read_block()
            assert older.drain() == []
            session.remember("The crane lifts on Mondays")
            assert newer.take(1) == updated(BRIEF)


def test_mcp_streams_are_limited_and_excess_clients_get_updates(served):
    container, port = served
    sessions = [Session(port, container.token) for _ in range(streams.MOST_HELD + 1)]
    for session in sessions:
        session.subscribe(BRIEF)
    sessions[0].remember("The crane lifts on Mondays")
    with contextlib.ExitStack() as held:
        for session in sessions[:-1]:
            assert held.enter_context(session.stream()).take(1) == updated(BRIEF)
        with sessions[-1].stream() as other:
            assert other.drain() == updated(BRIEF)
    # The threads of clients that have left are free again.
    while not is_held(sessions[-1]):
        pass


def test_private_memories_and_those_of_others_are_never_announced(served):
    container, port = served
    ada, bob = (add_person(container, name, **{TEAM: role}) for name, role in (("Ada", "owner"), ("Bob", "reader")))
    ada_session, bob_session, owner_session = (Session(port, token) for token in (ada, bob, container.token))

    def store(content, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        headers = {"Authorization": f"Bearer {ada}", "X-Reverie-Workspace": TEAM, "Content-Type": "application/json"}
        connection.request("POST", "/v1/memories", json.dumps({"content": content, **fields}), headers)
        stored = json.loads(connection.getresponse().read())
        connection.close()
        return stored["id"]

    first = store("The crane lifts on Mondays")
    hidden = store("Ada prefers tea in the morning", scope={"kind": "session", "id": "s1"})
    private = store("The salary of the crane driver", sensitivity="private")
    for session in (ada_session, bob_session, owner_session):
        for memory_id in (hidden, private, first):
            session.subscribe(uri_of(memory_id))
    for memory_id in (hidden, private, first):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        headers = {"Authorization": f"Bearer {ada}", "X-Reverie-Workspace": TEAM}
        connection.request("DELETE", f"/v1/memories/{memory_id}?hard=true", headers=headers)
        assert connection.getresponse().status < 300
        connection.close()
    for session in (ada_session, bob_session, owner_session):
        with session.stream() as stream:
            assert stream.take(1) == updated(uri_of(first))
    # Another person's session is unknown to others, even with its id.
    for token in (bob, container.token):
        thief = Session(port, token)
        thief.id = ada_session.id
        with thief.stream() as stream:
            assert stream.status == 404
        assert "session" in thief.send("resources/subscribe", uri=BRIEF)["error"]["message"]


def test_a_stream_ends_with_its_token_and_with_the_server(served):
    container, port = served
    session = Session(port, container.token)
    session.subscribe(BRIEF)
    with session.stream() as stream:
        stream.read_block()
        container.settings.paths.renew_token()
        assert stream.drain() == []
    session = Session(port, container.token)
    session.subscribe(BRIEF)
    with session.stream() as stream:
        stream.read_block()
        container.stopping.set()
        assert stream.drain() == []


def test_switches_change_the_lists_and_stop_notifications(served, session):
    container, _port = served
    session.subscribe(BRIEF)

    def switch(**values):
        for name, value in values.items():
            save_workspace_setting(ConfigFiles(container.settings.paths), TEAM, name, value)

    switch(write_tools=False)
    with session.stream() as stream:
        assert stream.take(1) == changed("tools")
    switch(write_tools=True)
    session.remember("The crane lifts on Mondays")
    switch(enabled=False)
    session.send("resources/unsubscribe", uri=BRIEF)
    with session.stream() as stream:
        assert stream.drain() == changed("tools", "resources")
    assert session.send("resources/list")["result"]["resources"] == []
    assert session.send("resources/templates/list")["result"]["resourceTemplates"] == []
    assert "turned off" in session.send("resources/read", uri=BRIEF)["error"]["message"]
    assert "turned off" in session.send("prompts/get", name="review")["error"]["message"]


def test_a_workspace_that_is_off_announces_no_changes(served, session):
    container, _port = served
    session.subscribe(BRIEF)
    session.remember("The crane lifts on Mondays")
    save_workspace_setting(ConfigFiles(container.settings.paths), TEAM, "enabled", value=False)
    with session.stream() as stream:
        taken = stream.take(2)
        # The changes were looked at, and none was announced.
        while stream.read_block() is not None:
            raise AssertionError("a change of a workspace that is off was announced")
    assert taken == changed("tools", "resources")


def test_a_read_only_session_is_notified(served):
    container, port = served
    reader = Session(port, container.token, **{"X-Reverie-Read-Only": "true"})
    reader.subscribe(BRIEF)
    Session(port, container.token).remember("The crane lifts on Mondays")
    with reader.stream() as stream:
        assert stream.take(1) == updated(BRIEF)


def test_only_a_known_session_has_notifications(session):
    for uri in ("reverie://fly", "reverie://memory/short", "file:///etc/passwd"):
        error = session.send("resources/subscribe", uri=uri)["error"]
        assert (error["code"], error["data"]) == (-32602, {"uri": uri})
    with session.stream(Accept="application/json") as stream:
        assert stream.status == 406
    with session.stream(**{"Last-Event-ID": "12"}) as stream:
        assert stream.status == 422
    session.id = "of-no-session"
    with session.stream() as stream:
        assert stream.status == 404
    assert "tools" in session.send("tools/list")["result"]
    session.id = None
    assert "initialize" in session.send("resources/subscribe", uri=BRIEF)["error"]["message"]
    with session.stream() as stream:
        assert (stream.status, stream.response.getheader("Allow")) == (405, "OPTIONS, POST")


# With the client of the SDK.


class Host:
    """A host that collects notifications."""

    def __init__(self):
        self.notes = []
        self._came = anyio.Event()

    async def note(self, message):
        note = getattr(message, "root", message)
        self.notes.append((getattr(note, "method", None), getattr(getattr(note, "params", None), "uri", None)))
        self._came.set()

    async def wait_for(self, method, uri=None):
        with anyio.fail_after(30):
            while (method, uri) not in self.notes:
                self._came = anyio.Event()
                await self._came.wait()


@pytest.fixture
def converse(home, monkeypatch):
    """Run a conversation with a host."""
    monkeypatch.setattr(route, "IDLE_RETRY_MS", 100)

    def run(conversation):
        async def talk(port):
            host, headers = Host(), {"Authorization": f"Bearer {home.paths.token()}"}
            async with (
                create_mcp_http_client(headers=headers) as http,
                Client(
                    streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http),
                    mode="legacy",
                    message_handler=host.note,
                ) as client,
            ):
                return await conversation(client, host)

        with serve_home(home) as port:
            return anyio.run(talk, port)

    return run


async def remember(client, content):
    result = await client.call_tool("remember_batch", {"items": [{"content": content, "kind": "decision"}]})
    return result.meta["reverie/ids"][0]


def test_a_host_is_notified_of_the_resources_that_it_subscribed_to(converse):
    async def conversation(client, host):
        memory_id = await remember(client, "The port of staging is 5433")
        await client.subscribe_resource(uri_of(memory_id))
        await client.subscribe_resource(BRIEF)
        await client.call_tool("forget", {"id": memory_id})
        await host.wait_for(UPDATED, uri_of(memory_id))
        await host.wait_for(UPDATED, BRIEF)
        await client.unsubscribe_resource(uri_of(memory_id))
        host.notes.clear()
        await remember(client, "The crane lifts on Mondays")
        await host.wait_for(UPDATED, BRIEF)
        return {uri for method, uri in host.notes if method == UPDATED}

    assert converse(conversation) == {BRIEF}


def test_a_host_is_notified_when_a_switch_changes_its_lists(converse, home):
    async def conversation(client, host):
        before = [(await client.list_tools()).tools, (await client.list_resources()).resources]
        await client.call_tool("overview", {})
        await client.subscribe_resource(BRIEF)
        save_workspace_setting(ConfigFiles(home.paths), "default", "enabled", value=False)
        await client.call_tool("overview", {})
        await host.wait_for("notifications/tools/list_changed")
        await host.wait_for("notifications/resources/list_changed")
        return before, [(await client.list_tools()).tools, (await client.list_resources()).resources]

    before, after = converse(conversation)
    assert (len(before[0]), len(before[1])) == (10, 1)
    assert (len(after[0]), len(after[1])) == (1, 0)
