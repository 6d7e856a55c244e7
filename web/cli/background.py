"""Start the stack in the background, and start it again after it died."""

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import click

from config.data_directory_checks import list_problems
from config.program_variables import select_daemon_variables
from config.settings import Settings, environment_with
from pipeline.errors import ServerUnreachable, StoreUnavailable

START_DEADLINE_S = 60.0
POLL_S = 0.1
# A larger log is rotated when the stack starts.
LARGEST_LOG = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Launched:
    """A stack that was started in the background: its supervisor, its log file, and the log's size before."""

    pid: int
    log: Path
    log_offset: int

    def is_running(self) -> bool:
        """Tell whether the supervisor runs; as it is not our child, its exit code is unknown."""
        import psutil

        try:
            return bool(psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    def stop(self) -> None:
        """Ask the supervisor to stop the stack."""
        if self.is_running():
            os.kill(self.pid, signal.SIGTERM)

    def read_log(self, most_lines: int) -> list[str]:
        """Return the last lines that this start wrote to the log."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(self.log_offset)
            return file.read().decode(errors="replace").splitlines()[-most_lines:]


def launch(settings: Settings) -> Launched:
    """Start the stack in the background without waiting for it; use the installed service if there is one."""
    from web.cli.service_manager import start_installed

    log, offset = _prepare_log(settings)
    pid = start_installed(settings)
    return Launched(_start_up(settings, log) if pid is None else pid, log, offset)


def launch_for_this_process(settings: "Settings") -> Launched:
    """Start a stack that stops when this process ends, without waiting for it."""
    log, offset = _prepare_log(settings)
    return Launched(_start_up(settings, log, "--exit-with-parent", str(os.getpid())), log, offset)


def _prepare_log(settings: "Settings") -> tuple[Path, int]:
    """Return the log file and its size."""
    settings.paths.ensure()
    log = settings.paths.logs / "reverie.log"
    if log.exists() and log.stat().st_size > LARGEST_LOG:
        log.replace(log.with_suffix(".log.1"))
    return log, log.stat().st_size if log.exists() else 0


def _start_up(settings: "Settings", log: Path, *options: str) -> int:
    from web.detached import start_detached

    command = [sys.executable, "-u", "-I", "-m", "web.cli", "up", *options]
    return start_detached(command, select_daemon_variables(environment_with({}), settings.paths.root), str(log))


def start_if_stopped(settings: Settings) -> str | None:
    """Start the stack unless it runs; return why it does not answer, None once it does."""
    from web.cli.processes import list_running

    return None if list_running(settings) else wait_until_ready(settings, launch(settings))


def check_data_directory(settings: Settings) -> None:
    """Raise StoreUnavailable, with what to do, if nothing can run on the data directory."""
    if problems := list_problems(settings.paths.root):
        raise StoreUnavailable("; ".join(problems))


def revive(settings: Settings) -> bool:
    """Restart a stack that ended without being stopped; return whether it answers now.

    Raises StoreUnavailable if nothing can run on the data directory.
    """
    from web.cli.processes import supervisor_role

    check_data_directory(settings)
    if not supervisor_role(settings).was_left_locked():
        return False
    click.echo("Reverie ended unexpectedly; starting it again …", err=True)
    failure = wait_until_ready(settings, launch(settings))
    if failure is not None:
        click.echo(f"Reverie did not start: {failure}", err=True)
    return failure is None


def wait_until_ready(settings: Settings, launched: Launched) -> str | None:
    """Wait until the started stack answers; return why it does not, None once it answers."""
    from web.client import Client

    pause = threading.Event()
    deadline = time.monotonic() + START_DEADLINE_S
    # The health of the server does not depend on the workspace of this folder.
    with Client.from_settings(settings, timeout_s=5) as client:
        while launched.is_running():
            try:
                client.health()
            except ServerUnreachable:
                if time.monotonic() >= deadline:
                    os.kill(launched.pid, signal.SIGTERM)
                    return f"no answer within {START_DEADLINE_S:.0f} s"
            else:
                return None
            pause.wait(POLL_S)
    return "it stopped right after the start"
