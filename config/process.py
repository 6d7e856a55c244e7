"""Start long-running programs: options, settings, log, process name, role, parent, threads and heaps of libraries."""

import argparse
import json
import logging
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
from filelock import FileLock, Timeout

from config.file_modes import make_umask_private
from config.operating_system import find_libc_function, kill_process, register_fork_hooks
from config.settings import Settings, forget_workspace_variable, load_settings
from config.toml_files import SettingsError

PARENT_CHECK_S = 0.5
# `Role.is_held` of another process takes the lock briefly; the next holder must wait for it.
LOOK_S = 0.5
# Exit code (EX_UNAVAILABLE of sysexits.h) if another process has the role or the port: a restart cannot help.
EXIT_IN_USE = 69


def process_owner() -> str:
    """Return the name of this process (host, process id, start time), by which others can check whether it is alive."""
    return f"{socket.gethostname()}:{os.getpid()}:{psutil.Process().create_time():.2f}"


def thread_owner(process: str) -> str:
    """Return the name of this thread of a process; other threads have their own leases."""
    thread = threading.current_thread()
    return process if thread is threading.main_thread() else f"{process}/{thread.name}"


def is_alive(owner: str) -> bool:
    """Return whether the named process is alive. A process on another host counts as alive until its lease expires."""
    host, pid, started = owner.partition("/")[0].rsplit(":", 2)
    if host != socket.gethostname():
        return True
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" == started
    except psutil.NoSuchProcess:
        return False


class RoleInUse(Exception):
    """Report that another process already has a role in this data directory."""

    def __init__(self, role: str, pid: int | None) -> None:
        super().__init__(f"{role} is already running" + (f" (pid {pid})" if pid else ""))
        self.role = role
        self.pid = pid


class Role:
    """Take a role (`up`, `web`, `scheduler`) in a data directory for as long as this process lives.

    The operating system releases the lock when the process ends, even if it is killed.
    """

    def __init__(self, home: Path, name: str) -> None:
        self.name = name
        self._note = home / f"{name}.pid"
        self._lock = FileLock(home / f"{name}.lock", timeout=0)

    def take(self) -> None:
        """Take the role, or raise RoleInUse."""
        try:
            self._lock.acquire(timeout=LOOK_S, poll_interval=0.02)
        except Timeout as error:
            raise RoleInUse(self.name, self.holder()) from error
        self._note.write_text(json.dumps({"pid": os.getpid(), "owner": process_owner()}), encoding="utf-8")

    def release(self) -> None:
        """Release the role; do nothing if another process has it by now."""
        if not self._lock.is_locked:
            return
        self._note.unlink(missing_ok=True)
        self._lock.release()

    def holder(self) -> int | None:
        """Return the process id of the living holder, or None if there is no holder or it is just starting."""
        if not self.is_held():
            return None
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            # A killed holder leaves its note behind until the next holder replaces it. On a shared disk, the holder
            # may live on another host, where its pid means nothing here.
            here = note["owner"].startswith(f"{socket.gethostname()}:")
            return int(note["pid"]) if here and is_alive(note["owner"]) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def is_held(self) -> bool:
        """Return whether a process, possibly this one, has the role."""
        if self._lock.is_locked:
            return True
        try:
            self._lock.acquire()
        except Timeout:
            return True
        except OSError:
            # If no lock can be made, on a full or read-only disk, only the holder's note can answer.
            return self._is_noted_alive()
        self._lock.release()
        return False

    def was_left_locked(self) -> bool:
        """Return whether the last holder ended without releasing the role and no process has taken it since."""
        return self._note.is_file() and not self.is_held()

    def _is_noted_alive(self) -> bool:
        try:
            return is_alive(json.loads(self._note.read_text(encoding="utf-8"))["owner"])
        except (OSError, ValueError, KeyError, TypeError):
            return False


