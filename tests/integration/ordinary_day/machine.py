"""The developer's machine: a data directory, folders of projects, a clock, and the ways to reach Reverie."""

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import tomlkit

from config.paths import PERSONAL_WORKSPACE
from tests.integration.ordinary_day.mcp_client import McpClient, ToolAnswer
from tests.integration.ordinary_day.steps import OUTSIDE
from tests.integration.ordinary_day.stored import MODELS, DataDirectory
from tests.support.clock import ShiftedClock
from tests.support.stack import HOST, free_port, wait_until

BIN = Path(sys.executable).parent
ZONE = "Europe/Berlin"
DEADLINE_S = 300
STARTS = 3
# As a terminal of today has it; narrower ones cut the memories that they print.
COLUMNS = "120"
# The files that steps name, by project.
FILES = {
    "slotbook": (
        *("gate/parser.py", "gate/views.py", "gate/edifact_codes.py", "tools/generate_codes.py"),
        *("manage.py", "pyproject.toml", "CHANGELOG.md"),
    ),
    "vitrine": ("package.json", "src/pages/horaires.tsx", "prisma/schema.prisma"),
    "riego": ("Cargo.toml", "src/pins.rs", "main.py"),
    OUTSIDE: (),
}
# Short waits between retries, and time limits that a busy machine keeps. All else is as it is installed.
SETTINGS = {
    "backoff_s": 0.2,
    "sweep_interval_s": 5,
    "recall_budget_ms": 5000,
    "hook_budget_ms": 2000,
}


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What a command printed, and its exit code."""

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer; `body` is its JSON, or its text where it is none."""

    status: int
    body: Any


