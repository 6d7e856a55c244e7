"""No line of a host over standard input goes unanswered, and nothing but answers is written."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.played_host import NoServer, PlayedHost, PlayedServer, bare, converse, hello
from tests.support.served import serve_home
from tests.unit.web.test_json_text import anything
from web.mcp.offered_tools import Switches
from web.mcp.relay import MOST_AT_ONCE, HostLines, Relay
from web.mcp.session import Session

REVERIE = str(Path(sys.executable).parent / "reverie")
HELLO = hello(request_id="hello")
RECALL = {"name": "recall", "arguments": {"query": "x"}}

bad = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | anything, "method": st.sampled_from(["ping", "tools/call", "fly"]) | anything},
    optional={"params": anything},
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(bad, max_size=5), st.booleans())
def test_each_request_is_answered_with_its_id(requests, answers):
    requests = [{**request, "id": number} for number, request in enumerate(requests)]
    sent = converse([HELLO, *requests], PlayedServer() if answers else NoServer())
    assert {answer["id"] for answer in sent} == {"hello", *range(len(requests))}
    assert len(sent) == len(requests) + 1


@pytest.mark.parametrize("request_id", ["", "é", "7", 7, 0, -1, 2**70, 10**3000])
def test_an_id_is_returned_unchanged(request_id):
    for method, params in (("ping", {}), ("tools/call", RECALL), ("fly", {})):
        [_, answer] = converse([HELLO, bare(method, request_id, params=params)], PlayedServer())
        assert (answer["id"], type(answer["id"])) == (request_id, type(request_id))


def test_invalid_mcp_line_is_answered_without_an_id():
    lines = [HELLO, b"not json", b"", b"  \n", b"[]", b"7", bare("ping", 8)]
    answers = converse(lines)
    assert [answer["id"] for answer in answers if "error" in answer] == [None] * 3
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32700, -32600, -32600]
    assert {"jsonrpc": "2.0", "id": 8, "result": {}} in answers


def test_an_unexpected_error_is_answered_and_the_session_goes_on(capsys):
    def fail(_message):
        raise ZeroDivisionError("inner matters")

    lines = [HELLO, bare("tools/call", 1, params=RECALL), bare("ping", 2)]
    answers = {answer["id"]: answer for answer in converse(lines, PlayedServer(fail))}
    assert answers[1]["error"]["code"] == -32603
    assert "inner matters" not in answers[1]["error"]["message"]
    assert answers[2]["result"] == {}
    assert "ZeroDivisionError: inner matters" in capsys.readouterr().err


class SlowServer(PlayedServer):
    def __init__(self):
        super().__init__()
        self.release = threading.Event()

    def post(self, *given, **asked):
        self.release.wait(60)
        return super().post(*given, **asked)


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "too slow"])
def test_a_host_that_left_is_not_waited_for_without_end(is_cancelled):
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    lines = [HELLO, bare("tools/call", 2, params=RECALL), *([cancelled] if is_cancelled else [])]
    host, server = PlayedHost(lines), SlowServer()
    relay = Relay(host, Session("core", Switches), lambda: server)
    relay.run(last_answers_s=60 if is_cancelled else 0)
    server.release.set()
    assert [answer["id"] for answer in host.sent] == ["hello"]


def test_the_end_of_input_waits_for_answers_and_for_nothing_else():
    class StartingServer(SlowServer):
        def post(self, target, message, headers, **asked):
            # Sent before the first call, without the host.
            is_ping = json.loads(message)["method"] == "ping"
            return (super() if is_ping else super(SlowServer, self)).post(target, message, headers, **asked)

        def close(self):
            host.sent.append({"id": "closed"})

    host, server = PlayedHost([HELLO, bare("tools/list", 1), bare("tools/call", 2, params=RECALL)]), StartingServer()
    Relay(host, Session("core", Switches), lambda: server).run()
    server.release.set()
    assert [message["id"] for message in host.sent] == ["hello", 1, 2, "closed"]


def test_a_cancelled_request_is_not_answered_later():
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    server = SlowServer()

    def say():
        yield from (json.dumps(one).encode() for one in (HELLO, bare("tools/call", 2, params=RECALL), cancelled))
        server.release.set()
        yield json.dumps(bare("tools/call", 3, params=RECALL)).encode()

    assert [answer["id"] for answer in converse(say(), server)] == ["hello", 3]


def test_many_requests_at_once_do_not_reach_the_server_at_once():
    lock, counts = threading.Lock(), [0, 0]

    def answer(_message):
        with lock:
            counts[0] += 1
            counts[1] = max(counts)
        threading.Event().wait(0.005)
        with lock:
            counts[0] -= 1
        return {"result": {}}

    lines = [HELLO, *(bare("tools/call", number, params=RECALL) for number in range(100))]
    assert len(converse(lines, PlayedServer(answer))) == 101
    assert counts[1] <= MOST_AT_ONCE


def test_a_request_without_a_thread_is_answered(monkeypatch, capsys):
    def fail(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    answers = converse([HELLO, bare("tools/call", 1, params=RECALL), bare("ping", 2)])
    assert answers[1]["error"]["code"] == -32603
    assert answers[2]["result"] == {}
    assert "can't start new thread" in capsys.readouterr().err


@given(st.lists(st.binary(max_size=60)), st.booleans())
def test_line_is_read_completely_from_any_pieces(parts, ends):
    text = b"\n".join(parts) + b"\n" * ends
    read, write = os.pipe()
    os.write(write, text)
    os.close(write)
    lines = list(HostLines(read, read))
    os.close(read)
    assert lines == text.split(b"\n")


def test_a_host_that_reads_no_more_is_not_an_error():
    read, write = os.pipe()
    os.close(read)
    HostLines(read, write).send({"text": "é \ud83d"})
    os.close(write)


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
        greeting = HELLO | {"params": HELLO["params"] | {"protocolVersion": "2025-03-26"}}
        process.stdin.write(json.dumps(greeting).encode() + b"\n" + LINES + b"\n")
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
