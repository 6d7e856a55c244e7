import concurrent.futures
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
import urllib3
from hypothesis import HealthCheck, given, settings, strategies as st
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.support.served import serve_home
from web.mcp.front import FrontServer
from web.mcp.full_tools import PROFILES

pytestmark = pytest.mark.timeout(120)

REVERIE = str(Path(sys.executable).parent / "reverie")
STAGING = {"content": "Staging listens on port 5433", "kind": "decision"}
INDEX = {"what": "project"}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def message(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def hello(version="2025-06-18"):
    client = {"name": "probe", "version": "1"}
    return message("initialize", protocolVersion=version, capabilities={}, clientInfo=client)


class Door:
    def __init__(self, port, token):
        self.port = port
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.token = token

    def send(self, body=None, method="POST", query="", **headers):
        given = ACCEPT | {"Authorization": f"Bearer {self.token}"} | headers
        given = {name: value for name, value in given.items() if value is not None}
        data = body if isinstance(body, bytes) else json.dumps(hello() if body is None else body).encode()
        return urllib3.request(method, f"{self.url}{query}", body=data, headers=given, retries=False)


@pytest.fixture
def door(home):
    with serve_home(home) as port:
        yield Door(port, home.paths.token())


def converse(door, conversation, mode="legacy", **headers):
    async def host():
        given = {"Authorization": f"Bearer {door.token}"} | headers
        async with (
            create_mcp_http_client(headers=given) as http,
            Client(streamable_http_client(door.url, http_client=http), mode=mode) as client,
        ):
            return await conversation(client)

    return anyio.run(host)


async def remember(client):
    return await client.call_tool("remember_batch", {"items": [STAGING]})


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_host_remembers_and_recalls(door, mode):
    async def conversation(client):
        await remember(client)
        found = await client.call_tool("recall", {"query": "staging port"})
        read = await client.call_tool("get", {"id": found.meta["reverie/ids"][0][-8:]})
        return found, await client.read_resource("reverie://brief"), read

    found, brief, read = converse(door, conversation, mode)
    assert STAGING["content"] in found.content[0].text
    assert STAGING["content"] in brief.contents[0].text
    # What an earlier request showed is known by its end, though no session keeps it.
    assert STAGING["content"] in read.content[0].text


def test_a_header_names_another_workspace(door, home):
    async def conversation(client):
        await remember(client)
        return await client.call_tool("overview", {})

    told = converse(door, conversation, **{"X-Reverie-Workspace": "shop"})
    assert told.content[0].text.startswith("Workspace “shop”: 1 memories")
    assert door.send(**{"X-Reverie-Workspace": "../shop"}).status == 400
    assert home.paths.workspace_ids() == ["shop"]


def test_the_lists_are_those_of_a_session_over_stdio(door, home, tmp_path):
    async def list_all(client):
        return (
            await client.list_tools(),
            await client.list_resources(),
            await client.list_resource_templates(),
            await client.list_prompts(),
        )

    async def over_stdio(profile):
        environment = os.environ | {"REVERIE_HOME": str(home.home), "REVERIE_PORT": str(door.port)}
        relay = StdioServerParameters(
            command=REVERIE, args=["mcp", "--profile", profile], env=environment, cwd=tmp_path
        )
        async with Client(stdio_client(relay), mode="legacy") as client:
            return await list_all(client)

    core = converse(door, list_all)
    assert core == anyio.run(over_stdio, "core")
    door.url += "?profile=full"
    full = converse(door, list_all)
    assert full == anyio.run(over_stdio, "full")
    assert len(full[0].tools) > len(core[0].tools)


def test_memory_written_over_mcp_records_the_client_program(door, home):
    async def conversation(client):
        return await remember(client)

    stored = converse(door, conversation, **{"User-Agent": "claude-code/2.1.63 (cli)"})
    url = f"http://127.0.0.1:{door.port}/v1/memories/{stored.meta['reverie/ids'][0]}"
    read = urllib3.request("GET", url, headers={"Authorization": f"Bearer {door.token}"}).json()
    assert read["source"] == "agent"
    assert read["metadata"] == {"agent": "claude-code"}


def test_headers_name_the_session_and_the_program_of_the_agent(door, tmp_path):
    async def conversation(client):
        return await remember(client), await client.call_tool("index", INDEX)

    headers = {"User-Agent": "%40scope%2Fagent%20%C3%A9", "X-Reverie-Session": "s%2F1 %C3%A9"}
    stored, refused = converse(door, conversation, **headers, **{"X-Reverie-Folder": str(tmp_path)})
    url = f"http://127.0.0.1:{door.port}/v1/memories/{stored.meta['reverie/ids'][0]}"
    read = urllib3.request("GET", url, headers={"Authorization": f"Bearer {door.token}"}).json()
    assert read["metadata"] == {"agent": "@scope/agent é"}
    assert read["session_id"] == "s/1 é"
    # The server reads no folder that a header names.
    assert refused.is_error
    assert "is unknown here" in refused.content[0].text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic x"}, 401),
        ({"Host": "evil.example:7077"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": None}, 415),
        ({"Accept": "text/html"}, 406),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"MCP-Protocol-Version": "1999-01-01"}, 400),
        ({"MCP-Session-Id": "of-no-session"}, 200),
    ],
)
def test_only_authorized_and_valid_mcp_requests_are_answered(door, headers, status):
    assert door.send(**headers).status == status


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}',
        b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
        json.dumps([hello(), hello()]).encode(),
    ],
    ids=range(10),
)
def test_invalid_mcp_message_is_rejected(door, body):
    assert door.send(body).status == 400
    assert door.send().status == 200


