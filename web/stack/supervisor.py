"""The supervisor behind `reverie up`: start the processes of the stack, restart crashed ones, and stop all together.

A stack can also stop automatically: after a time without requests, if no work is pending and no job runs.
"""

import contextlib
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any

from config.operating_system import STOP_SIGNALS, kill_group, new_process_group
from config.process import EXIT_IN_USE
from config.settings import Settings
from pipeline.kernel.errors import ReverieError
from web.stack.processes import wait_until
from web.stack.procfile import ProcessCommand

if TYPE_CHECKING:
    from web.http.client import Client

# The time to read the last output of a process that has ended.
OUTPUT_S = 1.0
# The name of the supervisor's own lines in the log.
OWN_NAME = "reverie"
GRACE_S = 2.5
# How long the other processes wait for the first one to be ready.
HOLD_S = 10.0
# Time until the next check if work is pending, a job runs, or the server does not answer.
AGAIN_S = 15.0
TIMEOUT_S = 5.0

log = logging.getLogger(__name__)


Say = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delay before a restart: it doubles with each failure, and is reset after a run of `steady_s`."""

    first_s: float = 0.5
    longest_s: float = 30.0
    steady_s: float = 30.0

    def failures(self, earlier: int, lived_s: float) -> int:
        """Return the number of failures in a row, including this one."""
        return 1 if lived_s >= self.steady_s else earlier + 1

    def delay_s(self, failures: int) -> float:
        """Return the delay in seconds after a number of failures in a row."""
        return float(min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, 30)))


@dataclass(frozen=True, slots=True)
class _Stop:
    why: str


@dataclass(frozen=True, slots=True)
class _Ended:
    name: str
    code: int


@dataclass(frozen=True, slots=True)
class _FirstIsReady:
    """Event: the other processes may start."""


class _Child:
    """One process of the stack with its restarts."""

    def __init__(self, command: ProcessCommand) -> None:
        self.command = command
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.failures = 0
        self.due = 0.0

    def start(self, say: Say, ended: Callable[[_Ended], None], environment: Mapping[str, str] | None) -> None:
        """Start the process in a new group, so that Ctrl-C in a terminal reaches only the supervisor."""
        self.process = subprocess.Popen(  # noqa: S603 - our own commands
            self.command.below(os.getpid()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            **new_process_group(),
        )
        self.started = time.monotonic()
        name, wait = self.command.name, self.process.wait
        output = threading.Thread(target=_pump, args=(self.process, name, say), name=f"{name}-output", daemon=True)
        output.start()

        def report_end() -> None:
            code = wait()
            # The last lines say why it ended. A child that keeps the pipe open must not delay the restart.
            output.join(OUTPUT_S)
            ended(_Ended(name, code))

        threading.Thread(target=report_end, name=f"{name}-wait", daemon=True).start()

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the process, which stops its own children."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process and all its children."""
        if self.process is not None:
            # Its exit was not collected yet, so no other group can have its id.
            kill_group(self.process.pid)


def _pump(process: "subprocess.Popen[bytes]", name: str, say: Say) -> None:
    assert process.stdout is not None
    with process.stdout as output:
        for line in output:
            say(name, line.decode(errors="replace").rstrip())


