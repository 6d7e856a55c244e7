"""No line of a host over standard input goes unanswered."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from mcp.server.stdio import stdio_server
from mcp_types import JSONRPCError, jsonrpc_message_adapter

from tests.support.served import serve_home
from tests.unit.web.test_json_text import anything
from web.mcp.core_tools import CORE
from web.mcp.server import always, build_server
from web.mcp.stdio import HostLines, Omitting, UnansweredRequests

REVERIE = str(Path(sys.executable).parent / "reverie")
HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}},
}


class Sink:
    def __init__(self):
        self.lines = []

    async def write(self, text):
        self.lines.append(text)

    async def flush(self):
        pass


def converse(lines):
    """Return what the server writes to a host that says these lines and then closes its end."""
    sink = Sink()

    async def rest():
        for line in lines:
            yield line

    async def serve():
        server = build_server(always(None), CORE)
        unanswered = UnansweredRequests()
        host = HostLines([json.dumps(HELLO).encode()], rest(), unanswered)
        with anyio.fail_after(30):
            async with stdio_server(stdin=host, stdout=sink) as (read, write):
                host.refuse_by(write.send)
                answers = Omitting([], write, unanswered)
                await server.run(read, answers, server.create_initialization_options())

    anyio.run(serve)
    return [json.loads(line) for line in sink.lines]


bad = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | anything, "method": st.sampled_from(["ping", "tools/call", "fly"]) | anything},
    optional={"params": anything},
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(bad, max_size=5))
def test_each_request_is_answered_with_its_id(requests):
    requests = [{**request, "id": number} for number, request in enumerate(requests)]
    answers = converse([json.dumps(request).encode() for request in requests])
    assert {answer["id"] for answer in answers} == {"hello", *range(len(requests))}
    assert len(answers) == len(requests) + 1


def test_what_is_no_request_is_answered_without_an_id():
    lines = [b"not json", b"", b"  \n", b"[]", b"7", b'{"jsonrpc": "2.0", "id": 8, "method": "ping"}']
    answers = converse(lines)
    assert [answer["id"] for answer in answers if "error" in answer] == [None] * 3
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32700, -32600, -32600]
    assert {"jsonrpc": "2.0", "id": 8, "result": {}} in answers


@pytest.mark.parametrize(
    ("said_last", "timeout_s"),
    [
        ({"method": "notifications/cancelled", "params": {"requestId": 2}}, 60),
        ({"id": 3, "method": "tools/call", "params": {"name": "wait"}}, 0),
    ],
    ids=["cancelled", "too slow"],
)
def test_a_host_that_left_is_not_waited_for_without_end(said_last, timeout_s):
    async def leave():
        unanswered = UnansweredRequests()
        for said in ({"id": 2, "method": "tools/call", "params": {"name": "wait"}}, said_last):
            unanswered.follow(jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0"} | said))
        with anyio.fail_after(30):
            await unanswered.wait(timeout_s)

    anyio.run(leave)


def test_an_error_without_an_id_is_one_that_the_sdk_writes():
    error = JSONRPCError.model_validate({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}})
    assert json.loads(error.model_dump_json(exclude_unset=True))["id"] is None


# Kinds: a batch of 2025-03-26, half of a surrogate pair, what is no JSON, arguments as JSON in a text.
LINES = rb"""
[{"jsonrpc":"2.0","id":2,"method":"tools/list"},{"jsonrpc":"2.0","id":3,"method":"ping"}]
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"recall","arguments":{"query":"kiosk \ud83d"}}}
not json
{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"recall","arguments":{"query":"x","k":"3"}}}
{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"recall","arguments":{"query":"x","kinds":"decision"}}}
{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"overview","arguments":"{}"}}
{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"forget","arguments":{"id":"00000000","hard":"false"}}}
""".strip()


@pytest.mark.timeout(120)
def test_a_host_gets_an_answer_to_every_line(home, tmp_path):
    with serve_home(home) as port:
        variables = os.environ | {"REVERIE_HOME": str(home.home), "REVERIE_PORT": str(port), "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(
            [REVERIE, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables, cwd=tmp_path
        )
        hello = HELLO | {"params": HELLO["params"] | {"protocolVersion": "2025-03-26"}}
        process.stdin.write(json.dumps(hello).encode() + b"\n" + LINES + b"\n")
        # It closes its end without waiting for the answers.
        written, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    answers = [json.loads(line) for line in written.splitlines()]
    assert len(answers) == 9
    by_id = {answer["id"]: answer for answer in answers}
    assert set(by_id) == {"hello", 2, 3, 4, None, 6, 7, 8, 9}
    assert [by_id[number]["error"]["code"] for number in (2, 3, None)] == [-32600, -32600, -32700]
    failed = [number for number in (4, 6, 7, 8, 9) if by_id[number]["result"].get("isError")]
    assert failed == [9]
