"""The checks of `reverie doctor --probe`: run the configured hooks and MCP servers of each connected host."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from config.settings import Settings, environment_with
from pipeline.errors import ReverieError
from pipeline.records import CheckResult
from web.cli.doctor_checks import ServerProbe, find_skew
from web.cli.hook_probe import (
    EVENTS_OF_STEP,
    HOW_TO_RESTART,
    STORE,
    UNPROBED,
    Step,
    find_command_problem,
    probe_hooks,
)
from web.cli.mcp_probe import count_tools
from web.client import Client
from web.hooks.client import ADDRESS_CACHE, HEADERS, SERVER_OPTION, read_variables
from web.hosts.configured_commands import Found, HookCommand, ServerCommand, UnreadableEntry, list_commands
from web.hosts.hook_entries import EVENTS
from web.hosts.hosts import BY_NAME
from web.hosts.installed_files import read_state

if TYPE_CHECKING:
    from web.cli.state import State

# A check and its name, as `doctor` runs them.
Check = tuple[str, Callable[[], Iterator[CheckResult]]]

HOOKS, MCP = "hook probe", "MCP probe"
# By switch: the value with which hooks store and show nothing, and the command that changes it.
SILENT = {
    "enabled": (False, "`reverie on` turns it on"),
    "incognito": (True, "`reverie config set incognito false` turns it off"),
    "read_only": (True, "`reverie config set read_only false` turns it off"),
    "hook_recall": (False, "`reverie config set hook_recall true` turns it on"),
}
HEADERS_WITHIN_S = 10.0
# The start of a probe opens a store; its end waits for events that are still handled.
PROBE_TIMEOUT_S = 30.0


def list_probes(state: "State", server: ServerProbe) -> Iterator[Check]:
    """Yield one check per connected host for its hooks, and one for its MCP server."""
    found = list(list_commands(read_state(state.settings.paths.root), sys.platform))
    reason = None
    if any(isinstance(command, HookCommand) for command in found):
        reason = _find_silence(state, server)
    for host in BY_NAME:
        own = [entry for entry in found if entry.host == host]
        if host in EVENTS and own:
            yield HOOKS, partial(_check_hooks, state, host, own, reason)
        if any(isinstance(entry, ServerCommand) for entry in own):
            yield MCP, partial(_check_server, host, own, server)
    if not found:
        says = "no agent was connected by `reverie setup`, so nothing was probed"
        yield HOOKS, lambda: iter([CheckResult(HOOKS, "warn", says, "connect yours with `reverie setup`")])


def _find_silence(state: "State", server: ServerProbe) -> tuple[str, str] | None:
    """Return why hooks cannot be probed now, and the remedy; None if they can."""
    health = server.health
    if not isinstance(health, dict):
        return "no server answers", "start it with `reverie up --daemon`"
    if (skew := find_skew(health)) is not None:
        return f"the server {skew}", HOW_TO_RESTART
    try:
        with _open_client(state) as client:
            switches = client.switches(client.workspace)
    except ReverieError as error:
        return str(error), HOW_TO_RESTART
    for name, (silent, remedy) in SILENT.items():
        if switches[name] is silent:
            value = str(silent).lower()
            return f"{name} is {value} in workspace {switches['workspace']}, so hooks do not store or show", remedy
    return None


def _open_client(state: "State") -> Client:
    return Client.from_settings(state.settings, state.workspace, timeout_s=PROBE_TIMEOUT_S)


def _check_hooks(
    state: "State", host: str, found: Sequence[Found], silence: tuple[str, str] | None
) -> Iterator[CheckResult]:
    """Probe the hooks of a host: of its user's files, and of each project separately."""
    title = BY_NAME[host].title
    if host in UNPROBED:
        yield CheckResult(HOOKS, "ok", f"{title}: not probed: {UNPROBED[host]}")
        return
    for entry in found:
        if isinstance(entry, UnreadableEntry):
            hint = f"correct the file, then run `reverie setup {host}`"
            yield CheckResult(HOOKS, "fail", f"{title}: {entry.problem}", hint)
    commands = [entry for entry in found if isinstance(entry, HookCommand)]
    if not commands and not any(isinstance(entry, UnreadableEntry) for entry in found):
        yield CheckResult(HOOKS, "fail", f"{title}: no hooks are configured", f"`reverie setup {host}` writes them")
    for file in dict.fromkeys(command.file for command in commands):
        of_file = [command for command in commands if command.file == file]
        if any(SERVER_OPTION in command.words for command in of_file):
            yield _probe_team(state.settings, title, of_file[0])
        elif silence is not None:
            yield CheckResult(HOOKS, "warn", f"{title}: not probed: {silence[0]}", silence[1])
        else:
            yield _probe_host(state, title, of_file)