class Supervisor:
    """Keeps a set of commands running until it is stopped."""

    def __init__(
        self,
        commands: Sequence[ProcessCommand],
        say: Say,
        *,
        backoff: Backoff | None = None,
        grace_s: float = GRACE_S,
        on_stop: Callable[[], None] = lambda: None,
        is_first_ready: Callable[[], bool] = lambda: True,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._children = {command.name: _Child(command) for command in commands}
        self._say = say
        self._backoff = backoff or Backoff()
        self._grace_s = grace_s
        self._on_stop = on_stop
        self._is_first_ready = is_first_ready
        self._environment = environment
        self._events: SimpleQueue[_Stop | _Ended | _FirstIsReady] = SimpleQueue()

    def run(self) -> int:
        """Run until a signal or `stop` (return 0), or until a process finds its role or port in use (return 1).

        The first process starts alone: the others wait until it is ready, at most HOLD_S, to leave it the processor.
        `on_stop` is called before the processes are stopped.
        """
        with self._signals():
            try:
                return self._keep_running()
            finally:
                self._on_stop()
                self._stop_all()

    def stop(self, why: str = signal.SIGTERM.name) -> None:
        """Request a stop, as a signal does."""
        self._events.put(_Stop(why))

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        def note(number: int, _frame: FrameType | None) -> None:
            self.stop(signal.Signals(number).name)

        # `nohup` ignores SIGHUP; keep that.
        caught = [s for s in STOP_SIGNALS if s.name != "SIGHUP" or signal.getsignal(s) is not signal.SIG_IGN]
        before = {number: signal.signal(number, note) for number in caught}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _keep_running(self) -> int:
        self._hold_back_others()
        while True:
            for child in self._down():
                if child.due <= time.monotonic():
                    child.start(self._say, self._events.put, self._environment)
            match self._next(min((child.due for child in self._down()), default=None)):
                case _Stop(why):
                    self._say(OWN_NAME, f"{why}: stopping")
                    return 0
                case _Ended(name, code) if code == EXIT_IN_USE:
                    self._children[name].process = None
                    self._say(OWN_NAME, f"{name} cannot run; stopping")
                    return 1
                case _Ended(name, code):
                    self._put_off(self._children[name], code)
                case _FirstIsReady():
                    self._let_others_start()

    def _hold_back_others(self) -> None:
        for child in list(self._children.values())[1:]:
            child.due = time.monotonic() + HOLD_S
        threading.Thread(target=self._await_first, name="first-ready", daemon=True).start()

    def _await_first(self) -> None:
        if wait_until(self._is_first_ready, HOLD_S):
            self._events.put(_FirstIsReady())

    def _let_others_start(self) -> None:
        for child in self._down():
            # A crashed process keeps its delay.
            if not child.failures:
                child.due = 0.0

    def _down(self) -> list[_Child]:
        return [child for child in self._children.values() if child.process is None]

    def _next(self, until: float | None) -> _Stop | _Ended | _FirstIsReady | None:
        try:
            return self._events.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
        except Empty:
            return None

    def _put_off(self, child: _Child, code: int) -> None:
        now = time.monotonic()
        child.process = None
        child.failures = self._backoff.failures(child.failures, now - child.started)
        delay = self._backoff.delay_s(child.failures)
        child.due = now + delay
        self._say(OWN_NAME, f"{child.command.name} ended ({_format_exit(code)}); starting it again in {delay:g} s")

    def _stop_all(self) -> None:
        running = {name: child for name, child in self._children.items() if child.process is not None}
        for child in running.values():
            child.ask_to_stop()
        self._collect(running, time.monotonic() + self._grace_s)
        for name, child in running.items():
            self._say(OWN_NAME, f"{name} does not stop; killing it")
            child.kill()
        self._collect(running, None)

    def _collect(self, running: dict[str, _Child], until: float | None) -> None:
        while running:
            event = self._next(until)
            if event is None:
                return
            if isinstance(event, _Ended):
                self._children[event.name].process = None
                running.pop(event.name, None)


def _format_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def watch_idleness(settings: Settings, stop: Callable[[str], None], again_s: float = AGAIN_S) -> Callable[[], None]:
    """Call `stop` with the reason after `idle_exit_min` without use; return a function that ends the watch."""
    limit_s = settings.idle_exit_min * 60
    ended = threading.Event()

    def look() -> None:
        wait_s: float | None = limit_s
        while wait_s is not None and not ended.wait(wait_s):
            # Imported minutes after the start, which need not wait for it.
            from web.http.client import Client

            # A new client each time: the server creates the token at its first start.
            with Client.from_settings(settings, timeout_s=TIMEOUT_S) as client:
                wait_s = next_look_s(client, limit_s, again_s)
        if wait_s is None:
            stop(f"{settings.idle_exit_min:g} min without a request")

    if limit_s:
        threading.Thread(target=look, name="idleness", daemon=True).start()
    return ended.set


def next_look_s(client: "Client", limit_s: float, again_s: float) -> float | None:
    """Return the seconds until the next check, None if the stack may stop."""
    try:
        left = limit_s - float(client.health()["idle_s"])
        if left > 0:
            # The stack cannot be idle long enough before this time.
            return left
        return again_s if _is_busy(client) else None
    except ReverieError as error:
        log.debug("not known to be idle: %s", error)
        return again_s


def _is_busy(client: "Client") -> bool:
    names = [workspace["id"] for workspace in client.workspaces()["items"]]
    return any(_has_work(client, name) for name in names)


def _has_work(client: "Client", workspace: str) -> bool:
    if any(client.queue(workspace)["pending"].values()):
        return True
    jobs: dict[str, Any] = client.call("GET", "/v1/jobs", workspace=workspace)
    # An interrupted run continues immediately.
    return any(job["last_run"] is not None and job["last_run"]["ended_at"] is None for job in jobs["items"])
