"""Find and end the processes of a home, whoever started them."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from config.data_directory import NoDataDirectory, find_data_directory
from config.process import Role
from config.settings import Settings

SUPERVISOR = "supervisor"
STOP_DEADLINE_S = 20.0
POLL_S = 0.05

_MODULES = {"web": "web", "workers.schedule": "scheduler"}
# Of a worker it is the argument of huey's command that tells.
_QUEUE = "workers.tasks.huey"
_ORDER = (SUPERVISOR, "web", "worker", "scheduler")
# A stack that something else starts again and again is not stopped for ever.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Running:
    """A process of a home; `children` counts the processes that a worker has forked."""

    name: str
    process: psutil.Process
    children: int = 0

    @property
    def pid(self) -> int:
        """Return the process id."""
        return int(self.process.pid)

    @property
    def uptime_s(self) -> float:
        """Return the seconds since it started."""
        return max(0.0, time.time() - float(self.process.create_time()))

    def lives(self) -> bool:
        """Tell whether it still runs; one that ended and whose parent has not noticed does not."""
        try:
            return bool(self.process.is_running()) and self.process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


def supervisor_role(settings: Settings) -> Role:
    """Return the role that `reverie up` holds."""
    return Role(settings.paths.root, "up")


def list_running(settings: Settings) -> list[Running]:
    """List the processes of a home that live now, the supervisor first."""
    if not settings.paths.root.is_dir():
        return []
    found = list(_stack(settings.paths.root))
    supervisor = supervisor_role(settings).holder()
    if supervisor is not None:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(Running(SUPERVISOR, psutil.Process(supervisor)))
    return sorted((p for p in found if p.lives()), key=lambda p: (_ORDER.index(p.name), p.pid))


def find_directory_of_process(process: psutil.Process) -> Path | None:
    """Return the data directory whose stack a process belongs to, None for any other and another user's process."""
    try:
        return _home(process) if _name(process.cmdline()) else None
    except (psutil.Error, OSError):
        return None


def stop_all(settings: Settings) -> list[Running]:
    """End every process of a home, in the end by force; return them."""
    stopped: list[Running] = []
    for _ in range(_ROUNDS):
        found = list_running(settings)
        if not found:
            break
        stopped.extend(process for process in found if process not in stopped)
        # The supervisor alone, where there is one: it stops its own, and would start again what is stopped beside it.
        _end([p for p in found if p.name == SUPERVISOR] or found)
    return stopped


def _end(processes: Sequence[Running]) -> None:
    end = time.monotonic() + STOP_DEADLINE_S
    pause = threading.Event()
    _signal(processes, psutil.Process.terminate)
    while left := [process for process in processes if process.lives()]:
        if time.monotonic() >= end:
            _signal(left, psutil.Process.kill)
        pause.wait(POLL_S)


def _signal(processes: Sequence[Running], end: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            end(process.process)


def _stack(home: Path) -> Iterator[Running]:
    named: dict[int, tuple[str, int, psutil.Process]] = {}
    for process in psutil.process_iter():
        # One that ends while we look, or that belongs to another user, is none of this home's.
        with contextlib.suppress(psutil.Error):
            name = _name(process.cmdline())
            if name and _home(process) == home and process.status() != psutil.STATUS_ZOMBIE:
                named[process.pid] = (name, process.ppid(), process)
    for pid, (name, parent, process) in named.items():
        # A fork carries its parent's command line.
        if parent not in named or named[parent][0] != name:
            yield Running(name, process, sum(1 for other in named.values() if other[:2] == (name, pid)))


def _name(command: Sequence[str]) -> str | None:
    """Tell which process of the stack a command line starts: an interpreter with one of our modules or our queue."""
    if not command or "python" not in Path(command[0]).name.lower():
        return None
    if _QUEUE in command[1:]:
        return "worker"
    if "-m" not in command[:-1]:
        return None
    return _MODULES.get(command[command.index("-m") + 1])


def _home(process: psutil.Process) -> Path | None:
    try:
        return Path(find_data_directory(process.environ()))
    except NoDataDirectory:
        return None
