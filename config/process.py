"""How every long-running program starts and lives: its options, settings and log, its name, its role, its parent.

And how many threads and heaps native libraries take on a machine that runs several processes.
"""

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

from config.modes import close_umask
from config.operating_system import call_around_fork, find_libc_function, kill_process
from config.settings import Settings, SettingsError, forget_workspace_variable, load_settings

PARENT_CHECK_S = 0.5
# Another process's look at a lock (`Role.is_held`) takes it for a moment; that must not turn its next holder away.
LOOK_S = 0.5
# A program ends with this code (EX_UNAVAILABLE of sysexits.h) when its role or its port belongs to another one:
# starting it again cannot help.
EXIT_TAKEN = 69


def process_owner() -> str:
    """Return this process's name, by which others can tell whether it still lives: host, process id, start time."""
    return f"{socket.gethostname()}:{os.getpid()}:{psutil.Process().create_time():.2f}"


def thread_owner(process: str) -> str:
    """Return the name of this thread of a process: what another thread holds is not its own."""
    thread = threading.current_thread()
    return process if thread is threading.main_thread() else f"{process}/{thread.name}"


def is_alive(owner: str) -> bool:
    """Tell whether the named process lives; one on another host is taken to live, its lease decides."""
    host, pid, started = owner.partition("/")[0].rsplit(":", 2)
    if host != socket.gethostname():
        return True
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" == started
    except psutil.NoSuchProcess:
        return False


class RoleTaken(Exception):
    """Say that another process already holds a role in this home."""

    def __init__(self, role: str, pid: int | None) -> None:
        super().__init__(f"{role} is already running" + (f" (pid {pid})" if pid else ""))
        self.role = role
        self.pid = pid


class Role:
    """Hold a role (`up`, `web`, `scheduler`) of a home for as long as this process lives.

    The lock is the operating system's, so it goes with its holder however that one ends.
    """

    def __init__(self, home: Path, name: str) -> None:
        self.name = name
        self._note = home / f"{name}.pid"
        self._lock = FileLock(home / f"{name}.lock", timeout=0)

    def take(self) -> None:
        """Take the role or raise RoleTaken."""
        try:
            self._lock.acquire(timeout=LOOK_S, poll_interval=0.02)
        except Timeout as error:
            raise RoleTaken(self.name, self.holder()) from error
        self._note.write_text(json.dumps({"pid": os.getpid(), "owner": process_owner()}), encoding="utf-8")

    def release(self) -> None:
        """Give the role back; one that was given back may be another's by now."""
        if not self._lock.is_locked:
            return
        self._note.unlink(missing_ok=True)
        self._lock.release()

    def holder(self) -> int | None:
        """Return the process id of the living holder, None when nobody holds the role or has just taken it."""
        if not self.is_held():
            return None
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            # A holder that was killed leaves its note, which the next one replaces only after it has the lock; and on
            # a shared disk the holder may live on another host, where its pid says nothing here.
            here = note["owner"].startswith(f"{socket.gethostname()}:")
            return int(note["pid"]) if here and is_alive(note["owner"]) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def is_held(self) -> bool:
        """Tell whether some process, this one included, holds the role."""
        if self._lock.is_locked:
            return True
        try:
            self._lock.acquire()
        except Timeout:
            return True
        except OSError:
            # Where no lock can be made, on a full or read-only disk, only the note of its holder is left to go by.
            return self._is_noted_alive()
        self._lock.release()
        return False

    def was_abandoned(self) -> bool:
        """Tell whether the last holder ended without giving the role back, and nobody took it since."""
        return self._note.is_file() and not self.is_held()

    def _is_noted_alive(self) -> bool:
        try:
            return is_alive(json.loads(self._note.read_text(encoding="utf-8"))["owner"])
        except (OSError, ValueError, KeyError, TypeError):
            return False


def add_parent_option(parser: argparse.ArgumentParser) -> None:
    """Add `--stop-with-parent [PID]`; its value is None without the option and 0 without a PID."""
    parser.add_argument(
        "--stop-with-parent",
        nargs="?",
        type=int,
        const=0,
        metavar="PID",
        help="end when the starting process ends; with its PID, also when it ended before this one could look",
    )


