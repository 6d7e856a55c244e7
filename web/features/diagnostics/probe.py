"""The checks of `reverie doctor --probe`: run the configured hooks and MCP servers of each connected host."""

import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

from config.data_directory import NoDataDirectory
from config.operating_system import kill_group, new_process_group
from config.settings import Settings, environment_with, load_settings
from config.toml_files import SettingsError
from pipeline.features.team import connections as team_servers
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.records import CheckResult
from web.cli.state import State
from web.features.diagnostics.checks import ServerProbe, find_skew
from web.hooks.client import HEADERS, SERVER_OPTION, read_variables
from web.hosts.configured_commands import Found, HookCommand, ServerCommand, UnreadableEntry, list_commands
from web.hosts.hook_entries import EVENTS
from web.hosts.hosts import BY_NAME
from web.hosts.installed_files import read_state
from web.http.client import Client

# A check and its name, which is also used to report an error of the check itself.
Check = tuple[str, Callable[[], Iterable[CheckResult]]]
# The name of a check, and the function that returns its result as a text or raises ProbeFailed.
Probe = tuple[str, Callable[[], str]]

HOOKS, MCP = "hook probe", "MCP probe"
# By switch: the value with which the server does not record events, and the command that changes it.
SILENT = {
    "enabled": (False, "`reverie on` turns it on"),
    "incognito": (True, "`reverie config set incognito false` turns it off"),
    "read_only": (True, "`reverie config set read_only false` turns it off"),
    "hook_recall": (False, "`reverie config set hook_recall true` turns it on"),
}
# The event that the probe sends, as hosts name it: it stores no memory.
START_EVENTS = ("SessionStart", "sessionStart")
# Hosts whose hooks cannot be probed, and why.
UNPROBED = {"antigravity": "it has no hook for the start of a session"}
# The variables by which hosts tell a hook the folder of the project.
FOLDER_VARIABLES = {
    "claude-code": ("CLAUDE_PROJECT_DIR",),
    "gemini": ("GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"),
    "qwen-code": ("QWEN_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
}
MOST_ERROR_CHARS = 200
HEADERS_WITHIN_S, PROBE_TIMEOUT_S = 10.0, 30.0
# The server records a run after it has answered.
RECORDED_WITHIN_S, PAUSE_S = 5.0, 0.05
HOW_TO_START = "start it with `reverie up --daemon`"
HOW_TO_RESTART = "restart Reverie: `reverie down`, then `reverie up --daemon`"


class ProbeFailed(ReverieError):
    """Report why a hook or an MCP server failed or was not probed, and what to do."""

    def __init__(self, says: str, remedy: str = "", state: Literal["warn", "fail"] = "fail") -> None:
        super().__init__(says)
        self.remedy = remedy
        self.state = state


def list_probes(state: State, server: ServerProbe) -> Iterator[Check]:
    """Yield the checks of the hooks and MCP servers of each connected host."""
    found = list(list_commands(read_state(state.settings.paths.root), sys.platform))
    for host in BY_NAME:
        for kind, probe in _list_probes_of(state, server, host, [entry for entry in found if entry.host == host]):
            yield kind, partial(_run_probe, kind, BY_NAME[host].title, probe)
    if not found:
        says = "no agent was connected by `reverie setup`, so nothing was probed"
        yield HOOKS, lambda: [CheckResult(HOOKS, "warn", says, "connect yours with `reverie setup`")]


def _list_probes_of(state: State, server: ServerProbe, host: str, found: Sequence[Found]) -> Iterator[Probe]:
    """Yield the probes of a host: of the hooks in each of its files, and of its MCP servers."""
    commands = [entry for entry in found if isinstance(entry, HookCommand)]
    problems = [entry.problem for entry in found if isinstance(entry, UnreadableEntry)]
    if host in UNPROBED and found:
        yield HOOKS, lambda: f"not probed: {UNPROBED[host]}"
    elif host in EVENTS and found:
        for problem in problems:
            yield HOOKS, partial(_fail, problem, f"correct the file, then run `reverie setup {host}`")
        if not (commands or problems):
            yield HOOKS, partial(_fail, "no hooks are configured", f"`reverie setup {host}` writes them")
        for file in dict.fromkeys(command.file for command in commands):
            of_file = [command for command in commands if command.file == file]
            if any(SERVER_OPTION in command.words for command in of_file):
                yield HOOKS, partial(_probe_team, state.settings, of_file[0])
            else:
                yield HOOKS, partial(_probe_host, state, server, of_file)
    for entry in found:
        if isinstance(entry, ServerCommand):
            yield MCP, partial(_probe_server, entry, server)


def _run_probe(kind: str, title: str, probe: Callable[[], str]) -> list[CheckResult]:
    try:
        return [CheckResult(kind, "ok", f"{title}: {probe()}")]
    except ProbeFailed as error:
        return [CheckResult(kind, error.state, f"{title}: {error}", error.remedy)]


def _fail(says: str, remedy: str) -> str:
    raise ProbeFailed(says, remedy)


def _check_silence(state: State, server: ServerProbe) -> None:
    """Raise ProbeFailed if hooks cannot be probed now."""
    if not isinstance(server.health, dict):
        raise ProbeFailed("not probed: no server answers", HOW_TO_START, "warn")
    if (skew := find_skew(server.health)) is not None:
        raise ProbeFailed(f"not probed: the server {skew}", HOW_TO_RESTART, "warn")
    try:
        with _open_client(state) as client:
            switches = client.switches(client.workspace)
    except ReverieError as error:
        raise ProbeFailed(f"not probed: {error}", HOW_TO_RESTART, "warn") from error
    for name, (silent, remedy) in SILENT.items():
        if switches[name] is silent:
            cause = f"{name} is {str(silent).lower()} in workspace {switches['workspace']}"
            raise ProbeFailed(f"not probed: {cause}, so hooks do not show or record anything", remedy, "warn")


def _open_client(state: State) -> Client:
    return Client.from_settings(state.settings, state.workspace, timeout_s=PROBE_TIMEOUT_S)


def _probe_host(state: State, server: ServerProbe, commands: Sequence[HookCommand]) -> str:
    """Run the hook for the start of a session once, and read the run that the server recorded."""
    _check_silence(state, server)
    command = _choose_command(commands, state.settings)
    session, began = f"reverie-probe-{secrets.token_hex(8)}", time.perf_counter()
    _run_hook(command, session)
    took_ms = (time.perf_counter() - began) * 1000
    with _open_client(state) as client:
        run = _wait_for_run(client, session)
    if run["outcome"] == "failed":
        raise ProbeFailed(run["reason"], "`reverie logs errors` may have the reason")
    return f"session start in {took_ms:.0f} ms, {run['reason'] or run['outcome']}"


def _rewrite(host: str) -> str:
    return f"`reverie setup {host}` writes the hooks again"


def _choose_command(commands: Sequence[HookCommand], settings: Settings) -> HookCommand:
    """Return the command for the start of a session; raise ProbeFailed if there is none, or one is wrong."""
    for command in commands:
        _check_command(command, settings)
    chosen = next((command for command in commands if command.event in START_EVENTS), None)
    if chosen is None:
        raise ProbeFailed(f"no hook for the start of a session in {commands[0].file}", _rewrite(commands[0].host))
    return chosen


def _check_command(command: HookCommand, settings: Settings) -> None:
    """Raise ProbeFailed if a command cannot reach this data directory."""
    remedy = _rewrite(command.host)
    if shutil.which(command.words[0]) is None:
        raise ProbeFailed(f"{command.file} names a program that does not exist: {command.words[0]}", remedy)
    try:
        named = load_settings(environment_with(read_variables(list(command.words))))
    except (NoDataDirectory, SettingsError, ReverieError, ValueError) as error:
        raise ProbeFailed(f"{command.file}: {error}", remedy) from error
    home = named.paths.root
    if not (home.exists() and home.samefile(settings.paths.root)):
        raise ProbeFailed(f"{command.file} names another data directory, {home}", remedy)
    if named.url != settings.url:
        raise ProbeFailed(f"{command.file} names another address, {named.url}, than {settings.url}", remedy)


def _run_hook(command: HookCommand, session: str) -> None:
    """Run a hook as its host does, in a folder of no project; raise ProbeFailed if it fails."""
    remedy = _rewrite(command.host)
    with tempfile.TemporaryDirectory(prefix="reverie-probe-") as folder:
        event = {"hook_event_name": command.event, "source": "startup", "session_id": session, "cwd": folder}
        try:
            process = subprocess.Popen(  # noqa: S603 - the command that the host runs, without a shell
                list(command.words),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment_with(dict.fromkeys(FOLDER_VARIABLES.get(command.host, ()), folder)),
                cwd=folder,
                **new_process_group(),
            )
        except OSError as error:
            raise ProbeFailed(f"the hook cannot be started: {error.strerror}", remedy) from error
        with process:
            try:
                _, errors = process.communicate(json.dumps(event).encode(), command.timeout_s)
            except subprocess.TimeoutExpired as error:
                kill_group(process.pid)
                raise ProbeFailed(f"the hook did not end within {command.timeout_s:g} s", remedy) from error
    if process.returncode != 0:
        said = " ".join(errors.decode(errors="replace").split())[-MOST_ERROR_CHARS:]
        raise ProbeFailed(f"the hook ended with exit code {process.returncode}: {said}", remedy)


def _wait_for_run(client: Client, session: str) -> dict[str, Any]:
    """Return the run of a probe's session; raise ProbeFailed if the server records none."""
    deadline = time.monotonic() + RECORDED_WITHIN_S
    while time.monotonic() < deadline:
        items: list[dict[str, Any]] = client.call("GET", "/v1/hook-runs", query={"session_id": session})["items"]
        if items:
            return items[0]
        time.sleep(PAUSE_S)
    raise ProbeFailed("the hook ran, but its event did not reach the server", HOW_TO_RESTART)


def _probe_team(settings: Settings, command: HookCommand) -> str:
    """Check the hook program, the token and the server of a team, without an event: its memories are shared."""
    words = list(command.words)
    name = words[words.index(SERVER_OPTION) + 1]
    hint = f"`reverie team add` changes the address or token; `reverie setup {command.host}` writes the hooks again"
    began = time.perf_counter()
    try:
        headers = _read_team_headers(words)
        read_ms = (time.perf_counter() - began) * 1000
        team_servers.list_open_workspaces(team_servers.find_team(settings.paths.servers, name))
    except ReverieError as error:
        raise ProbeFailed(f"team {name}: {error}", hint) from error
    if "Authorization" not in headers:
        raise ProbeFailed(f"the hook program has no token for team {name}", hint)
    answer_ms = (time.perf_counter() - began) * 1000 - read_ms
    return f"token {read_ms:.0f} ms, team {name} {answer_ms:.0f} ms; no event was sent to the team's server"


def _read_team_headers(words: Sequence[str]) -> dict[str, Any]:
    """Run the hook program for the headers that it would send."""
    if shutil.which(words[0]) is None:
        raise ProbeFailed(f"the program {words[0]} does not exist")
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
        raise ProbeFailed(f"the hook program did not end within {HEADERS_WITHIN_S:g} s") from error
    if not done.stdout.startswith(b"{"):
        raise ProbeFailed("the hook program does not know this team")
    return dict(json.loads(done.stdout))


def _probe_server(command: ServerCommand, server: ServerProbe) -> str:
    """Start a configured MCP server of a host and count its tools."""
    if SERVER_OPTION not in command.words and not server.is_up:
        # The command would start Reverie.
        raise ProbeFailed("not probed: no server answers", HOW_TO_START, "warn")
    try:
        with tempfile.TemporaryDirectory(prefix="reverie-probe-") as folder:
            tools, took_ms = count_tools(command, Path(folder))
    except ReverieError as error:
        hint = f"`reverie setup {command.host}` writes the entry again; `reverie logs errors` may have the reason"
        raise ProbeFailed(f"`{' '.join(command.words)}`: {error}", hint) from error
    return f"{tools} tools in {took_ms:.0f} ms" if tools else "no tools, because enabled is off"


# Hosts give up on a server after 10 to 60 s.
MCP_WITHIN_S = 10.0
# As hosts do, its input is closed first.
MCP_END_WITHIN_S = 1.0
PROTOCOL = "2025-06-18"
CLIENT = {"name": "reverie-doctor", "version": "1"}
_REQUESTS: tuple[Mapping[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": CLIENT},
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


def count_tools(command: ServerCommand, folder: Path) -> tuple[int, float]:
    """Return how many tools the server of a host offers, and after how many milliseconds.

    Raises ProbeFailed if it does not answer in time.
    """
    began = time.perf_counter()
    try:
        process = subprocess.Popen(  # noqa: S603 - the command that the host runs, without a shell
            list(command.words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment_with(command.variables),
            cwd=folder,
            **new_process_group(),
        )
    except OSError as error:
        raise ProbeFailed(f"{command.words[0]} cannot be started: {error.strerror}") from error
    # At the deadline its output ends.
    deadline = time.monotonic() + MCP_WITHIN_S
    late = threading.Timer(MCP_WITHIN_S, kill_group, (process.pid,))
    late.start()
    with process:
        try:
            return _ask_for_tools(process, deadline), (time.perf_counter() - began) * 1000
        finally:
            late.cancel()
            _end(process)


def _ask_for_tools(process: "subprocess.Popen[bytes]", deadline: float) -> int:
    assert process.stdin is not None
    for request in _REQUESTS:
        try:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise ProbeFailed("it ended before it was asked for its tools") from error
        if "id" in request:
            result = _wait_for_answer(process, request, deadline)
    tools = result.get("tools")
    if not isinstance(tools, list):
        raise ProbeFailed("its answer to tools/list has no tools")
    return len(tools)


def _wait_for_answer(process: "subprocess.Popen[bytes]", request: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    """Return the result of a request; skip notifications."""
    assert process.stdout is not None
    for line in process.stdout:
        try:
            message = json.loads(line)
        except ValueError as error:
            raise ProbeFailed(f"it answered {request['method']} with something other than JSON") from error
        if isinstance(message, dict) and message.get("id") == request["id"]:
            if not isinstance(message.get("result"), dict):
                raise ProbeFailed(f"it refused {request['method']}: {message.get('error')}")
            return dict(message["result"])
    if time.monotonic() >= deadline:
        raise ProbeFailed(f"it did not answer {request['method']} within {MCP_WITHIN_S:g} s")
    raise ProbeFailed(f"it ended without an answer to {request['method']}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    # It may have ended with unread input.
    with suppress(OSError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(MCP_END_WITHIN_S)
    # Also what it has started: that may hold its output open.
    kill_group(process.pid)
