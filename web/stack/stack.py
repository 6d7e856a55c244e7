"""The stack of a data directory, for the programs that start, await, replace or stop it in the background.

Only the hook client does not use it: an agent waits for that program, which starts `reverie up --daemon` instead.
An agent also waits for the first start, so functions import what takes long.
"""

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING

from config.paths import list_problems
from config.program_variables import select_daemon_variables
from config.settings import Settings, environment_with
from pipeline.kernel.errors import ReverieError, ServerUnreachable, StoreUnavailable
from web.stack.detached import start_detached

if TYPE_CHECKING:
    import psutil

START_DEADLINE_S = 60.0
POLL_S = 0.1
HEALTH_TIMEOUT_S = 5.0
# A larger log is rotated when the stack starts.
LARGEST_LOG = 10 * 1024 * 1024
# The arguments of Python that run the stack of the data directory in the environment, also as a service.
UP = ("-u", "-I", "-m", "reverie", "up")


class StackState(StrEnum):
    """What runs for a data directory. Another program at its address is an error, StackInUse."""

    NONE = "none"
    STARTING = "starting"
    READY = "ready"
    OTHER_VERSION = "other version"


class Stack:
    """The stack of a data directory. With `ends_with_process`, a stack that this object starts ends with this process.

    Several threads may use one object.
    """

    def __init__(self, settings: Settings, *, ends_with_process: bool = False) -> None:
        self.settings = settings
        self.log = settings.paths.logs / "reverie.log"
        # The supervisor that this object has started.
        self.pid: int | None = None
        self._ends_with_process = ends_with_process
        self._log_offset = 0
        self._lock = threading.Lock()

    def look(self) -> StackState:
        """Return what runs now."""
        from web.http.client import Client
        from web.version import BUILD

        try:
            # The health of the server does not depend on the workspace of this folder.
            with Client.from_settings(self.settings, timeout_s=HEALTH_TIMEOUT_S) as client:
                build = client.health().get("build")
        except ServerUnreachable:
            return StackState.STARTING if self._may_start() else StackState.NONE
        return StackState.READY if build == BUILD else StackState.OTHER_VERSION

    def _may_start(self) -> bool:
        from web.stack import processes

        return self.is_started() if self.pid is not None else bool(processes.list_running(self.settings))

    def is_started(self) -> bool:
        """Return whether the supervisor that this object has started runs; it is not a child of this process."""
        if self.pid is None:
            return False
        import psutil

        from config.process import lives

        try:
            return lives(psutil.Process(self.pid))
        except psutil.NoSuchProcess:
            return False

    def start(self) -> None:
        """Start the stack, by the installed service if there is one, unless the one that was started still runs."""
        from web.stack.service_manager import start_installed

        with self._lock:
            if self.is_started():
                return
            self.settings.paths.ensure()
            if self.log.exists() and self.log.stat().st_size > LARGEST_LOG:
                self.log.replace(self.log.with_suffix(".log.1"))
            self._log_offset = self.log.stat().st_size if self.log.exists() else 0
            options = ("--exit-with-parent", str(os.getpid())) if self._ends_with_process else ()
            self.pid = (None if options else start_installed(self.settings)) or start_detached(
                [sys.executable, *UP, *options],
                select_daemon_variables(environment_with({}), self.settings.paths.root),
                str(self.log),
            )

    def start_if_stopped(self) -> str | None:
        """Start the stack unless it runs; return why it does not answer, None once it does."""
        if self.look() is StackState.NONE:
            self.start()
        return self.wait()

    def wait(self) -> str | None:
        """Wait until the stack answers; return why it does not, None once it answers."""
        deadline = time.monotonic() + START_DEADLINE_S
        while (state := self.look()) is StackState.STARTING:
            if time.monotonic() >= deadline:
                self._terminate()
                return f"no answer within {START_DEADLINE_S:.0f} s"
            time.sleep(POLL_S)
        return "it stopped right after the start" if state is StackState.NONE else None

    def read_log(self, most_lines: int) -> list[str]:
        """Return the last lines that the start wrote to the log."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(self._log_offset)
            return file.read().decode(errors="replace").splitlines()[-most_lines:]

    def explain(self) -> str:
        """Return why no server answers."""
        state = "is still starting" if self.pid is None or self.is_started() else "could not be started"
        return f"Reverie {state} at {self.settings.url}. Try again in a moment, or see {self.log}."

    def close(self) -> None:
        """Stop the stack if it ends with this process."""
        if self._ends_with_process:
            self._terminate()

    def _terminate(self) -> None:
        if self.pid is not None and self.is_started():
            os.kill(self.pid, signal.SIGTERM)

    def has_died(self) -> bool:
        """Return whether it ended without being stopped; raise StoreUnavailable if nothing can run there."""
        from web.stack.processes import supervisor_role

        check_data_directory(self.settings)
        return supervisor_role(self.settings).was_left_locked()

    def stop_older(self) -> bool:
        """Stop the stack if it runs other code and may be replaced; return whether it is stopped.

        A stack in a terminal, of `reverie team serve` or of another installation is left: its user restarts it. systemd
        restarts its own.
        """
        from web.stack import processes
        from web.stack.service_manager import restart_installed

        running = processes.list_running(self.settings)
        supervisor = next((process for process in running if process.name == processes.SUPERVISOR), None)
        if supervisor is None or not _is_replaceable(supervisor.process) or not self._has_other_version():
            return False
        if restart_installed(self.settings, supervisor.pid):
            return False
        processes.stop_all(self.settings)
        return not processes.list_running(self.settings)

    def _has_other_version(self) -> bool:
        with suppress(ReverieError):
            return self.look() is StackState.OTHER_VERSION
        return False


def check_data_directory(settings: Settings) -> None:
    """Raise StoreUnavailable, with what to do, if nothing can run on the data directory."""
    if problems := list_problems(settings.paths.root):
        raise StoreUnavailable("; ".join(problems))


def _is_replaceable(process: "psutil.Process") -> bool:
    """Return whether a supervisor of this installation runs in the background."""
    import psutil

    with suppress(psutil.Error):
        words = process.cmdline()
        return process.terminal() is None and words[:1] == [sys.executable] and words[-3:] == list(UP[-3:])
    return False