def stop_with_parent(parent: int = 0, ask: signal.Signals = signal.SIGTERM, grace_s: float = 10) -> None:
    """End this process (`ask`, after the grace SIGKILL) soon after its parent has gone, however that one ended."""
    watched = parent or os.getppid()
    threading.Thread(target=_watch, args=(watched, ask, grace_s), name="parent-watch", daemon=True).start()


def stop_forks_with_this(ask: signal.Signals, grace_s: float) -> None:
    """Let every process that this one forks from now on end (`ask`, then SIGKILL) soon after this one."""
    # Noted before the fork: the child may find its parent gone already.
    forking = [os.getpid()]

    def note() -> None:
        forking[0] = os.getpid()

    call_around_fork(note, lambda: stop_with_parent(forking[0], ask, grace_s))


def _watch(parent: int, ask: signal.Signals, grace_s: float) -> None:
    waiting = threading.Event()
    while os.getppid() == parent:
        waiting.wait(PARENT_CHECK_S)
    os.kill(os.getpid(), ask)
    waiting.wait(grace_s)
    kill_process(os.getpid())


# As `sys.exc_info` returns it.
ErrorInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
# From malloc.h of the GNU C library.
M_ARENA_MAX = -8


def limit_threads(threads: int) -> None:
    """Limit every BLAS and OpenMP pool that is loaded by now.

    Beside ONNX Runtime, pools of their default size fight for the cores: on two of them, entity extraction runs three
    times as fast with one OpenBLAS thread as with two.
    """
    # Only who loads a model has such pools.
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)


def limit_heaps(heaps: int) -> None:
    """Let the threads of this process share that many heaps, where the C library is GNU's.

    It makes up to eight a core and gives little of them back: a web server that answers eight clients takes 46 MiB less
    with two, and no longer.
    """
    if mallopt := find_libc_function("mallopt"):
        mallopt(M_ARENA_MAX, heaps)


def trim_heap() -> None:
    """Give the system back what was freed, where the C library is GNU's, which keeps it unless asked."""
    if trim := find_libc_function("malloc_trim"):
        trim(0)


LOG_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start_program(
    command: str, description: str | None, redact: Callable[[str], str], arguments: Sequence[str] | None = None
) -> Settings:
    """Read the command line (`arguments` of it) and the settings, watch the parent if asked to, and set up logging."""
    close_umask()
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
    """Run while holding a role of the home; return EXIT_TAKEN when another process holds it."""
    role = Role(settings.paths.root, role_name)
    try:
        role.take()
    except RoleTaken as error:
        print(error, file=sys.stderr)  # noqa: T201 - this is the command's answer
        return EXIT_TAKEN
    try:
        return run(settings)
    finally:
        role.release()


class RedactingFormatter(logging.Formatter):
    """Format a record, then mask what the given function calls secret.

    Unless it `shows_values`, an error is logged without its message, which may quote a memory: its type and where it
    was raised remain.
    """

    def __init__(self, redact: Callable[[str], str], *, shows_values: bool = True) -> None:
        super().__init__(LOG_LINE)
        self._redact = redact
        self._shows_values = shows_values

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line without secrets."""
        return self._redact(super().format(record))

    def formatException(self, ei: ErrorInfo) -> str:  # noqa: N802 - the name of logging's method
        """Return a traceback, in an encrypted data directory without the error's message."""
        kind, _, trace = ei
        if self._shows_values or kind is None:
            return super().formatException(ei)
        return f"{''.join(traceback.format_tb(trace))}{kind.__name__}"


def configure_logging(level: str, redact: Callable[[str], str], *, shows_values: bool = True) -> None:
    """Send every log line, and every error that ends a thread, to standard error through the redacting formatter."""
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter(redact, shows_values=shows_values))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    sys.excepthook = lambda *error: _log_uncaught(error)
    threading.excepthook = lambda error: _log_uncaught((error.exc_type, error.exc_value, error.exc_traceback))
    # These report every request, job tick and task at INFO, which would bury what matters.
    for noisy in ("apscheduler", "huey", "sentence_transformers", "waitress.queue"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level]))


def _log_uncaught(error: Any) -> None:
    logging.getLogger(__name__).critical("%s ends", threading.current_thread().name, exc_info=error)
