"""Commands and tools while no server answers: the user and the model read that the memory waits."""

import json

import pytest

from config.settings import Settings
from pipeline.errors import AnswerLost, ServerUnreachable
from tests.support.stack import free_port
from web.cli import cli, state as state_module
from web.client import Client
from web.mcp.bridge import Bridge
from web.spool.files import describe_spool, list_files, read_request
from web.spool.writes import Spooled


class Dead:
    def is_running(self):
        return False


@pytest.fixture
def bridge(tmp_path):
    bridge = Bridge(Settings(home=tmp_path, port=free_port()), lambda **_: "default", Dead, deadline_s=0)
    yield bridge
    bridge.close()


def read_only_request(home):
    [file] = list_files(str(home))
    return read_request(str(home), file)


def test_a_tool_that_stores_waits_in_the_spool(bridge, tmp_path):
    with pytest.raises(Spooled, match="Do not repeat it"):
        bridge.call("POST", "/v1/memories/batch", {"items": [{"content": "a"}]})
    waiting = read_only_request(tmp_path)
    assert waiting.headers == {"X-Reverie-Workspace": "default", "X-Reverie-Caller": "mcp"}
    assert waiting.body["items"][0]["id"]


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/recall"), ("DELETE", "/v1/memories/x"), ("GET", "/v1/stats")]
)
def test_other_tools_report_that_no_server_answers(bridge, tmp_path, method, path):
    with pytest.raises(ServerUnreachable):
        bridge.call(method, path, {"query": "x"})
    assert describe_spool(str(tmp_path)).files == 0


def test_a_lost_answer_is_spooled_only_if_the_write_has_ids(bridge, tmp_path, monkeypatch):
    def lose(*_):
        raise AnswerLost("lost")

    client = Client("http://127.0.0.1:1")
    monkeypatch.setattr(client, "call", lose)
    monkeypatch.setattr(bridge, "_ready", lambda: client)
    with pytest.raises(AnswerLost):
        bridge.call("POST", "/v1/goals", {"title": "a"})
    assert describe_spool(str(tmp_path)).files == 0
    with pytest.raises(Spooled):
        bridge.call("POST", "/v1/memories/batch", {"items": [{"content": "a"}]})
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
