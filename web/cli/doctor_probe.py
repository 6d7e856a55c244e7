"""The checks of `reverie doctor --probe`: run the configured hooks and MCP servers of each connected host."""

import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from config.data_directory import NoDataDirectory
from config.operating_system import kill_group, new_process_group
from config.settings import Settings, environment_with, load_settings
from config.toml_files import SettingsError
from pipeline.errors import ReverieError
from pipeline.records import CheckResult
from web.cli.doctor_checks import ServerProbe, find_skew
from web.client import Client
from web.hooks.client import HEADERS, SERVER_OPTION, read_variables
from web.hosts.configured_commands import Found, HookCommand, ServerCommand, UnreadableEntry, list_commands
from web.hosts.hook_entries import EVENTS
from web.hosts.hosts import BY_NAME
from web.hosts.installed_files import read_state

if TYPE_CHECKING:
    from web.cli.state import State

# A check and its name, as `doctor` runs them.
Check = tuple[str, Callable[[], Iterator[CheckResult]]]

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
HOW_TO_RESTART = "restart Reverie: `reverie down`, then `reverie up --daemon`"


class HookFailed(ReverieError):
    """Report why the hook of a host failed, and how to repair it."""

    def __init__(self, says: str, remedy: str) -> None:
        super().__init__(says)
        self.remedy = remedy


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
            return (
                f"{name} is {value} in workspace {switches['workspace']}, so hooks do not show or record anything",
                remedy,
            )
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
    """Run the hook for the start of a session once, and read the run that the server recorded."""
    try:
        command = _choose_command(commands, state.settings)
        session, began = f"reverie-probe-{secrets.token_hex(8)}", time.perf_counter()
        _run_hook(command, session)
        took_ms = (time.perf_counter() - began) * 1000
        with _open_client(state) as client:
            run = _wait_for_run(client, session)
    except HookFailed as error:
        return CheckResult(HOOKS, "fail", f"{title}: {error}", error.remedy)
    if run["outcome"] == "failed":
        return CheckResult(HOOKS, "fail", f"{title}: {run['reason']}", "`reverie logs errors` may have the reason")
    return CheckResult(HOOKS, "ok", f"{title}: session start in {took_ms:.0f} ms, {run['reason'] or run['outcome']}")


def _rewrite(host: str) -> str:
    return f"`reverie setup {host}` writes the hooks again"


def _choose_command(commands: Sequence[HookCommand], settings: Settings) -> HookCommand:
    """Return the command for the start of a session; raise HookFailed if there is none, or one is wrong."""
    for command in commands:
        _check_command(command, settings)
    chosen = next((command for command in commands if command.event in START_EVENTS), None)
    if chosen is None:
        raise HookFailed(f"no hook for the start of a session in {commands[0].file}", _rewrite(commands[0].host))
    return chosen


def _check_command(command: HookCommand, settings: Settings) -> None:
    """Raise HookFailed if a command cannot reach this data directory."""
    remedy = _rewrite(command.host)
    if shutil.which(command.words[0]) is None:
        raise HookFailed(f"{command.file} names a program that does not exist: {command.words[0]}", remedy)
    try:
        named = load_settings(environment_with(read_variables(list(command.words))))
    except (NoDataDirectory, SettingsError, ReverieError, ValueError) as error:
        raise HookFailed(f"{command.file}: {error}", remedy) from error
    home = named.paths.root
    if not (home.exists() and home.samefile(settings.paths.root)):
        raise HookFailed(f"{command.file} names another data directory, {home}", remedy)
    if named.url != settings.url:
        raise HookFailed(f"{command.file} names another address, {named.url}, than {settings.url}", remedy)


def _run_hook(command: HookCommand, session: str) -> None:
    """Run a hook as its host does, in a folder of no project; raise HookFailed if it fails."""
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
            raise HookFailed(f"the hook cannot be started: {error.strerror}", remedy) from error
        with process:
            try:
                _, errors = process.communicate(json.dumps(event).encode(), command.timeout_s)
            except subprocess.TimeoutExpired as error:
                kill_group(process.pid)
                raise HookFailed(f"the hook did not end within {command.timeout_s:g} s", remedy) from error
    if process.returncode != 0:
        said = " ".join(errors.decode(errors="replace").split())[-MOST_ERROR_CHARS:]
        raise HookFailed(f"the hook ended with exit code {process.returncode}: {said}", remedy)


def _wait_for_run(client: Client, session: str) -> dict[str, Any]:
    """Return the run of a probe's session; raise HookFailed if the server records none."""
    deadline = time.monotonic() + RECORDED_WITHIN_S
    while time.monotonic() < deadline:
        items: list[dict[str, Any]] = client.call("GET", "/v1/hook-runs", query={"session_id": session})["items"]
        if items:
            return items[0]
        time.sleep(PAUSE_S)
    raise HookFailed("the hook ran, but its event did not reach the server", HOW_TO_RESTART)


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


class NoTools(ReverieError):
    """Report why a configured MCP server offers no tools."""


def count_tools(command: ServerCommand, folder: Path) -> tuple[int, float]:
    """Return how many tools the server of a host offers, and after how many milliseconds.

    Raises NoTools if it does not answer in time.
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
        raise NoTools(f"{command.words[0]} cannot be started: {error.strerror}") from error
    answers: SimpleQueue[bytes] = SimpleQueue()
    reader = threading.Thread(target=_read_lines, args=(process, answers), daemon=True)
    reader.start()
    with process:
        try:
            return _ask_for_tools(process, answers), (time.perf_counter() - began) * 1000
        finally:
            _end(process)
            reader.join()


def _ask_for_tools(process: "subprocess.Popen[bytes]", answers: "SimpleQueue[bytes]") -> int:
    deadline = time.monotonic() + MCP_WITHIN_S
    assert process.stdin is not None
    for request in _REQUESTS:
        try:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise NoTools("it ended before it was asked for its tools") from error
        if "id" in request:
            result = _wait_for_answer(answers, request, deadline)
    tools = result.get("tools")
    if not isinstance(tools, list):
        raise NoTools("its answer to tools/list has no tools")
    return len(tools)


def _read_lines(process: "subprocess.Popen[bytes]", answers: "SimpleQueue[bytes]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(line)
    answers.put(b"")


def _wait_for_answer(answers: "SimpleQueue[bytes]", request: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    """Return the result of a request; skip notifications."""
    while True:
        try:
            line = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            raise NoTools(f"it did not answer {request['method']} within {MCP_WITHIN_S:g} s") from None
        if not line:
            raise NoTools(f"it ended without an answer to {request['method']}")
        try:
            message = json.loads(line)
        except ValueError as error:
            raise NoTools(f"it answered {request['method']} with something other than JSON") from error
        if isinstance(message, dict) and message.get("id") == request["id"]:
            result = message.get("result")
            if not isinstance(result, dict):
                raise NoTools(f"it refused {request['method']}: {message.get('error')}")
            return result


def _end(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    # It may have ended with unread input.
    with suppress(OSError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(MCP_END_WITHIN_S)
    # Also what it has started: that may hold its output open.
    kill_group(process.pid)
