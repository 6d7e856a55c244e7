"""Hosts of a machine without a memory of its own, set up for a team's server: as a user runs it, to real requests."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import pytest
import urllib3
from click.testing import CliRunner
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from pipeline.features.team.servers import REST_S
from pipeline.features.workspaces.identify import identify
from tests.fakes.in_process import fast_settings
from tests.support.served import serve_home
from tests.support.stack import free_port, wait_until
from web.cli import cli
from web.hosts.environment import HOST_VARIABLES

PARCELS = "Parcels over thirty kilos leave from the depot in Graz"
QUESTION = "Where do parcels over thirty kilos leave from?"


class Team:
    """A team's server, and a machine of somebody in it, with a clone of its project."""

    def __init__(self, folder, settings, port):
        self.url = f"http://127.0.0.1:{port}"
        self.settings = settings
        self.home, self.project = folder / "ann", folder / "shop"
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.home.mkdir()
        self.workspace = identify(self.project, explicit=None, environment=None).id
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "PYTHONPATH": str(Path.cwd()),
            # Nothing of this machine's own may be asked, nor started.
            "REVERIE_PORT": str(free_port()),
        }

    @property
    def token(self):
        return self.settings.paths.token()

    @property
    def servers(self):
        return self.home / ".reverie" / "servers"

    def call(self, method, path, body=None, workspace=None):
        headers = {"Authorization": f"Bearer {self.token}", "X-Reverie-Workspace": workspace or self.workspace}
        answer = urllib3.request(method, f"{self.url}{path}", json=body, headers=headers, retries=False)
        assert answer.status < 300, answer.data
        return answer.json()

    def run(self, *words, said=None):
        return subprocess.run(
            words,
            cwd=self.project,
            env=self.environment,
            input=said,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def setup(self, *words, said=None):
        """Run the command in this process."""
        variables = dict.fromkeys(HOST_VARIABLES) | self.environment
        with contextlib.chdir(self.project):
            return CliRunner().invoke(cli, ["setup", "--server", self.url, *words], input=said, env=variables)

    def hook(self, **event):
        event = {"session_id": "s1", "cwd": str(self.project)} | event
        done = self.run("/bin/sh", "-c", self.commands()["UserPromptSubmit"], said=json.dumps(event))
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def commands(self):
        hooks = json.loads((self.home / ".claude" / "settings.json").read_text())["hooks"]
        return {event: groups[0]["hooks"][0]["command"] for event, groups in hooks.items()}


@pytest.fixture
def team(tmp_path):
    settings = fast_settings(tmp_path / "server", hook_budget_ms=2000)
    with serve_home(settings) as port:
        yield Team(tmp_path, settings, port)


@pytest.fixture
def ready(team):
    done = team.setup("claude-code", "codex", "--yes", said=f"{team.token}\n")
    assert done.exit_code == 0, done.stderr
    return team


def test_server_token_file_is_private_and_token_is_not_shown(ready):
    [kept] = ready.servers.iterdir()
    assert kept.name == "127.0.0.1"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for file in ready.home.rglob("*"):
        if file.is_file() and file != kept:
            assert ready.token not in file.read_text(), file
    again = ready.setup("claude-code", "codex", "--yes", "--json")
    assert {one["action"] for one in json.loads(again.stdout)["files"]} == {"none"}
    assert ready.token not in again.stdout + again.stderr


def test_setup_dry_run_writes_nothing_and_contacts_no_server(team):
    done = team.setup("claude-code", "--dry-run", "--diff")
    assert done.exit_code == 0, done.stderr
    assert '"--server"' in done.stdout
    assert list(team.home.rglob("*")) == []


def test_a_token_that_the_server_does_not_take_sets_nothing_up(team):
    done = team.setup("claude-code", "--yes", said="wrong\n")
    assert done.exit_code == 1
    assert "does not accept your token" in done.stderr
    assert not (team.home / ".claude").exists()
    assert not team.servers.exists()


def test_removed_it_leaves_nothing(ready):
    done = ready.setup("--remove", "--yes")
    assert done.exit_code == 0, done.stderr
    left = [file for file in ready.home.rglob("*") if file.is_file()]
    assert left == []
    assert ready.setup("--remove", "--yes").exit_code == 0


def test_a_project_is_set_up_with_its_workspace(ready):
    done = ready.setup("claude-code", "--project", "--yes")
    assert done.exit_code == 0, done.stderr
    written = json.loads((ready.project / ".mcp.json").read_text())["mcpServers"]["reverie"]
    assert written["headers"]["X-Reverie-Workspace"] == ready.workspace
    assert ready.token not in (ready.project / ".mcp.json").read_text()


def test_hook_injects_memories_of_the_servers_project_workspace(ready):
    ready.call("POST", "/v1/memories", {"content": PARCELS})
    told = ready.hook(hook_event_name="UserPromptSubmit", prompt=QUESTION)
    assert PARCELS in json.loads(told)["hookSpecificOutput"]["additionalContext"]
    assert ready.hook(hook_event_name="UserPromptSubmit", prompt="thanks") == ""


def test_tool_use_is_recorded_in_the_servers_journal(ready):
    ready.hook(hook_event_name="PostToolUse", tool_name="Bash", tool_input={"command": "make deploy"}, tool_response={})
    # What an agent did is noted beside the traffic.
    [row] = wait_until("what was done is noted", lambda: ready.call("GET", "/v1/journal")["items"])
    assert row["target"] == "make deploy"


def test_transcript_is_read_locally_and_paths_are_not_sent_to_the_server(ready):
    transcript = ready.home / ".claude" / "projects" / "shop" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    said = [("user", "an earlier question"), ("assistant", "an answer"), ("user", QUESTION), ("assistant", PARCELS)]
    lines = [json.dumps({"type": role, "message": {"role": role, "content": text}}) for role, text in said]
    transcript.write_text("\n".join(lines) + "\n")
    ready.call("POST", "/v1/memories", {"content": "Something"})
    ready.hook(hook_event_name="Stop", transcript_path=str(transcript))

    def list_said():
        return ready.call("GET", "/v1/sessions")["items"] and ready.call("GET", "/v1/sessions/s1")["said"]

    assert sorted((one["role"], one["content"]) for one in wait_until("the turn is noted", list_said)) == [
        ("assistant", PARCELS),
        ("user", QUESTION),
    ]


def test_an_answer_from_another_folder_belongs_to_the_persons_project(ready, tmp_path):
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    transcript = ready.home / ".claude" / "projects" / "shop" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    said = [("user", QUESTION, ready.project), ("assistant", PARCELS, other)]
    lines = [
        {"type": role, "uuid": text, "cwd": str(cwd), "message": {"role": role, "content": text}}
        for role, text, cwd in said
    ]
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    ready.call("POST", "/v1/memories", {"content": "Something"})
    ready.hook(hook_event_name="Stop", transcript_path=str(transcript))

    def list_said():
        return ready.call("GET", "/v1/sessions")["items"] and ready.call("GET", "/v1/sessions/s1")["said"]

    # Only the agent changed its folder.
    assert {one["content"] for one in wait_until("the turn is noted", list_said)} == {QUESTION, PARCELS}


def test_unreachable_server_or_missing_token_leaves_hooks_silent(ready):
    ready.settings.paths.renew_token()
    assert ready.hook(hook_event_name="UserPromptSubmit", prompt=QUESTION) == ""
    [kept] = ready.servers.iterdir()
    kept.write_text(f'url = "http://127.0.0.1:{free_port()}"\ntoken = "x"\n')
    assert ready.hook(hook_event_name="UserPromptSubmit", prompt=QUESTION) == ""
    kept.unlink()
    assert ready.hook(hook_event_name="UserPromptSubmit", prompt=QUESTION) == ""
    # Nothing of this machine's own was started in its place.
    assert not (ready.home / ".reverie" / "token").exists()


class Hanging:
    """A server that takes connections and never answers, or never to the end; it counts who came."""

    def __init__(self, drops):
        self._drops = drops
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.asked = 0

    def __enter__(self):
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                taken, _ = self._listening.accept()
                self.asked += 1
                threading.Thread(target=self._hold, args=(taken,), daemon=True).start()

    def _hold(self, taken):
        taken.settimeout(0.2)
        # Until who asked gives up.
        with contextlib.closing(taken), contextlib.suppress(ConnectionError):
            while True:
                with contextlib.suppress(TimeoutError):
                    if taken.recv(1 << 16) == b"":
                        return
                taken.sendall(self._drops)


@pytest.fixture(params=[b"", b"HTTP/1.1 200 OK\r\n"], ids=["silent", "without end"])
def hanging(ready, request):
    [kept] = ready.servers.iterdir()
    with Hanging(request.param) as server:
        kept.write_text(f'url = "http://127.0.0.1:{server.port}"\ntoken = "x"\n')
        yield server


def rest_file(team):
    return team.servers / ".127.0.0.1-rests"


def test_a_server_that_hangs_is_not_waited_for_at_every_step(ready, hanging):
    for _ in range(3):
        assert ready.hook(hook_event_name="UserPromptSubmit", prompt=QUESTION) == ""
    assert hanging.asked == 1
    long_ago = time.time() - REST_S - 1
    os.utime(next(ready.servers.glob("[!.]*")), (long_ago - 1, long_ago - 1))
    os.utime(rest_file(ready), (long_ago, long_ago))
    ready.hook(hook_event_name="UserPromptSubmit", prompt=QUESTION)
    assert hanging.asked == 2


def test_a_server_that_is_another_since_is_asked_at_once(ready):
    ready.call("POST", "/v1/memories", {"content": PARCELS})
    [kept] = ready.servers.iterdir()
    rest_file(ready).touch()
    assert ready.hook(hook_event_name="UserPromptSubmit", prompt=QUESTION) == ""
    kept.write_text(kept.read_text())
    assert PARCELS in ready.hook(hook_event_name="UserPromptSubmit", prompt=QUESTION)
    rest_file(ready).touch()
    assert ready.setup("--remove", "--yes").exit_code == 0
    assert not rest_file(ready).exists()


def test_the_helper_of_an_earlier_setup_gives_the_headers_of_the_project(ready):
    done = ready.run("reverie-hook", "headers", "--server", "127.0.0.1")
    headers = {"Authorization": f"Bearer {ready.token}", "X-Reverie-Workspace": ready.workspace}
    assert json.loads(done.stdout) == headers


@pytest.mark.parametrize("folder", [".claude", ".claude/plugins/cache", "moved", "moved/projects", "link"])
def test_in_the_folder_of_the_host_the_helper_gives_no_headers(ready, folder):
    for name in (".claude", "moved"):
        (ready.home / name).mkdir(exist_ok=True)
    (ready.home / "link").symlink_to("moved")
    ready.project = ready.home / folder
    ready.project.mkdir(parents=True, exist_ok=True)
    if not folder.startswith(".claude"):
        ready.environment["CLAUDE_CONFIG_DIR"] = str(ready.home / ("link" if folder == "moved" else "moved"))
    done = ready.run("reverie-hook", "headers", "--server", "127.0.0.1")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_relay_asks_the_server_for_the_folders_project(ready):
    ready.call("POST", "/v1/memories", {"content": PARCELS})

    async def host():
        relay = StdioServerParameters(
            command="reverie", args=["mcp", "--server", "127.0.0.1"], env=ready.environment, cwd=ready.project
        )
        async with Client(stdio_client(relay), mode="legacy") as client:
            return await client.call_tool("recall", {"query": "parcels"})

    assert PARCELS in anyio.run(host).content[0].text
    assert not (ready.home / ".reverie" / "token").exists()


def test_codex_notification_is_sent_to_the_server(ready):
    notice = {"type": "agent-turn-complete", "thread-id": "t1", "cwd": str(ready.project)}
    ready.call("POST", "/v1/memories", {"content": "Something"})
    done = ready.run("reverie-codex-notify", "--server", "127.0.0.1", json.dumps(notice))
    assert (done.returncode, done.stderr) == (0, "")
    events = ready.call("GET", "/v1/hook-runs")["items"]
    assert [(one["event"], one["host"], one["workspace"]) for one in events] == [("Stop", "codex", ready.workspace)]
    gone = ready.run("reverie-codex-notify", "--server", "nobody", json.dumps(notice))
    assert (gone.returncode, gone.stderr) == (
        0,
        "not recorded: There is no team nobody. `reverie team list` shows the teams.\n",
    )


def test_declined_setup_stores_no_token(team):
    done = team.setup("claude-code", said="n\n")
    assert done.exit_code == 0
    assert done.stderr.endswith("nothing was written\n")
    assert [file for file in team.home.rglob("*") if file.is_file()] == []


def test_invalid_server_address_is_rejected_before_the_token_prompt(team):
    done = team.run("reverie", "setup", "claude-code", "--yes", "--server", "memory.acme.example")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert "url: must be https://HOST" in done.stderr
