"""The plugins, installed by the hosts' own commands in a scratch home without a network."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from config.operating_system import kill_group
from web.version import VERSION

ROOT = Path(__file__).parents[2]
# Where the programs of the hosts are, when not on the PATH.
PROGRAMS = os.environ.get("HOST_PROGRAMS", os.environ.get("PATH", ""))
DEADLINE_S = 90
# A client that notes what it was started with, and the event.
HOOK = """#!/bin/sh
printf '%s ' "$*" >> "$HOME/started"
cat >> "$HOME/started"
echo >> "$HOME/started"
"""
EVENTS = {
    "claude-code": {"SessionStart", "SessionEnd"},
    "codex": {"SessionStart", "UserPromptSubmit"},
    "gemini": {"SessionStart", "BeforeAgent"},
}

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux" or shutil.which("unshare") is None, reason="no network namespaces here"),
]


class HostHome:
    """A home of nobody, in which a host is run without a network."""

    def __init__(self, root: Path, program: str) -> None:
        self.root, self.program = root, program
        self.project = root / "project"
        self.project.mkdir()
        (root / "bin").mkdir()
        # There is no server behind it: a host goes on without.
        for name, text in {"reverie-hook": HOOK, "reverie": "#!/bin/sh\nexit 1\n"}.items():
            (root / "bin" / name).write_text(text)
            (root / "bin" / name).chmod(0o755)
        self.environment = {
            "HOME": str(root),
            "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "ANTHROPIC_API_KEY": "sk-ant-made-up",
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "GEMINI_API_KEY": "made-up",
            "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
        }

    def start(self, *arguments, stdin=subprocess.DEVNULL):
        return subprocess.Popen(
            ["unshare", "--map-root-user", "--net", self.program, *arguments],
            cwd=self.project,
            env=self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )

    def run(self, *arguments, answers=""):
        process = self.start(*arguments, stdin=subprocess.PIPE)
        said, _ = process.communicate(answers, timeout=DEADLINE_S)
        assert process.returncode == 0, said
        return said

    def events(self, host):
        """Return the events with which the client of the plugin was started."""
        file = self.root / "started"
        lines = file.read_text().splitlines() if file.exists() else []
        ours = f"{host} --plugin "
        found = (re.search(r'"hook_event_name": ?"(\w+)"', line) for line in lines if line.startswith(ours))
        return {match[1] for match in found if match is not None}

    def meets(self, host, *prompt):
        """Tell whether a session, which finds no model, starts the client for the events of its beginning."""
        process = self.start(*prompt)
        end = time.monotonic() + DEADLINE_S
        try:
            while process.poll() is None and not EVENTS[host] <= self.events(host) and time.monotonic() < end:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
        finally:
            # Some start themselves again as a child.
            kill_group(process.pid)
            process.communicate()
        return EVENTS[host] <= self.events(host)


@pytest.fixture
def home(tmp_path):
    """Return what makes a home for a program, or skip where that is not installed."""

    def make(name):
        program = shutil.which(name, path=PROGRAMS)
        if program is None:
            pytest.skip(f"{name} is not installed")
        return HostHome(tmp_path, program)

    return make


def list_plugins(claude):
    """List the plugins of the marketplace; newer versions bring some of their own."""
    return [one for one in json.loads(claude.run("plugin", "list", "--json")) if one["id"].endswith("@reverie")]


def test_claude_code_takes_the_plugin_from_the_marketplace(home):
    claude = home("claude")
    for folder in (ROOT, ROOT / "plugins" / "claude-code"):
        assert "Validation passed" in claude.run("plugin", "validate", "--strict", str(folder))
    claude.run("plugin", "marketplace", "add", str(ROOT))
    claude.run("plugin", "install", "reverie@reverie")
    [plugin] = list_plugins(claude)
    assert plugin["enabled"]
    assert plugin["mcpServers"] == {"reverie": {"command": "reverie", "args": ["mcp"], "alwaysLoad": True}}
    said = claude.run("plugin", "details", "reverie")
    assert "Skills (4)  lessons, memory, recall, remember" in said
    assert "Hooks (8)" in said
    assert claude.meets("claude-code", "-p", "hello")
    claude.run("plugin", "uninstall", "reverie@reverie")
    assert list_plugins(claude) == []


def test_claude_code_prefixes_commands_with_the_plugin_name(home):
    claude = home("claude")
    claude.run("plugin", "marketplace", "add", str(ROOT))
    claude.run("plugin", "install", "reverie@reverie")
    process = claude.start("-p", "/no-such-command", "--output-format", "stream-json", "--verbose")
    said, _ = process.communicate(timeout=DEADLINE_S)
    [begun] = [json.loads(line) for line in said.splitlines() if '"subtype":"init"' in line]
    assert {"reverie:remember", "reverie:recall", "reverie:lessons"} <= set(begun["slash_commands"])
    assert "reverie:memory" in begun["skills"]
    assert [server["name"] for server in begun["mcp_servers"]] == ["plugin:reverie:reverie"]


def test_codex_takes_the_plugin_from_the_marketplace(home):
    codex = home("codex")
    (codex.root / ".codex").mkdir()
    codex.run("plugin", "marketplace", "add", str(ROOT))
    codex.run("plugin", "add", "reverie@reverie")
    assert "installed, enabled" in codex.run("plugin", "list")
    assert "reverie  reverie  mcp" in codex.run("mcp", "list")
    provider = 'model_providers.none={name="none",base_url="http://127.0.0.1:9/v1",wire_api="responses"}'
    assert codex.meets(
        "codex",
        *("exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check"),
        *("-c", 'model_provider="none"', "-c", provider, "hello"),
    )


def test_gemini_cli_takes_the_extension(home):
    gemini = home("gemini")
    (gemini.root / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}}
    (gemini.root / ".gemini" / "settings.json").write_text(json.dumps(settings))
    extension = str(ROOT / "plugins" / "gemini")
    assert "successfully validated" in gemini.run("extensions", "validate", extension)
    gemini.run("extensions", "install", "--consent", extension, answers="y\n")
    listed = gemini.run("extensions", "list")
    assert f"reverie ({VERSION})" in listed
    assert "memory: Use Reverie's memory" in listed
    assert gemini.meets("gemini", "-p", "hello")
    gemini.run("extensions", "uninstall", "reverie")
    gemini.run("extensions", "link", "--consent", extension, answers="y\n")