def _probe_host(state: "State", title: str, commands: Sequence[HookCommand]) -> CheckResult:
    cache = state.settings.paths.root / ADDRESS_CACHE
    was_cached = cache.exists()
    try:
        problem = find_command_problem(commands, state.settings)
        if problem is not None:
            return CheckResult(HOOKS, "fail", f"{title}: {problem[0]}", problem[1])
        if not any(command.event in EVENTS_OF_STEP[STORE] for command in commands):
            hint = f"`reverie setup {commands[0].host}` writes the missing hooks"
            return CheckResult(HOOKS, "fail", f"{title}: no hook for prompts in {commands[0].file}", hint)
        with _open_client(state) as client:
            return _describe(title, probe_hooks(client, commands))
    finally:
        if not was_cached:
            cache.unlink(missing_ok=True)


def _describe(title: str, steps: Sequence[Step]) -> CheckResult:
    says = ", ".join(f"{step.name} {step.took_ms:.0f} ms" for step in steps if step.problem is None)
    failed = next((step for step in steps if step.problem is not None), None)
    if failed is None:
        return CheckResult(HOOKS, "ok", f"{title}: {says}")
    passed = f" (before it: {says})" if says else ""
    says = f"{title}: {failed.name} failed after {failed.took_ms:.0f} ms: {failed.problem}{passed}"
    return CheckResult(HOOKS, "fail", says, failed.remedy)


def _probe_team(settings: Settings, title: str, command: HookCommand) -> CheckResult:
    """Check the hook program, the token and the server of a team, without an event: its memories are shared."""
    from pipeline.services.team_servers import find_team, list_open_workspaces

    words = list(command.words)
    name = words[words.index(SERVER_OPTION) + 1]
    hint = f"`reverie team add` changes the address or token; `reverie setup {command.host}` writes the hooks again"
    began = time.perf_counter()
    try:
        headers = _read_team_headers(words)
        read_ms = (time.perf_counter() - began) * 1000
        list_open_workspaces(find_team(settings.paths.servers, name))
    except ReverieError as error:
        return CheckResult(HOOKS, "fail", f"{title}: team {name}: {error}", hint)
    if "Authorization" not in headers:
        return CheckResult(HOOKS, "fail", f"{title}: the hook program has no token for team {name}", hint)
    answer_ms = (time.perf_counter() - began) * 1000 - read_ms
    says = f"{title}: token {read_ms:.0f} ms, team {name} {answer_ms:.0f} ms; no event was sent to the team's server"
    return CheckResult(HOOKS, "ok", says)


class HookProgramFailed(ReverieError):
    """Report that the hook program of a host did not run."""


def _read_team_headers(words: Sequence[str]) -> dict[str, Any]:
    """Run the hook program for the headers that it would send."""
    if shutil.which(words[0]) is None:
        raise HookProgramFailed(f"the program {words[0]} does not exist")
    try:
        done = subprocess.run(  # noqa: S603 - the program that the host runs, without a shell
            [words[0], HEADERS, *words[2:]],
            env=environment_with(read_variables(list(words))),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HEADERS_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HookProgramFailed(f"the hook program did not end within {HEADERS_WITHIN_S:g} s") from error
    if not done.stdout.startswith(b"{"):
        raise HookProgramFailed("the hook program does not know this team")
    return dict(json.loads(done.stdout))


def _check_server(host: str, found: Sequence[Found], server: ServerProbe) -> Iterator[CheckResult]:
    """Start each configured MCP server of a host and count its tools."""
    title = BY_NAME[host].title
    for command in found:
        if not isinstance(command, ServerCommand):
            continue
        if SERVER_OPTION not in command.words and not server.is_up:
            # The command would start Reverie.
            says = f"{title}: not probed: no server answers"
            yield CheckResult(MCP, "warn", says, "start it with `reverie up --daemon`")
            continue
        try:
            with tempfile.TemporaryDirectory(prefix="reverie-probe-") as folder:
                tools, took_ms = count_tools(command, Path(folder))
        except ReverieError as error:
            hint = f"`reverie setup {host}` writes the entry again; `reverie logs errors` may have the reason"
            yield CheckResult(MCP, "fail", f"{title}: `{' '.join(command.words)}`: {error}", hint)
            continue
        says = f"{title}: {tools} tools in {took_ms:.0f} ms" if tools else f"{title}: no tools, because enabled is off"
        yield CheckResult(MCP, "ok", says)
