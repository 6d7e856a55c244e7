"""`reverie setup` on a machine with past sessions: one summary, one question, the import, and its first answers."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.claude_sessions import SHOP_SESSIONS, write_sessions
from tests.support.encoders import link_encoders
from tests.support.stack import free_port, wait_until

pytestmark = pytest.mark.timeout(600)

REVERIE = str(Path(sys.executable).parent / "reverie")
HOOK = str(Path(sys.executable).parent / "reverie-hook")
AGENTS = (".codex", ".cursor", ".gemini", ".codeium/windsurf", ".config/opencode")


class Machine:
    """A user's home with a project and the sessions of an agent; more agents are installed."""

    def __init__(self, root: Path, models: Path) -> None:
        self.home, self.project, self.data = root / "home", root / "home" / "shop", root / "home" / ".reverie"
        for folder in (self.project, *(self.home / agent for agent in AGENTS)):
            folder.mkdir(parents=True)
        link_encoders(self.home, models)
        write_sessions(self.home, self.project)
        subprocess.run([str(shutil.which("git")), "init", "--quiet", str(self.project)], check=True)
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.defpath,
            "REVERIE_PORT": str(free_port()),
            "REVERIE_WORKER_PROCESSES": "1",
            "HF_HUB_OFFLINE": "1",
        }

    def run(self, *command: str, answer: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a command in the project."""
        return subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            input=answer,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def reverie(self, *arguments: str, answer: str = "") -> str:
        """Return the output of a command that succeeds."""
        done = self.run(REVERIE, *arguments, answer=answer)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start_session(self, session_id: str) -> str:
        """Return what a new session of Claude Code is shown."""
        event = {"hook_event_name": "SessionStart", "source": "startup", "session_id": session_id}
        return self.run(HOOK, "claude-code", answer=json.dumps(event | {"cwd": str(self.project)})).stdout


@pytest.fixture
def machine(tmp_path, models):
    machine = Machine(tmp_path, models)
    yield machine
    machine.run(REVERIE, "down")


def find_row(output, agent):
    [line] = [line for line in output.splitlines() if line.startswith(agent)]
    return line.split()


def test_without_consent_nothing_is_written_or_imported(machine):
    done = machine.run(REVERIE, "setup", answer="n\n")
    assert done.returncode == 0
    assert "Write these changes and import 3 sessions? [y/N]" in done.stderr
    assert find_row(done.stdout, "Claude Code")[-1] == "(new)"
    assert find_row(done.stdout, "Past sessions:")[2:5] == ["Claude", "Code", "3"]
    assert [path.name for path in machine.data.iterdir()] == ["models"]
    assert not (machine.home / ".claude" / "settings.json").exists()


def test_the_import_can_be_left_out(machine):
    done = machine.run(REVERIE, "setup", "--no-import", answer="y\n")
    assert "Write these changes? [y/N]" in done.stderr
    assert (machine.home / ".claude" / "settings.json").exists()
    assert f"Server: http://127.0.0.1:{machine.environment['REVERIE_PORT']}\n" in done.stdout
    assert json.loads(machine.reverie("status", "--json"))["sessions"]["text"] is None
    told = json.loads(machine.reverie("setup", "--dry-run", "--json"))
    assert [(sessions["agent"], sessions["files"]) for sessions in told["sessions"]] == [("claude-code", 3)]
    assert json.loads(machine.reverie("setup", "codex", "--dry-run", "--json"))["sessions"] == []


def test_a_setup_ends_with_questions_that_past_sessions_answer(machine):
    output = machine.reverie("setup", "--yes")
    commands = [shlex.split(line) for line in output.splitlines() if line.startswith("  reverie ")]
    assert 2 <= len(commands) <= 3
    decided = " ".join(text for _, entries in SHOP_SESSIONS.values() for _, text in entries)
    assert commands[-1] == ["reverie", "how", "tests"]
    assert "make test" in machine.reverie("how", "tests")
    assert {command for _, command, *_ in commands[:-1]} == {"recall"}
    for _, *arguments in commands[:-1]:
        answer = json.loads(machine.reverie(*arguments, "--json"))
        assert answer["sessions"][0]["session_id"] in SHOP_SESSIONS
        assert all(hit["content"] in decided for hit in answer["results"][:1])
    imported = "sessions imported: 3 (2026-03-02 to 2026-03-09)"
    wait_until("imported", lambda: imported in machine.reverie("status"))
    assert json.loads(machine.reverie("status", "--json"))["sessions"]["text"] == imported

    first = wait_until("a brief", lambda: machine.start_session("first"))
    for part in ("warehouse", "PostgreSQL", "“make test”", "“alembic upgrade head”", "jitter"):
        assert part in first
    assert "past sessions" not in machine.start_session("second")