def add_parent_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--stop-with-parent [PID]`; its value is None without the option and 0 without a PID."""
    parser.add_argument(
        "--stop-with-parent",
        nargs="?",
        type=int,
        const=0,
        metavar="PID",
        help="stop when the parent process ends; with PID, also if the parent ended before this process started",
    )


def stop_with_parent(parent: int = 0, ask: signal.Signals = signal.SIGTERM, grace_s: float = 10) -> None:
    """End this process (`ask`, then SIGKILL after the grace period) soon after its parent ended for any reason."""
    watched = parent or os.getppid()
    _start_watch(lambda: os.getppid() == watched, ask, grace_s)


def stop_with_process(pid: int) -> None:
    """End this process as `stop_with_parent` does, after another process ended that need not be its parent."""
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        _start_watch(lambda: False)
    else:
        _start_watch(lambda: lives(process))


def lives(process: psutil.Process) -> bool:
    """Return whether a process is still running; a zombie is not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _start_watch(lives: Callable[[], bool], ask: signal.Signals = signal.SIGTERM, grace_s: float = 10) -> None:
    threading.Thread(target=_watch, args=(lives, ask, grace_s), name="parent-watch", daemon=True).start()


def stop_forks_with_process(ask: signal.Signals, grace_s: float) -> None:
    """End every process that this one forks from now on (`ask`, then SIGKILL) soon after this process ends."""
    # Read before the fork: the child may start after the parent ended.
    forking = [os.getpid()]

    def note() -> None:
        forking[0] = os.getpid()

    register_fork_hooks(note, lambda: stop_with_parent(forking[0], ask, grace_s))


def _watch(lives: Callable[[], bool], ask: signal.Signals, grace_s: float) -> None:
    waiting = threading.Event()
    while lives():
        waiting.wait(PARENT_CHECK_S)
    os.kill(os.getpid(), ask)
    waiting.wait(grace_s)
    kill_process(os.getpid())


# The result of `sys.exc_info`.
ErrorInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
# From malloc.h of the GNU C library.
M_ARENA_MAX = -8


def limit_threads(threads: int) -> None:
    """Limit every BLAS and OpenMP pool that is loaded by now.

    With pools of their default size, libraries and ONNX Runtime compete for the cores: on two cores, entity
    extraction runs three times as fast with one OpenBLAS thread as with two.
    """
    # Only processes that load a model have such pools.
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)


def limit_heaps(heaps: int) -> None:
    """Limit the number of heaps that the threads of this process share, with the GNU C library.

    By default it creates up to eight heaps per core and rarely frees them: with two heaps, a web server that answers
    eight clients takes 46 MiB less and is as fast.
    """
    if mallopt := find_libc_function("mallopt"):
        mallopt(M_ARENA_MAX, heaps)


def trim_heap() -> None:
    """Return freed memory to the system; the GNU C library keeps it otherwise."""
    if trim := find_libc_function("malloc_trim"):
        trim(0)


LOG_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start_program(
    command: str, description: str | None, redact: Callable[[str], str], arguments: Sequence[str] | None = None
) -> Settings:
    """Read the command line (or `arguments`) and the settings, watch the parent if asked to, and set up logging."""
    make_umask_private()
    parser = argparse.ArgumentParser(prog=command, description=description)
    add_parent_option(parser)
    parent = parser.parse_args(arguments).stop_with_parent
    if parent is not None:
        stop_with_parent(parent)
    forget_workspace_variable()
    try:
        settings = load_settings()
    except SettingsError as error:
        sys.exit(str(error))
    configure_logging(settings.log_level, redact, shows_values=not settings.paths.store_key.exists())
    settings.paths.ensure()
    return settings


def run_in_role(role_name: str, settings: Settings, run: Callable[[Settings], int]) -> int:
    """Run while holding a role of the data directory; return EXIT_IN_USE if another process has it."""
    role = Role(settings.paths.root, role_name)
    try:
        role.take()
    except RoleInUse as error:
        print(error, file=sys.stderr)  # noqa: T201 - this is the command's answer
        return EXIT_IN_USE
    try:
        return run(settings)
    finally:
        role.release()


class RedactingFormatter(logging.Formatter):
    """Format a log record and mask secrets in it.

    Unless `shows_values` is set, an error is logged by type and origin only, because its message may quote a memory.
    """

    def __init__(self, redact: Callable[[str], str], *, shows_values: bool = True) -> None:
        super().__init__(LOG_LINE)
        self._redact = redact
        self._shows_values = shows_values

    def format(self, record: logging.LogRecord) -> str:
        """Return the formatted line without secrets."""
        return self._redact(super().format(record))

    def formatException(self, ei: ErrorInfo) -> str:  # noqa: N802 - the name of logging's method
        """Return a traceback; in an encrypted data directory, without the error's message."""
        kind, _, trace = ei
        if self._shows_values or kind is None:
            return super().formatException(ei)
        return f"{''.join(traceback.format_tb(trace))}{kind.__name__}"


def configure_logging(level: str, redact: Callable[[str], str], *, shows_values: bool = True) -> None:
    """Log to standard error, including errors that end a thread, through the redacting formatter."""
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter(redact, shows_values=shows_values))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    sys.excepthook = lambda *error: _log_uncaught(error)
    threading.excepthook = lambda error: _log_uncaught((error.exc_type, error.exc_value, error.exc_traceback))
    # These libraries log every request, job tick and task at INFO.
    for noisy in ("apscheduler", "huey", "sentence_transformers", "waitress.queue"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level]))


def _log_uncaught(error: Any) -> None:
    logging.getLogger(__name__).critical("%s ends", threading.current_thread().name, exc_info=error)
