import json
import os
import subprocess
import sys
import threading

import pytest

from pipeline.kernel.errors import ServerUnreachable
from pipeline.write import revise
from tests.fakes.command_line import remember, run, serve_app
from web.cli.render import print_memory
from web.cli.state import State
from web.features.changes import commands as live
from web.features.changes.commands import MemoryFeed as Feed
from web.http.client import Client


@pytest.fixture
def feed(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        with Client(f"http://127.0.0.1:{port}", container.token) as client:
            yield Feed(client)


def contents(memories):
    return [memory["content"] for memory in memories]


def test_feed_shows_new_memories_once_oldest_first(feed):
    assert feed.read() == []
    for number in range(3):
        remember(f"number {number}")
    assert contents(feed.read()) == ["number 0", "number 1", "number 2"]
    assert feed.read() == []
    remember("number 3")
    assert contents(feed.read()) == ["number 3"]


def test_an_archived_memory_does_not_bring_the_older_ones_back(feed, container):
    memories = [remember(f"number {number}") for number in range(3)]
    feed.read()
    revise.archive(container.databases.get("default"), memories[-1])
    assert feed.read() == []
    remember("number 3")
    assert contents(feed.read()) == ["number 3"]


def test_many_at_once_are_shown_over_several_pages(feed, client):
    feed.read()
    client.post("/v1/memories/batch", {"items": [{"content": f"number {n}"} for n in range(120)]})
    assert contents(feed.read()) == [f"number {n}" for n in range(120)]


def test_the_newest_are_shown_first(feed, monkeypatch):
    monkeypatch.setattr("web.features.changes.commands.follow", lambda *_: None)
    for number in range(3):
        remember(f"number {number}")
    lines = run("list", "--follow", "-n", "2").stdout.splitlines()
    assert [line.strip() for line in lines[1::2]] == ["number 1", "number 2"]
    told = [json.loads(line)["content"] for line in run("list", "--follow", "--json").stdout.splitlines()]
    assert told == ["number 0", "number 1", "number 2"]
    assert run("list", "--follow", "-n", "0").stdout == ""


def test_it_follows_and_outlives_a_restart(feed, monkeypatch, capsys):
    looks = [[{"content": "first"}], ServerUnreachable("gone"), ServerUnreachable("gone"), [{"content": "second"}]]

    def read(self):
        found = looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    class Pause(threading.Event):
        def wait(self, timeout):
            assert timeout == live.RETRY_S
            return not looks

    monkeypatch.setattr(Feed, "read", read)
    monkeypatch.setattr(live.threading, "Event", Pause)
    live.follow(State(json=True), feed, print_memory)
    told = capsys.readouterr()
    assert contents(map(json.loads, told.out.splitlines())) == ["first", "second"]
    assert told.err == "gone; waiting for the server\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_taught(shell):
    script = run("config", "completion", shell).stdout
    assert f"_REVERIE_COMPLETE={shell}_complete" in script
    assert json.loads(run("config", "completion", shell, "--json").stdout)["shell"] == shell


def test_no_other_shell_is_known():
    run("config", "completion", "cmd", code=2)


def test_commands_and_choices_are_completed():
    def completed(words, number):
        answer = subprocess.run(
            [sys.executable, "-c", "from web.cli import main; main()"],
            env={**os.environ, "_REVERIE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)},
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.partition(",")[2] for line in answer.stdout.splitlines()]

    assert completed("reverie das", 1) == ["dashboard"]
    assert completed("reverie review dup", 2) == ["duplicates"]
    assert completed("reverie goals list --status do", 4) == ["done"]


def test_a_search_in_a_workspace_that_does_not_exist_is_an_error(feed):
    remember("The port is 8123")
    # With personal memories, the server answers from these alone.
    run("remember", "-w", "me", "I drink tea")
    run("recall", "port", "-w", "wrong", "--json", code=1)
    refused = run("-w", "wrong", "recall", "port", code=1).stderr
    assert "wrong" in refused
    assert "default" in refused
    assert "port" in run("recall", "port").stdout
