"""Check docs/how-to/use-a-team-server.md against the real agent programs."""

import subprocess

import pytest

from pipeline.features.workspaces.identify import identify
from tests.hosts.conftest import BIN, DEADLINE_S, HOSTS, list_complaints
from tests.hosts.model_server import OURS, Call, Say
from tests.support.stack import Client, free_port, wait_until

pytestmark = pytest.mark.timeout(600)

WITH_HOOKS = ("claude-code", "codex", "gemini")
FACT = {"content": "The gateway of staging listens on port 8443"}
QUESTION = "Which port does the gateway of staging listen on?"


class TeamServer:
    """A stack of another home, as it would run on another machine, with what it knows of the machine's project."""

    def __init__(self, machine, folder):
        self.home, self.port, self._machine = folder / "home", free_port(), machine
        self.home.mkdir()
        (self.home / "models").symlink_to((machine.reverie_home / "models").resolve(), target_is_directory=True)
        # What is tried here is whom the hosts ask; a busy machine must not make the answer late.
        (self.home / "config.toml").write_text("hook_budget_ms = 2000\nrecall_budget_ms = 2000\n")
        self.reverie("up", "--daemon")
        self.client = Client(self.port, self.token.read_text().strip(), identify(machine.project).id)

    @property
    def token(self):
        return self.home / "token"

    def reverie(self, *words):
        environment = self._machine.environment | {"REVERIE_HOME": str(self.home), "REVERIE_PORT": str(self.port)}
        subprocess.run([str(BIN / "reverie"), *words], env=environment, cwd="/", check=True, timeout=DEADLINE_S)

    def remember(self, memory):
        assert self.client.call("POST", "/v1/memories", memory).status == 201
        wait_until("digested", lambda: not any(self.client.call("GET", "/v1/queue").body["pending"].values()), 120)


@pytest.fixture
def server(machine, tmp_path):
    running = TeamServer(machine, tmp_path)
    yield running
    running.client.close()
    running.reverie("down")


@pytest.mark.parametrize("name", HOSTS)
def test_tools_and_hooks_ask_the_server_and_nothing_runs_here(machine, server, name):
    server.remember(FACT)
    url = f"http://127.0.0.1:{server.port}"
    machine.install(name, "--server", url, "--token-file", str(server.token))
    machine.model.expect(Say())
    machine.ask(QUESTION)
    first = machine.model.requests[0]
    if name in WITH_HOOKS:
        assert "port 8443" in first.text
    [recall] = [tool for tool in first.tools if tool.endswith("recall") and OURS in tool]
    machine.model.expect(Call(recall, {"query": "gateway of staging"}), Say())
    machine.ask("Look it up")
    assert "port 8443" in machine.model.requests[-1].text
    # Meanwhile the server may have closed the connection that rested.
    server.client.close()
    runs = server.client.call("GET", "/v1/hook-runs").body["items"]
    assert "mcp:recall" in [one["event"] for one in runs]
    assert not machine.answers()
    assert not (machine.reverie_home / "token").exists()


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_revoked_token_or_lost_server_leaves_hosts_silent_without_a_token(machine, server, name):
    server.remember(FACT)
    token = server.token.read_text().strip()
    machine.install(name, "--server", f"http://127.0.0.1:{server.port}", "--token-file", str(server.token))
    for end in (("token", "--renew", "--yes"), ("down",)):
        server.reverie(*end)
        machine.model.expect(Say())
        shown = machine.ask(QUESTION)
        assert list_complaints(shown) == []
        assert "port 8443" not in machine.model.requests[0].text
        assert token not in shown + machine.model.requests[0].text
    files = [file for file in machine.home.rglob("*") if file.is_file() and token.encode() in file.read_bytes()]
    assert files == [machine.reverie_home / "servers" / "127.0.0.1"]
    assert not machine.answers()
