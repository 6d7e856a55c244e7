"""The tools that hosts are offered follow the session and the switches of the workspace."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from config.paths import READ_ONLY_HEADER
from config.workspace_configs import ConfigFiles, save_workspace_setting
from tests.support.served import serve_home
from tests.support.stack import free_port
from web.mcp.offered_tools import IS_OFF

pytestmark = pytest.mark.timeout(120)

REVERIE = str(Path(sys.executable).parent / "reverie")
FACT = {"content": "Staging listens on port 5433"}
WRITING = {"remember_batch", "set_fact", "forget", "lesson_outcome"}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.fixture(params=["/mcp", "stdio"])
def converse(request, home, folder):
    """Run a conversation over HTTP or over stdio, in a session with some switches."""

    def run(conversation, *, read_only=False, profile="core", mode="legacy"):
        async def over_http(port):
            headers = {"Authorization": f"Bearer {home.paths.token()}"} | (
                {READ_ONLY_HEADER: "true"} if read_only else {}
            )
            async with (
                create_mcp_http_client(headers=headers) as http,
                Client(
                    streamable_http_client(f"http://127.0.0.1:{port}/mcp?profile={profile}", http_client=http),
                    mode=mode,
                ) as client,
            ):
                return await conversation(client)

        async def over_stdio(port):
            variables = {"REVERIE_HOME": str(home.home), "REVERIE_PORT": str(port), "HF_HUB_OFFLINE": "1"}
            options = ["--read-only"] if read_only else []
            parameters = StdioServerParameters(
                command=REVERIE, args=["mcp", "--profile", profile, *options], env=os.environ | variables, cwd=folder
            )
            async with Client(stdio_client(parameters), mode=mode) as client:
                return await conversation(client)

        with serve_home(home) as port:
            return anyio.run(over_http if request.param == "/mcp" else over_stdio, port)

    return run


def switch(home, **values):
    for name, value in values.items():
        save_workspace_setting(ConfigFiles(home.paths), "default", name, value)


async def list_names(client):
    return {tool.name for tool in (await client.list_tools()).tools}


def test_a_read_only_session_lists_and_calls_no_tool_that_writes(converse):
    async def conversation(client):
        names = await list_names(client)
        refused = await client.call_tool("remember_batch", {"items": [FACT]})
        goals = await client.call_tool("goals", {"title": "A goal"})
        found = await client.call_tool("recall", {"query": "staging port"})
        return names, await list_names(client), refused, goals, found

    first, later, refused, goals, found = converse(conversation, read_only=True)
    assert first == later
    assert "recall" in first
    assert first.isdisjoint(WRITING)
    assert refused.is_error
    assert "read_only" in refused.content[0].text or "read-only" in refused.content[0].text
    assert goals.is_error
    assert not found.is_error
    assert "5433" not in found.content[0].text


def test_tools_that_a_switch_turns_off_are_not_listed(converse, home):
    switch(home, write_tools=False)

    async def conversation(client):
        return await list_names(client), await client.call_tool("forget", {"id": "x"})

    names, refused = converse(conversation)
    assert "recall" in names
    assert names.isdisjoint(WRITING)
    assert refused.is_error
    assert "write_tools" in refused.content[0].text


def test_disabled_workspace_lists_a_single_explanatory_tool(converse, home):
    switch(home, enabled=False)

    async def conversation(client):
        tools = (await client.list_tools()).tools
        return tools, await client.call_tool("recall", {"query": "x"}), await client.call_tool(tools[0].name, {})

    [tool], refused, explained = converse(conversation)
    assert tool.description == IS_OFF
    assert (refused.is_error, refused.content[0].text) == (True, IS_OFF)
    assert (explained.is_error, explained.content[0].text) == (False, IS_OFF)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_chat_profile_lists_and_accepts_no_mcp_tools(converse, home, mode, enabled):
    switch(home, enabled=enabled)

    async def conversation(client):
        first, refused = await list_names(client), []
        for name in ("recall", "remember_batch", "more_tools", "memory_is_off"):
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, {"query": "x", "items": [FACT]})
            refused.append(caught.value.error.code)
        return first, await list_names(client), refused, client.instructions

    first, later, refused, instructions = converse(conversation, profile="none", mode=mode)
    assert first == later == set()
    assert set(refused) == {INVALID_PARAMS}
    assert not instructions


def test_commands_say_that_reverie_is_off(home, folder):
    switch(home, enabled=False)
    variables = {"REVERIE_HOME": str(home.home), "REVERIE_PORT": str(free_port())}
    ran = subprocess.run(
        [REVERIE, "-w", "default", "recall", "port"],
        env=os.environ | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Reverie is off in default" in ran.stderr
    status = subprocess.run(
        [REVERIE, "--json", "-w", "default", "status"],
        env=os.environ | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(status.stdout)["here"]["switches"]["enabled"] is False


def test_more_tools_lists_and_allows_the_others(converse, request):
    async def conversation(client):
        first = await list_names(client)
        await client.call_tool("remember_batch", {"items": [FACT]})
        revealed = await client.call_tool("more_tools", {})
        listed = await client.call_tool("list", {"kind": "fact"})
        return first, revealed, listed, await list_names(client)

    first, revealed, listed, later = converse(conversation)
    assert "list" not in first
    assert len(first) <= 10
    assert "- list(kind, session_id, archived, limit, cursor): " in revealed.content[0].text
    assert FACT["content"] in listed.content[0].text
    # A request over HTTP belongs to no session.
    assert ("list" in later) == ("stdio" in request.node.name)


def test_a_session_is_notified_of_more_tools(home, folder):
    told = []

    async def note(message):
        told.append(type(getattr(message, "root", message)).__name__)

    async def talk(port):
        variables = {"REVERIE_HOME": str(home.home), "REVERIE_PORT": str(port), "HF_HUB_OFFLINE": "1"}
        parameters = StdioServerParameters(command=REVERIE, args=["mcp"], env=os.environ | variables, cwd=folder)
        async with Client(stdio_client(parameters), mode="legacy", message_handler=note) as client:
            await client.list_tools()
            await client.call_tool("more_tools", {})
            await client.call_tool("overview", {})
            return client.server_capabilities.tools.list_changed

    with serve_home(home) as port:
        assert anyio.run(talk, port) is True
    assert told.count("ToolListChangedNotification") == 1


def test_facts_are_read_and_archived_by_their_key(converse):
    key = {"subject": "staging", "attribute": "port"}

    async def conversation(client):
        await client.call_tool("set_fact", key | {"value": "5433"})
        read = await client.call_tool("get", key)
        both = await client.call_tool("get", key | {"id": read.meta["reverie/ids"][0]})
        half = await client.call_tool("forget", {"subject": "staging"})
        return read, both, half, await client.call_tool("forget", key), await client.call_tool("get", key)

    read, both, half, forgotten, gone = converse(conversation)
    assert "5433" in read.content[0].text
    assert both.is_error
    assert half.is_error
    assert "subject and attribute" in half.content[0].text
    assert not forgotten.is_error, forgotten.content[0].text
    assert gone.is_error
