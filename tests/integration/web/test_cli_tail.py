"""`reverie tail`: one line for each event, filters, and a server that is away for a while."""

import itertools
import json
import threading

import pytest

from pipeline.kernel.errors import AnswerLost, InvalidField, ServerUnreachable
from pipeline.kernel.http.event_stream import Block, read_blocks
from tests.fakes.command_line import remember, run, serve_app
from web.cli.state import State
from web.features.changes import commands as live
from web.features.changes.commands import EventFeed as Feed
from web.http.client import Client


@pytest.fixture
def client(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        with Client(f"http://127.0.0.1:{port}", container.token) as client:
            yield client


class Stopped(Exception):
    """The user interrupts the command."""


def watch(client, monkeypatch, capsys, number, after="0", state=None, **filters):
    """Return the lines that the command prints for some events before it is interrupted."""
    counted = itertools.count(1)

    def print_new(state, event, print_item, shown=live.print_new):
        shown(state, event, print_item)
        if next(counted) == number:
            raise Stopped

    monkeypatch.setattr(live, "print_new", print_new)
    with pytest.raises(Stopped):
        live.follow(state or State(), Feed(client, after, **filters), live.print_event)
    monkeypatch.undo()
    return capsys.readouterr().out.splitlines()


def test_each_event_is_a_line_with_the_start_of_the_text(client, monkeypatch, capsys):
    fact = remember("The crane lifts on Mondays")
    decision = remember("Staging stays\non PostgreSQL", "--kind", "decision")
    run("forget", fact)
    lines = watch(client, monkeypatch, capsys, 3, titles="true")
    assert [line[21:] for line in lines] == [
        f"written     fact        {fact[-8:]}  The crane lifts on Mondays",
        f"written     decision    {decision[-8:]}  Staging stays on PostgreSQL",
        f"archived    fact        {fact[-8:]}  The crane lifts on Mondays",
    ]


def test_json_has_the_cursor_after_which_the_command_continues(client, monkeypatch, capsys):
    ids = [remember(f"Note number {number} about the harbour") for number in range(3)]
    state = State(json=True)
    [line] = watch(client, monkeypatch, capsys, 1, state=state)
    first = json.loads(line)
    assert first["memory_id"] == ids[0]
    assert "title" not in first
    rest = watch(client, monkeypatch, capsys, 2, after=first["cursor"], state=state)
    assert [json.loads(line)["memory_id"] for line in rest] == ids[1:]


def test_filters_are_sent(client, monkeypatch, capsys):
    remember("The crane lifts on Mondays")
    decision = remember("Staging stays on PostgreSQL", "--kind", "decision")
    [line] = watch(client, monkeypatch, capsys, 1, kind="decision,goal", type="written")
    assert decision[-8:] in line


def test_a_wrong_cursor_is_an_error(client):
    assert "cursor" in run("tail", "--after", "yesterday", code=1).stderr
    with pytest.raises(InvalidField):
        list(Feed(client, "yesterday").read())


def test_the_command_goes_on_when_the_server_is_back(monkeypatch, capsys):
    event = {"cursor": "1.1.0", "type": "job_done", "at": "2026-01-01T00:00:00.000Z", "job": "dedup", "ok": False}
    reset = {"cursor": "2.2.0", "type": "reset", "at": "2026-01-01T00:00:00.000Z"}
    answers = [
        [Block(json.dumps(event), "1.1.0", 200)],
        ServerUnreachable("gone"),
        AnswerLost("gone"),
        [Block(json.dumps(reset), "2.2.0")],
    ]
    asked = []

    class Away:
        def stream(self, _path, query):
            asked.append(query["after"])
            if not answers:
                raise Stopped
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            yield from answer

    class Pause(threading.Event):
        def wait(self, timeout=None):  # noqa: ARG002 - nothing is waited for
            return False

    monkeypatch.setattr(live.threading, "Event", Pause)
    with pytest.raises(Stopped):
        live.follow(State(), Feed(Away(), None), live.print_event)
    printed = capsys.readouterr()
    assert printed.out == "2026-01-01T00:00:00  job_done    dedup  (failed)\n"
    assert printed.err == f"gone; waiting for the server\n{live.RESET}\n"
    assert asked == [None, "1.1.0", "1.1.0", "1.1.0", "2.2.0"]


def test_incomplete_event_block_is_not_read():
    lines = b": beat\n\nretry: 5\nid: a\n\nevent: x\nid: b\ndata: 1\ndata:2\r\n\r\nid: c\ndata: cut".splitlines(
        keepends=True
    )
    assert list(read_blocks(lines)) == [Block("", "a", 5), Block("1\n2", "b")]
