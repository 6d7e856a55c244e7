"""Run the hooks of a host as the host does, with a prompt that stores something and a prompt that recalls it.

Nothing is stored in the user's workspaces: the server handles these events in a scratch data directory (decision
0071). The host's own program and models are never started.
"""

import json
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.data_directory import NoDataDirectory, find_data_directory
from config.operating_system import kill_group, new_process_group
from config.settings import Settings, environment_with
from config.toml_files import SettingsError
from pipeline.errors import ReverieError
from web.client import Client
from web.hooks.client import PROBE_VARIABLE, address, read_variables
from web.hosts.configured_commands import HookCommand

# A busy machine, or a server that loads at its first prompt, may be slower than a hook waits: an event without an
# answer is sent again after each of these times.
PAUSES_S = (0.0, 0.5, 1.0, 2.0)
MOST_ERROR_CHARS = 200
# The events of hosts that the probe sends, by step, with the names of all hosts.
START, STORE, RECALL, TURN = "session start", "store", "recall", "turn"
EVENTS_OF_STEP = {
    START: ("SessionStart", "sessionStart"),
    STORE: ("UserPromptSubmit", "BeforeAgent", "beforeSubmitPrompt"),
    RECALL: ("UserPromptSubmit", "BeforeAgent", "beforeSubmitPrompt"),
    # Cursor's hooks deliver no turns: they are imported.
    TURN: ("Stop", "AfterAgent"),
}
# Hosts whose hooks cannot be probed, and why.
UNPROBED = {"antigravity": "it writes its prompts into a log of its own instead of its events"}
# The variables by which hosts tell a hook the folder of the project.
FOLDER_VARIABLES = {
    "claude-code": ("CLAUDE_PROJECT_DIR",),
    "gemini": ("GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"),
    "qwen-code": ("QWEN_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
}
PROBES = "/v1/hook-probes"
HOW_TO_RESTART = "restart Reverie: `reverie down`, then `reverie up --daemon`"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a probe: how long it took, and why it failed and how to repair that, if it failed."""

    name: str
    took_ms: float
    problem: str | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class _Ran:
    """A hook that ran: its exit code (None after a timeout), its output and errors, and how long it took."""

    code: int | None
    output: bytes
    errors: str
    took_ms: float


@dataclass(slots=True)
class _HookRunner:
    """Runs the commands of one host in a scratch folder."""

    host: str
    probe_id: str
    folder: str
    started: dict[str, list[_Ran]] = field(default_factory=dict)

    def run(self, step: str, command: HookCommand, event: Mapping[str, Any]) -> _Ran:
        """Run a command with an event on its standard input, again if it answers nothing although it should."""
        runs = self.started.setdefault(step, [])
        for attempt, pause_s in enumerate(PAUSES_S):
            time.sleep(pause_s)
            # The server takes the same event of the same session for a second delivery, and answers nothing.
            session = f"reverie-{self.probe_id}-{step.replace(' ', '-')}-{attempt}"
            runs.append(self._run_once(command, {**event, "session_id": session}))
            if runs[-1].output or runs[-1].code != 0 or step not in (STORE, RECALL):
                break
        return runs[-1]

    def _run_once(self, command: HookCommand, event: Mapping[str, Any]) -> _Ran:
        variables = environment_with({PROBE_VARIABLE: self.probe_id})
        variables |= dict.fromkeys(FOLDER_VARIABLES.get(self.host, ()), self.folder)
        sent, began = json.dumps({"cwd": self.folder, **event}).encode(), time.perf_counter()
        try:
            with subprocess.Popen(  # noqa: S603 - the command that the host runs, without a shell
                list(command.words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=variables,
                cwd=self.folder,
                **new_process_group(),
            ) as process:
                code, output, errors = _wait_for_end(process, sent, command.timeout_s)
        except OSError as error:
            code, output, errors = -1, b"", str(error)
        return _Ran(code, output, errors, (time.perf_counter() - began) * 1000)


def _wait_for_end(process: "subprocess.Popen[bytes]", sent: bytes, timeout_s: float) -> tuple[int | None, bytes, str]:
    """Return exit code, output and errors of a hook; end it, with what it has started, if it takes too long."""
    try:
        output, errors = process.communicate(sent, timeout_s)
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        process.communicate()
        return None, b"", f"it did not end within {timeout_s:g} s"
    return process.returncode, output, errors.decode(errors="replace")


def find_command_problem(commands: Sequence[HookCommand], settings: Settings) -> tuple[str, str] | None:
    """Return why a host's commands cannot reach this data directory, and the remedy; None if they can."""
    remedy = f"`reverie setup {commands[0].host}` writes the hooks again"
    for command in commands:
        if shutil.which(command.words[0]) is None:
            return f"{command.file} names a program that does not exist: {command.words[0]}", remedy
        variables = environment_with(read_variables(list(command.words)))
        try:
            home = Path(find_data_directory(variables))
            host, port = address(str(home), variables)
        except (NoDataDirectory, SettingsError, ReverieError, ValueError) as error:
            return f"{command.file}: {error}", remedy
        if not (home.exists() and home.samefile(settings.paths.root)):
            return f"{command.file} names another data directory, {home}", remedy
        if (host, port) != (settings.reachable_host, settings.port):
            return f"{command.file} names another address, {host}:{port}, than {settings.url}", remedy
    return None


def probe_hooks(client: Client, commands: Sequence[HookCommand]) -> list[Step]:
    """Run the hooks of one host, and return the steps, the first failed one last."""
    host, by_event = commands[0].host, {command.event: command for command in commands}
    code = f"heartbeat-{secrets.token_hex(4)}"
    begun = client.call("POST", PROBES)
    runner: _HookRunner | None = None
    try:
        with tempfile.TemporaryDirectory(prefix="reverie-probe-") as folder:
            runner = _HookRunner(host, begun["id"], folder)
            for step, event in _list_events(by_event, code):
                runner.run(step, by_event[event["hook_event_name"]], event)
    finally:
        report = client.call("DELETE", f"{PROBES}/{begun['id']}", query={"host": host})
    return list(_judge(runner, report, code, begun["problem"]))


def _list_events(by_event: Mapping[str, HookCommand], code: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a probe for the steps that a host has hooks for."""
    stored = f"Remember that: the heartbeat code of the Reverie probe is {code}"
    said = [{"role": "user", "content": stored}, {"role": "assistant", "content": "Noted."}]
    fields: dict[str, dict[str, Any]] = {
        START: {"source": "startup"},
        STORE: {"prompt": stored},
        RECALL: {"prompt": "What is the heartbeat code of the Reverie probe?"},
        # Gemini CLI sends the turn in its own fields, and other hosts name a transcript of their format.
        TURN: {"prompt": stored, "prompt_response": "Noted.", "said": said},
    }
    for step, names in EVENTS_OF_STEP.items():
        event = next((name for name in names if name in by_event), None)
        if event is not None:
            yield step, {"hook_event_name": event, **fields[step]}


def _judge(runner: _HookRunner | None, report: Mapping[str, Any], code: str, problem: str | None) -> Iterator[Step]:
    """Yield the steps of a probe until the first that failed."""
    started = {} if runner is None else runner.started
    arrived = [event["event"] for event in report["events"]]
    for name, runs in started.items():
        took_ms = sum(run.took_ms for run in runs)
        found = _find_problem(name, runs[-1], report, arrived, code)
        if found is None and name == STORE and problem is not None:
            found = f"the workspace of this folder accepts no writes: {problem}", "`reverie doctor` checks the store"
        yield Step(name, took_ms, *(found or (None, None)))
        if found is not None:
            return


def _find_problem(
    step: str, ran: _Ran, report: Mapping[str, Any], arrived: Sequence[str], code: str
) -> tuple[str, str] | None:
    host_remedy = "`reverie setup` writes the hooks again"
    if ran.code != 0:
        how = "did not end in time" if ran.code is None else f"ended with exit code {ran.code}"
        said = " ".join(ran.errors.split())[-MOST_ERROR_CHARS:]
        return f"the hook {how}: {said}", host_remedy
    names = {START: "SessionStart", STORE: "UserPromptSubmit", RECALL: "UserPromptSubmit", TURN: "Stop"}
    if names[step] not in arrived:
        return "the hook ran, but its event did not reach the server in time", HOW_TO_RESTART
    reasons = [event["reason"] for event in report["events"] if event["event"] == names[step] and event["reason"]]
    reason = f": {reasons[-1]}" if reasons else ""
    if step == STORE and not report["memories"]:
        return f"the event arrived, but no memory was stored{reason}", "`reverie logs errors` may have the reason"
    if step == RECALL and code.encode() not in ran.output:
        return f"the memory was stored, but the next prompt did not show it{reason}", HOW_TO_RESTART
    if step == TURN and not report["is_turn_stored"]:
        return f"the event arrived, but the turn was not stored{reason}", "`reverie logs errors` may have the reason"
    return None