def test_rejected_mcp_messages_are_answered_with_their_ids(door):
    batch = door.send([message("ping") | {"id": 2}, message("ping") | {"id": "b"}])
    assert [(one["id"], one["error"]["code"]) for one in batch.json()] == [(2, -32600), ("b", -32600)]
    assert door.send(b"not json").json()["error"]["code"] == -32700
    positional = door.send(message("tools/list") | {"params": [1]}).json()
    assert (positional["id"], positional["error"]["code"]) == (1, -32602)


def test_other_forms_of_arguments_are_read(door):
    asked = message("tools/call", name="recall", arguments=json.dumps({"query": "kiosk \ud83d", "k": "3"}))
    answer = door.send(asked)
    assert (answer.status, answer.json()["result"].get("isError", False)) == (200, False)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
methods = st.sampled_from(["initialize", "tools/list", "tools/call", "resources/read", "prompts/get", "ping", "fly"])
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | anything, "method": methods | anything},
    optional={"id": st.integers() | anything, "params": anything, "result": anything},
)
calls = st.fixed_dictionaries(
    {"name": st.sampled_from([tool.name for tool in PROFILES["core"]]) | anything},
    optional={"arguments": st.dictionaries(st.sampled_from(["query", "items", "id", "message", "k"]), anything)},
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(said=anything | messages | calls.map(lambda one: message("tools/call", **one)))
def test_no_message_breaks_it(app, container, said):
    headers = ACCEPT | {"Authorization": f"Bearer {container.token}"}
    body = json.dumps(said).encode("utf-8", "surrogatepass")
    assert app.test_client().post("/mcp", data=body, headers=headers).status_code in (200, 202, 400, 404)


def error_of(answer):
    assert answer.status in (200, 400, 404)
    return answer.json()["error"]["code"]


def test_unknown_mcp_names_and_methods_are_protocol_errors(door):
    assert error_of(door.send(message("tools/call", name="fly", arguments={}))) == -32602
    assert error_of(door.send(message("tools/call", arguments=[]))) == -32602
    assert error_of(door.send(message("fly"))) == -32601
    assert error_of(door.send(message("prompts/get", name="fly"))) == -32602
    assert error_of(door.send(message("resources/read", uri="reverie://fly"))) == -32602
    # An unknown version is answered by one that both may know.
    assert door.send(hello("1999-01-01")).json()["result"]["protocolVersion"] == "2025-11-25"


def test_a_stream_that_nothing_would_come_over_is_not_opened(door):
    for method in ("GET", "DELETE", "PUT"):
        refused = door.send(b"", method=method)
        assert refused.status == 405
        # Only a session has notifications.
        assert ("GET" in refused.headers["Allow"]) == (method != "GET")
    modern = {"MCP-Protocol-Version": "2026-07-28", "MCP-Method": "subscriptions/listen"}
    envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"},
    }
    listened = door.send(message("subscriptions/listen", _meta=envelope, notifications={}), **modern)
    assert error_of(listened) == -32601


def test_an_unknown_profile_names_the_parameter(door):
    refused = door.send(query="?profile=everything")
    assert refused.status == 422
    assert refused.json()["errors"][0]["loc"] == "profile"
    # Not even bytes that no address may hold break it.
    assert door.send(query="?profile=core&caf%E9=1").status == 422


def test_too_long_a_body_is_refused_and_the_longest_is_read(door):
    longest = message("ping", fill="x" * (8 * 1024 * 1024 - 100))
    assert door.send(longest).status == 200
    assert door.send(message("ping", fill="x" * (8 * 1024 * 1024))).status == 413


def test_a_new_token_counts_at_once_in_the_middle_of_a_conversation(door, home):
    with urllib3.HTTPConnectionPool("127.0.0.1", door.port, maxsize=1) as kept:

        def call():
            headers = ACCEPT | {"Authorization": f"Bearer {door.token}"}
            body = json.dumps(message("tools/call", name="remember_batch", arguments={"items": [STAGING]}))
            return kept.request("POST", "/mcp", body=body, headers=headers, retries=False)

        assert not call().json()["result"].get("isError")
        renewed = home.paths.renew_token()
        assert call().status == 401
        door.token = renewed
        assert not call().json()["result"].get("isError")


def test_a_tool_asks_as_the_caller_and_the_answers_do_not_mix(door):
    def one(name):
        async def conversation(client):
            item = {"content": f"The parcel of {name} is in depot {name}-7", "kind": "decision"}
            await client.call_tool("remember_batch", {"items": [item]})
            return [(await client.call_tool("overview", {})).content[0].text for _ in range(3)]

        return converse(door, conversation, **{"X-Reverie-Workspace": name})

    names = [f"shop{number}" for number in range(8)]
    with concurrent.futures.ThreadPoolExecutor(len(names)) as together:
        for name, told in zip(names, together.map(one, names), strict=True):
            assert set(told) == {told[0]}
            assert f"“{name}”: 1 memories" in told[0]
            assert f"depot {name}-7" in told[0]


def test_a_caller_that_hangs_up_takes_nothing_with_it(door):
    body = json.dumps(message("tools/call", name="overview", arguments={})).encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {door.token}\r\n"
    head += f"Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", door.port)) as caller:
            caller.sendall(head.encode() + body)
    assert door.send().status == 200


def test_read_only_setting_rejects_mcp_writes_over_http(door, home):
    (home.home / "config.toml").write_text("read_only = true\n")
    with serve_home(type(home)(home=home.home, read_only=True)) as port:
        locked = Door(port, door.token)
        refused = converse(locked, remember)
    assert refused.is_error
    assert "read_only is set" in refused.content[0].text


def test_mcp_packages_are_not_imported_without_a_request():
    program = (
        "import sys; import web.http.app; "
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'mcp', 'a2wsgi', 'starlette', 'httpx'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert FrontServer.__module__ == "web.mcp.front"
