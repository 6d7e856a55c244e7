import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
import urllib3
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.support.served import serve_home
from tests.support.stack import free_port

pytestmark = pytest.mark.timeout(120)

REVERIE = str(Path(sys.executable).parent / "reverie")
STAGING = {"content": "Staging listens on port 5433", "kind": "decision"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class Door:
    def __init__(self, process, url, token):
        self.process = process
        self.url = url
        self.token = token

    def post(self, **headers):
        given = ACCEPT | {"Authorization": f"Bearer {self.token}"} | headers
        given = {name: value for name, value in given.items() if value is not None}
        return urllib3.request("POST", self.url, json=HELLO, headers=given, retries=False).status


@pytest.fixture
def door(home, tmp_path):
    with serve_home(home) as port:
        process = subprocess.Popen(
            [REVERIE, "mcp", "--http", "--port", "0"],
            env=os.environ | {"REVERIE_HOME": str(home.home), "REVERIE_PORT": str(port)},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            url = process.stdout.readline().split()[0]
            yield Door(process, url, home.paths.token())
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()


def converse(door, conversation, mode="legacy", **headers):
    async def host():
        given = {"Authorization": f"Bearer {door.token}"} | headers
        async with (
            create_mcp_http_client(headers=given) as http,
            Client(streamable_http_client(door.url, http_client=http), mode=mode) as client,
        ):
            return await conversation(client)

    return anyio.run(host)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_host_remembers_and_recalls(door, mode):
    async def conversation(client):
        await client.call_tool("remember_batch", {"items": [STAGING]})
        return await client.call_tool("recall", {"query": "staging port"}), await client.read_resource(
            "reverie://brief"
        )

    found, brief = converse(door, conversation, mode)
    assert STAGING["content"] in found.content[0].text
    assert STAGING["content"] in brief.contents[0].text


def test_a_header_names_another_workspace(door, home):
    async def conversation(client):
        await client.call_tool("remember_batch", {"items": [STAGING]})
        return await client.call_tool("overview", {})

    told = converse(door, conversation, **{"X-Reverie-Workspace": "shop"})
    assert told.content[0].text.startswith("Workspace “shop”: 1 memories")
    wrong = converse(door, conversation, **{"X-Reverie-Workspace": "../shop"})
    assert wrong.is_error
    assert home.paths.workspace_ids() == ["shop"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic x"}, 401),
        ({"Host": "evil.example:7078"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:7078"}, 200),
    ],
)
def test_only_our_own_may_call(door, headers, status):
    assert door.post(**headers) == status


def test_a_new_token_counts_at_once_here_and_behind(door, home):
    async def conversation(client):
        return await client.call_tool("remember_batch", {"items": [STAGING]})

    assert not converse(door, conversation).is_error
    former, door.token = door.token, home.paths.renew_token()
    assert door.post(Authorization=f"Bearer {former}") == 401
    assert not converse(door, conversation).is_error


def test_sigterm_stops_it_even_with_an_open_stream(door):
    async def conversation(client):
        # The session holds a stream open while the server is told to stop.
        await client.list_tools()
        door.process.send_signal(signal.SIGTERM)
        return await anyio.to_thread.run_sync(door.process.wait, 30)

    try:
        converse(door, conversation)
    except BaseExceptionGroup:
        # The client may notice that its server went away.
        assert door.process.wait(30) == 0
    assert door.process.returncode == 0


def test_a_taken_port_is_one_clear_line(home, tmp_path):
    with serve_home(home) as port:
        done = subprocess.run(
            [REVERIE, "mcp", "--http", "--port", str(port)],
            env=os.environ | {"REVERIE_HOME": str(home.home), "REVERIE_PORT": str(free_port())},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: cannot listen on 127.0.0.1:{port}")
    assert len(done.stderr.splitlines()) == 1
