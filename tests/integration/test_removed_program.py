"""The hooks that setup wrote run the hook client as each shell reads them, and are silent once it was removed."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.web.hosts.conftest import Sandbox
from web.hooks.client import HOOK_CLIENT
from web.hosts.configured_commands import HookCommand, list_commands
from web.hosts.entries import HookEntry, NamedHooks
from web.hosts.environment import RemoteServer
from web.hosts.hook_entries import read_client_words
from web.hosts.hosts import BY_NAME
from web.hosts.installed_files import read_state

HOSTS = ("claude-code", "codex", "cursor", "gemini", "qwen-code", "copilot", "antigravity")
ROOT = Path(__file__).parents[2]
# Hosts start commands with one of these, Codex with the shell of its user.
SHELLS = [name for name in ("sh", "dash", "bash", "zsh", "ksh", "fish") if shutil.which(name)]
CLIENT = """#!/bin/sh
printf '%s|' "$@"
cat
"""
EVENT = '{"hook_event_name": "Stop"}'
MOVED = {"REVERIE_HOME": "/srv/ann's memory & more", "REVERIE_PORT": "7099"}


@pytest.fixture
def sandbox(tmp_path):
    sandbox = Sandbox(tmp_path / "a b" / "sandbox")
    program = sandbox.reverie.bin / HOOK_CLIENT
    program.write_text(CLIENT)
    program.chmod(0o755)
    return sandbox


def list_handlers(value):
    """List the handlers of hooks in a value, at any depth."""
    if isinstance(value, dict) and isinstance(value.get("command"), str):
        return [value["command"]]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [command for part in parts for command in list_handlers(part)]


def list_hook_commands(sandbox, host, host_env):
    commands = set()
    for target in BY_NAME[host].targets(host_env, sandbox.reverie):
        for entry in target.entries:
            if isinstance(entry, HookEntry):
                commands.add(entry.handler["command"])
            elif isinstance(entry, NamedHooks):
                commands |= set(list_handlers(entry.value))
    return commands


def run(shell, command, sandbox, *, on_path=True):
    path = f"{sandbox.reverie.bin}:/usr/bin:/bin" if on_path else "/usr/bin:/bin"
    done = subprocess.run(
        [str(shutil.which(shell)), "-c", command],
        input=EVENT,
        env={"PATH": path, "HOME": str(sandbox.home)},
        cwd=sandbox.project,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("in_project", [False, True])
def test_a_hook_runs_the_client_and_is_silent_without_it(sandbox, host, in_project, shell):
    sandbox.reverie = replace(sandbox.reverie, variables=MOVED)
    host_env = sandbox.in_project() if in_project else sandbox.host_env
    [command] = list_hook_commands(sandbox, host, host_env)
    options = () if in_project else ("--home", MOVED["REVERIE_HOME"], "--port", "7099")
    assert run(shell, command, sandbox) == (0, "|".join((host, *options, EVENT)), "")
    (sandbox.reverie.bin / HOOK_CLIENT).unlink()
    assert run(shell, command, sandbox) == (0, "", "")
    # With its folder, and as a link without its file, as `uv tool uninstall` may leave it.
    shutil.rmtree(sandbox.reverie.bin)
    assert run(shell, command, sandbox) == (0, "", "")
    sandbox.reverie.bin.mkdir()
    (sandbox.reverie.bin / HOOK_CLIENT).symlink_to("gone")
    assert run(shell, command, sandbox) == (0, "", "")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("plugin", sorted(path.name for path in (ROOT / "plugins").iterdir()))
def test_a_plugin_s_hook_is_silent_too(sandbox, plugin, shell):
    [command] = set(list_handlers(json.loads((ROOT / "plugins" / plugin / "hooks" / "hooks.json").read_text())))
    assert run(shell, command, sandbox) == (0, f"{plugin}|--plugin|{EVENT}", "")
    assert run(shell, command, sandbox, on_path=False) == (0, "", "")


def test_the_status_of_the_client_is_the_status_of_the_hook(sandbox):
    [command] = list_hook_commands(sandbox, "claude-code", sandbox.host_env)
    (sandbox.reverie.bin / HOOK_CLIENT).write_text("#!/bin/sh\nexit 3\n")
    assert run("sh", command, sandbox) == (3, "", "")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("in_project", [False, True])
@pytest.mark.parametrize("team", [None, RemoteServer("acme", "https://memory.acme.example", "shop-1a2b3c4d")])
def test_the_client_is_found_in_the_command_again(sandbox, host, platform, in_project, team):
    suffix = ".exe" if platform == "win32" else ""
    for name in ("reverie", HOOK_CLIENT):
        (sandbox.reverie.bin / f"{name}{suffix}").touch()
    variables = {"REVERIE_HOME": "/srv/ann memory"}
    sandbox.reverie = replace(sandbox.reverie, variables=variables, server=None if host == "antigravity" else team)
    host_env = replace(sandbox.in_project() if in_project else sandbox.host_env, platform=platform)
    [command] = list_hook_commands(sandbox, host, host_env)
    client = HOOK_CLIENT if in_project else str(sandbox.reverie.bin / f"{HOOK_CLIENT}{suffix}")
    assert read_client_words(command, platform) == [client, host, *sandbox.reverie.options(host_env)]
    sandbox.setup(host, host_env=host_env)
    found = list_commands(read_state(sandbox.state), platform)
    words = {tuple(entry.words) for entry in found if isinstance(entry, HookCommand)}
    assert words == {(client, host, *sandbox.reverie.options(host_env))} or host == "antigravity"
    sandbox.remove(host, host_env=host_env)
    assert sandbox.files() == {}


@pytest.mark.parametrize("host", HOSTS)
def test_on_windows_a_hook_asks_for_the_client_first(sandbox, host):
    (sandbox.reverie.bin / f"{HOOK_CLIENT}.exe").touch()
    host_env = replace(sandbox.host_env, platform="win32")
    [command] = list_hook_commands(sandbox, host, host_env)
    program = f'"{sandbox.reverie.bin / HOOK_CLIENT}.exe"'
    # Claude Code runs it with bash, the others with cmd or PowerShell.
    start = f"[ ! -x {program} ] ||" if host == "claude-code" else f"cmd /d /c if exist {program}"
    assert command.startswith(start)
    assert command.endswith(f"{program} {host}")
