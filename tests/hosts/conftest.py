"""Real hosts on a machine of their own: a scratch home, a project, a stand-in for the model, and only loopback."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from config.operating_system import kill_group
from pipeline.features.workspaces.identify import identify
from tests.hosts.model_server import ModelServer
from tests.hosts.terminal import Terminal
from tests.support.encoders import link_encoders
from tests.support.stack import Client, wait_until

PROGRAMS = os.environ.get("HOST_PROGRAMS", "")
BIN = Path(sys.executable).parent
DEADLINE_S = 120
PORT = 7077

_COMPLAINT = re.compile(r"hook.{0,40}(?:error|fail)|ECONN|Traceback", re.IGNORECASE)
# Hosts give the end of a session one second, in which a busy machine may not even start a program.
_CUT_SHORT = re.compile(r"SessionEnd hook .*cancelled|for (?:event )?SessionEnd\b|timed out after 1000ms")


def list_complaints(shown: str) -> list[str]:
    """List the lines in which a host complains of a hook to its user, in what it shows."""
    return [line for line in shown.splitlines() if _COMPLAINT.search(line) and not _CUT_SHORT.search(line)]


@dataclass(frozen=True)
class Host:
    """How a host is pointed at a model, and asked one thing without a person."""

    program: str
    configure: Callable[["Machine", str], dict[str, str]]
    ask: tuple[str, ...]
    # None if the host resumes a session only in a terminal.
    again: tuple[str, ...] | None


def _claude(_machine: "Machine", url: str) -> dict[str, str]:
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"}
    return quiet | {"ANTHROPIC_API_KEY": "sk-ant-made-up", "ANTHROPIC_BASE_URL": url}


def _codex(machine: "Machine", url: str) -> dict[str, str]:
    provider = f'name = "local"\nbase_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
    machine.write(
        ".codex/config.toml",
        f'model = "local"\nmodel_provider = "local"\n\n[model_providers.local]\n{provider}\n'
        f'[projects."{machine.project}"]\ntrust_level = "trusted"\n',
    )
    return {"FAKE_KEY": "made-up"}


def _gemini(machine: "Machine", url: str) -> dict[str, str]:
    machine.write(".gemini/settings.json", json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    return {"GEMINI_API_KEY": "made-up", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}


def _opencode(machine: "Machine", url: str, name: str = "opencode") -> dict[str, str]:
    options = {"baseURL": f"{url}/v1", "apiKey": "made-up"}
    local = {"npm": "@ai-sdk/openai-compatible", "name": "local", "options": options, "models": {"m": {"name": "m"}}}
    machine.write(f".config/{name}/{name}.json", json.dumps({"provider": {"local": local}, "model": "local/m"}))
    # With a plugin, it waits until npm has given up fetching the types of plugins.
    return {"npm_config_fetch_retries": "0"}


def _kilo(machine: "Machine", url: str) -> dict[str, str]:
    return _opencode(machine, url, "kilo")


def _pi(machine: "Machine", url: str) -> dict[str, str]:
    local = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "made-up", "models": [{"id": "m"}]}
    machine.write(".pi/agent/models.json", json.dumps({"providers": {"local": local}}))
    return {"PI_OFFLINE": "1"}


def _qwen(machine: "Machine", url: str) -> dict[str, str]:
    machine.write(".qwen/settings.json", json.dumps({"security": {"auth": {"selectedType": "openai"}}}))
    return {"OPENAI_API_KEY": "made-up", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "local"}


def _copilot(_machine: "Machine", url: str) -> dict[str, str]:
    provider = {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_API_KEY": "made-up"}
    return provider | {"COPILOT_MODEL": "local", "COPILOT_OFFLINE": "true"}


def _cline(machine: "Machine", url: str) -> dict[str, str]:
    words = ("auth", "-p", "openai-compatible", "-k", "made-up", "-m", "local", "-b", f"{url}/v1")
    subprocess.run(["cline", *words], env=machine.environment, cwd=machine.project, check=True, timeout=DEADLINE_S)
    return {}


# So it tells of its hooks too.
CLAUDE = ("-p", "--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose")
CODEX = ("exec", "--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox")
HOSTS = {
    "claude-code": Host("claude", _claude, CLAUDE, ("-c",)),
    "codex": Host("codex", _codex, CODEX, ("resume", "--last")),
    "gemini": Host("gemini", _gemini, ("--yolo", "-p"), ("--resume", "latest")),
    "opencode": Host("opencode", _opencode, ("run",), ("-c",)),
    "kilo": Host("kilo", _kilo, ("run",), ("-c",)),
    "qwen-code": Host("qwen", _qwen, ("--yolo", "-p"), ("--continue",)),
    "copilot": Host("copilot", _copilot, ("--allow-all-tools", "-p"), ("--continue",)),
    "pi": Host("pi", _pi, ("--provider", "local", "--model", "m", "-p"), ("-c",)),
    "cline": Host("cline", _cline, (), None),
}


class Machine:
    """A home of nobody, with a project in it, on which one host is set up."""

    def __init__(self, root: Path, models: Path, model: ModelServer) -> None:
        self.home, self.project, self.model = root, root / "project", model
        self.project.mkdir(parents=True)
        link_encoders(root, models)
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        self.environment = {
            "HOME": str(root),
            "PATH": f"{BIN}:{PROGRAMS}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "HF_HUB_OFFLINE": "1",
        }
        self.name = ""
        self._started: list[subprocess.Popen[str]] = []

    @property
    def reverie_home(self) -> Path:
        """Return where Reverie keeps its files."""
        return self.home / ".reverie"

    def write(self, name: str, text: str) -> None:
        """Write a file of the home."""
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def reverie(self, *words: str, ok: bool = True) -> str:
        """Run a command of Reverie in the project and return what it says."""
        done = subprocess.run(
            [str(BIN / "reverie"), *words],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert (done.returncode == 0) == ok, done.stdout + done.stderr
        return done.stdout

    def install(self, name: str, *options: str) -> None:
        """Point a host at the stand-in and set it up as its user would."""
        program = shutil.which(HOSTS[name].program, path=self.environment["PATH"])
        if program is None:
            pytest.skip(f"{HOSTS[name].program} is not installed: npm has it")
        self.name = name
        self.environment |= HOSTS[name].configure(self, self.model.url)
        self.reverie("setup", name, "--yes", *options)
        # Setup has started the stack: here a test starts it, or the first hook does.
        self.reverie("down")

    def start_host(self, prompt: str, *, again: bool = False) -> "subprocess.Popen[str]":
        """Start the host on a prompt; `again` goes on with its last session."""
        host = HOSTS[self.name]
        extra = host.again or () if again else ()
        # Codex has a command for it, opencode an option of a command, and the others an option.
        words = (*host.ask, *extra) if host.program in ("codex", "opencode", "kilo") else (*extra, *host.ask)
        process = subprocess.Popen(
            [host.program, *words, prompt],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def ask(self, prompt: str, *, again: bool = False) -> str:
        """Have the host answer a prompt and return what its user sees."""
        if again and HOSTS[self.name].again is None:
            self._ask_cline_again(prompt)
            return ""
        process = self.start_host(prompt, again=again)
        shown, _ = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, shown
        return shown

    def let_a_person_have_asked(self) -> None:
        """Remove the marks of prompts without a terminal, for which sessions are left out; import what is then new."""
        for file in self.home.glob(".claude/projects/*/*.jsonl"):
            text = file.read_text(encoding="utf-8").replace('"promptSource":"sdk"', '"promptSource":"typed"')
            file.write_text(text.replace('"sdk-cli"', '"cli"'), encoding="utf-8")
        for file in self.home.glob(".codex/sessions/**/*.jsonl"):
            text = file.read_text(encoding="utf-8")
            # Of the same length: Codex keeps positions in the file.
            file.write_text(text.replace('"source":"exec"', '"source":"cli" '), encoding="utf-8")
        if self.name == "codex":
            # The other hosts report each call with a hook.
            self.reverie("import", "sessions", "--agent", "codex")

    def _ask_cline_again(self, prompt: str) -> None:
        history = subprocess.run(
            ["cline", "history", "--json"],
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.PIPE,
            timeout=DEADLINE_S,
            check=True,
        )
        last = json.loads(history.stdout)[0]["sessionId"]
        terminal = Terminal(["cline", "--id", last], self.project, self.environment)
        self._started.append(terminal.process)
        terminal.wait_for("Ask anything")
        terminal.enter(prompt)
        wait_until("the model has answered", lambda: not self.model.script, DEADLINE_S)

    def up(self) -> Client:
        """Start the stack and return a client of the project's workspace."""
        self.reverie("up", "--daemon")
        return self.client()

    def client(self) -> Client:
        """Return a client of the project's workspace."""
        token = (self.reverie_home / "token").read_text(encoding="ascii").strip()
        return Client(PORT, token, identify(self.project).id)

    def remember(self, *memories: dict[str, object]) -> None:
        """Store memories in the project's workspace and wait until they are digested."""
        client = self.up()
        for memory in memories:
            assert client.call("POST", "/v1/memories", memory).status == 201
        wait_until("digested", lambda: not any(client.call("GET", "/v1/queue").body["pending"].values()), 120)
        client.close()

    def journal(self) -> list[tuple[str, str, bool]]:
        """List what the host told of what its agent did, in order."""
        items = json.loads(self.reverie("logs", "journal", "--json"))["items"]
        return [(item["type"], item["target"], item["ok"]) for item in reversed(items)]

    def list_said(self, role: str) -> list[str]:
        """List what was said by a role, in all sessions, in its order."""
        sessions = json.loads(self.reverie("sessions", "list", "--json"))["items"]
        shown = [json.loads(self.reverie("sessions", "show", one["id"], "--json")) for one in sessions]
        said = sorted((one["at"], one["content"].strip(), one["role"]) for record in shown for one in record["said"])
        return [content for _, content, speaker in said if speaker == role]

    def list_subagents_said(self) -> list[str]:
        """List what subagents said, in all sessions."""
        sessions = json.loads(self.reverie("sessions", "list", "--json"))["items"]
        shown = [json.loads(self.reverie("sessions", "show", one["id"], "--json")) for one in sessions]
        ids = [subagent for record in shown for subagent in record["subagents"]]
        records = [json.loads(self.reverie("sessions", "show", subagent, "--json")) for subagent in ids]
        return [one["content"] for record in records for one in record["said"]]

    def supervisor(self) -> psutil.Process:
        """Return the process that keeps the stack running."""
        # A host's hook and its relay may both start one; the second ends when it finds the first.
        (found,) = wait_until("one supervisor is left", self._one_supervisor)
        return found

    def _one_supervisor(self) -> list[psutil.Process]:
        # Of a process that has just ended psutil tells nothing, of one outside of the namespace no variables.
        found = [
            process
            for process in psutil.process_iter(["cmdline", "environ"])
            if (process.info["cmdline"] or [])[-3:] == ["-m", "reverie", "up"]
            and (process.info["environ"] or {}).get("HOME") == str(self.home)
        ]
        return found if len(found) == 1 else []

    def stop(self) -> None:
        """End the hosts that still run, which would start the stack again, and the stack."""
        for process in self._started:
            # Some start themselves again as a child.
            kill_group(process.pid)
            process.communicate()
        self.reverie("down")
        # Cline leaves a process in the background.
        for process in psutil.process_iter(["environ"]):
            if (process.info["environ"] or {}).get("HOME") == str(self.home):
                process.kill()

    def answers(self) -> bool:
        """Tell whether the stack answers."""
        try:
            with socket.create_connection(("127.0.0.1", PORT), timeout=1):
                return True
        except OSError:
            return False


@pytest.fixture
def model():
    with ModelServer() as server:
        yield server


@pytest.fixture
def machine(tmp_path_factory, models, model):
    if [name for _, name in socket.if_nameindex()] != ["lo"]:
        pytest.skip("hosts run in a network namespace that has loopback alone: make test-hosts")
    machine = Machine(tmp_path_factory.mktemp("machine") / "home", models, model)
    yield machine
    machine.stop()
