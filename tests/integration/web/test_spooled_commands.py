"""Commands and tools while no server answers: the user and the model read that the memory waits."""

import json

import pytest

from config.settings import Settings
from pipeline.kernel.errors import AnswerLost
from tests.support.played_host import bare, converse, hello
from tests.support.stack import free_port
from web.cli import cli, state as state_module
from web.hooks.spool.files import describe_spool, list_files, read_request
from web.mcp.connection import Connection, MessageClient
from web.stack.stack import Stack


class Losing(MessageClient):
    """A client whose answers are all lost."""

    def post_message(self, *_):
        raise AnswerLost("lost")


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Call a tool over a connection without a server; return the answer's text, and whether it is an error."""

    # No process has this number.
    monkeypatch.setattr("web.stack.stack.start_detached", lambda *_: 1 << 30)

    def run(name, arguments, client_type=MessageClient, **options):
        settings = Settings(home=tmp_path, port=free_port())
        client = client_type.from_settings(settings, "default")
        connection = Connection(client, lambda **_: "default", Stack(settings), deadline_s=0, **options)
        call = bare("tools/call", 1, params={"name": name, "arguments": arguments})
        result = converse([hello(), call], connection)[-1]["result"]
        return result["content"][0]["text"], result["isError"]

    return run


def read_only_request(home):
    [file] = list_files(str(home))
    return read_request(str(home), file)


ITEMS = {"items": [{"content": "a"}]}
WRITES = [
    ("remember_batch", ITEMS, "/v1/memories/batch"),
    ("set_fact", {"subject": "staging", "attribute": "port", "value": "5433"}, "/v1/facts/staging/port"),
    ("goals", {"title": "a"}, "/v1/goals"),
]


@pytest.mark.parametrize(("name", "arguments", "path"), WRITES)
def test_a_tool_that_stores_waits_in_the_spool(ask, tmp_path, name, arguments, path):
    text, is_error = ask(name, arguments)
    assert not is_error
    assert "Do not repeat it" in text
    waiting = read_only_request(tmp_path)
    assert waiting.path == path
    assert waiting.headers == {"X-Reverie-Workspace": "default", "X-Reverie-Caller": "mcp"}


def test_a_memory_waits_with_its_id_and_the_program_that_wrote_it(ask, tmp_path):
    ask("remember_batch", ITEMS)
    [item] = read_only_request(tmp_path).body["items"]
    assert item["id"]
    assert item["metadata"] == {"agent": "probe"}
    assert item["source"] == "agent"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall", {"query": "x"}),
        ("forget", {"id": "01M7YZWD2TYS3P4A1GQPPBMFZK"}),
        ("overview", {}),
        ("set_fact", {"subject": "staging", "attribute": "port", "value": None}),
        ("remember_batch", ITEMS | {"to": "acme"}),
    ],
)
def test_other_tools_report_that_no_server_answers(ask, tmp_path, name, arguments):
    text, is_error = ask(name, arguments)
    assert is_error
    assert "Try again in a moment" in text
    assert describe_spool(str(tmp_path)).files == 0


def test_a_read_only_session_spools_nothing(ask, tmp_path):
    assert ask("remember_batch", ITEMS, read_only=True)[1]
    assert describe_spool(str(tmp_path)).files == 0


def test_a_lost_answer_is_spooled_only_if_the_write_has_ids(ask, tmp_path):
    text, is_error = ask("goals", {"title": "a"}, Losing)
    assert is_error
    assert "check before you repeat it" in text
    assert describe_spool(str(tmp_path)).files == 0
    assert not ask("remember_batch", ITEMS, Losing)[1]
    assert describe_spool(str(tmp_path)).files == 1


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command without a server, and without starting one."""
    from click.testing import CliRunner

    monkeypatch.setattr(state_module.State, "_revive", lambda _: False)
    for name, value in {"HOME": str(tmp_path / "data"), "PORT": str(free_port())}.items():
        monkeypatch.setenv(f"REVERIE_{name}", value)
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(cli, words)


def test_remember_waits_in_the_spool_and_status_shows_it(run, tmp_path):
    told = run("remember", "Billing listens on port 8123")
    assert (told.exit_code, told.output.partition(" ")[0]) == (0, "spooled")
    assert "Not stored yet" in told.output
    assert read_only_request(tmp_path / "data").body["content"] == "Billing listens on port 8123"
    answer = json.loads(run("remember", "--json", "Staging listens on port 9000").output)
    assert answer["outcome"] == "spooled"
    assert "2 requests" in run("status").output
    assert json.loads(run("status", "--json").output)["spool"]["waiting"] == 2


def test_remember_fails_as_before_where_nothing_may_reach_the_disk(run, tmp_path, monkeypatch):
    monkeypatch.setenv("REVERIE_INCOGNITO", "true")
    told = run("remember", "Billing listens on port 8123")
    assert told.exit_code != 0
    assert describe_spool(str(tmp_path / "data")).files == 0