class Machine:
    """A machine on which only Reverie and one developer work."""

    def __init__(self, folder: Path, models: Path, clock: ShiftedClock) -> None:
        self.folder = folder
        self.clock = clock
        self.data = DataDirectory(folder / "home" / ".reverie")
        self.port = free_port()
        self.data.root.mkdir(parents=True, mode=0o700)
        (self.data.root / MODELS).symlink_to(models, target_is_directory=True)
        self.hosts_folder = folder / "home" / ".claude"
        # Of a shell's variables a server in the background gets few; settings are in the file.
        (self.data.root / "config.toml").write_text(tomlkit.dumps(SETTINGS))
        self._programs = clock.make_environment(folder / "environment").parent
        # They start the Python beside them.
        for program in ("reverie", "reverie-hook"):
            shutil.copy(BIN / program, self._programs)
        values = {"HOME": str(self.data.root), "HOST": HOST, "PORT": str(self.port)}
        usual = {name: value for name, value in os.environ.items() if not name.startswith(("REVERIE_", "CLAUDE"))}
        self._environment = (
            usual
            | {f"REVERIE_{name}": value for name, value in values.items()}
            | {"HOME": str(folder / "home"), "CLAUDE_CONFIG_DIR": str(self.hosts_folder), "TZ": ZONE}
            | {"HF_HUB_OFFLINE": "1", "COLUMNS": COLUMNS, "PYTHONIOENCODING": "utf-8"}
        )
        self._mcp: dict[str, McpClient] = {}
        self._workspaces: dict[str, str] = {}
        self._last_event: tuple[str, str] | None = None
        self.is_up = False
        for project in FILES:
            self._make_project(project)

    def path(self, project: str) -> Path:
        """Return the folder of a project, or the one outside of any."""
        return self.folder / "work" / project

    def up(self) -> None:
        """Start the stack."""
        # On a busy machine it may take longer than the command waits.
        for _ in range(STARTS):
            answer = self.run(OUTSIDE, ["up", "--daemon"])
            if answer.code == 0:
                break
        assert answer.code == 0, answer
        self.wait_until_up()

    def wait_until_up(self) -> None:
        """Wait until the server answers and can search by meaning."""
        wait_until("the encoder is ready", lambda: self._health().get("encoder") == "ready", DEADLINE_S)
        self.is_up = True

    def run(self, project: str, words: Sequence[str]) -> CommandAnswer:
        """Run a command of `reverie` in a project's folder; a question is answered with yes."""
        process = subprocess.run(
            self._command("reverie", *words),
            cwd=self.path(project),
            env=self._environment,
            input="y\n" * 5,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=DEADLINE_S,
            check=False,
        )
        return CommandAnswer(process.returncode, f"{process.stdout}{process.stderr}")

    def send_hook(self, project: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """Send an event of Claude Code through the client of hooks; return what it prints."""
        process = subprocess.run(
            self._command("reverie-hook", "claude-code"),
            cwd=self.path(project),
            env=self._environment,
            input=json.dumps(event).encode(),
            capture_output=True,
            timeout=DEADLINE_S,
            check=True,
        )
        self._last_event = event["session_id"], event["hook_event_name"]
        return json.loads(process.stdout)["hookSpecificOutput"] if process.stdout else {}

    def call_tool(self, project: str, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call an MCP tool as the host of a project."""
        if project not in self._mcp:
            command = self._command("reverie", "mcp")
            log = self.folder / f"mcp-{project}.log"
            self._mcp[project] = McpClient(command, self.path(project), self._environment, log)
        return self._mcp[project].call(tool, arguments)

    def request(self, project: str, method: str, path: str, body: Any = None) -> HttpAnswer:
        """Send an HTTP request for the workspace of a project."""
        return self._send(method, path, body, self.workspace(project))

    def workspace(self, project: str) -> str:
        """Return the workspace that commands and hooks use in a project's folder; outside of any it is `default`."""
        if project not in self._workspaces:
            current = self.run(project, ["workspace", "current", "--json"])
            self._workspaces[project] = json.loads(current.text)["workspace"]
        return self._workspaces[project]

    def close(self) -> None:
        """End everything that runs on this machine."""
        for client in self._mcp.values():
            client.close()
        self.run(OUTSIDE, ["down"])
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("REVERIE_HOME") == str(self.data.root):
                    process.kill()

    def wait_for_notes(self) -> None:
        """Wait until the server has written what it noted of the events so far: an answer to a lesson is one more.

        Before there is a workspace, the run of the last event is awaited instead.
        """
        names = [name for name in self.data.list_workspaces() if name != PERSONAL_WORKSPACE]
        if names:
            answer = self._send("POST", "/v1/lessons/surfaces/none", {"followed": True}, names[0])
            assert answer.status == 404, answer
        elif self._last_event is not None:
            wait_until("the last event is noted", self._is_noted, DEADLINE_S)

    def list_hook_runs(self, limit: int) -> list[dict[str, Any]]:
        """List the last hook runs, the newest first."""
        return list(self._send("GET", f"/v1/hook-runs?limit={limit}", None, "default").body["items"])

    def read_hook_run(self, run_id: str) -> str:
        """Return the text that a hook run gave its agent."""
        return str(self._send("GET", f"/v1/hook-runs/{run_id}", None, "default").body["text"])

    def _is_noted(self) -> bool:
        return any((run["session_id"], run["event"]) == self._last_event for run in self.list_hook_runs(1))

    def _command(self, program: str, *words: str) -> list[str]:
        return [str(self._programs / program), *words]

    def _health(self) -> dict[str, Any]:
        try:
            return dict(self._send("GET", "/healthz", None, "default").body)
        except (OSError, http.client.HTTPException):
            return {}

    def _send(self, method: str, path: str, body: Any, workspace: str) -> HttpAnswer:
        token = self.data.root / "token"
        headers = {
            "Authorization": f"Bearer {token.read_text().strip() if token.exists() else ''}",
            "X-Reverie-Workspace": workspace,
            "Content-Type": "application/json",
        }
        connection = http.client.HTTPConnection(HOST, self.port, timeout=DEADLINE_S)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        try:
            return HttpAnswer(answer.status, json.loads(text) if text else None)
        except ValueError:
            return HttpAnswer(answer.status, text)

    def _make_project(self, project: str) -> None:
        folder = self.path(project)
        folder.mkdir(parents=True)
        for name in FILES[project]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("\n")
        if project != OUTSIDE:
            git = ["git", "-c", "user.name=Jule", "-c", "user.email=jule@example.org", "-C", str(folder)]
            for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
                subprocess.run([*git, *command], check=True, capture_output=True)
