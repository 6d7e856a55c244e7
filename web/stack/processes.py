"""Find and stop the processes of Reverie that run on a data directory."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from config.data_directory import NoDataDirectory, find_data_directory
from config.process import Role, lives
from config.settings import Settings

SUPERVISOR = "supervisor"
STOP_DEADLINE_S = 20.0
POLL_S = 0.05

_MODULES = {"web": "web", "workers.schedule": "scheduler"}
# A worker is recognized by the argument of the huey command.
_QUEUE = "workers.tasks.huey"
_ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared, never bound
_ORDER = (SUPERVISOR, "web", "worker", "scheduler")
# Give up on a stack that another program starts again and again.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Running:
    """A process of Reverie; `children` counts the processes that a worker has forked."""

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


def supervisor_role(settings: Settings) -> Role:
    """Return the lock that `reverie up` takes."""
    return Role(settings.paths.root, "up")


def list_running(settings: Settings) -> list[Running]:
    """List the running processes of a data directory, the supervisor first."""
    if not settings.paths.root.is_dir():
        return []
    running = list(_find_stack(settings.paths.root))
    supervisor = supervisor_role(settings).holder()
    if supervisor is not None:
        with contextlib.suppress(psutil.NoSuchProcess):
            running.append(Running(SUPERVISOR, psutil.Process(supervisor)))
    return sorted((p for p in running if lives(p.process)), key=lambda p: (_ORDER.index(p.name), p.pid))


def find_directory_of_process(process: psutil.Process) -> Path | None:
    """Return the data directory of a process of Reverie; None for other programs and other users' processes."""
    try:
        return _find_directory(process) if _name(process.cmdline()) else None
    except (psutil.Error, OSError):
        return None


def stop_all(settings: Settings) -> list[Running]:
    """Stop all processes of a data directory, after a deadline by force; return them."""
    stopped: list[Running] = []
    for _ in range(_ROUNDS):
        running = list_running(settings)
        if not running:
            break
        stopped.extend(process for process in running if process not in stopped)
        # Only the supervisor, if there is one: it stops the others, and would restart those that stop without it.
        _end([p for p in running if p.name == SUPERVISOR] or running)
    return stopped


def _end(processes: Sequence[Running]) -> None:
    for end, within_s in ((psutil.Process.terminate, STOP_DEADLINE_S), (psutil.Process.kill, math.inf)):
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                end(process.process)
        if wait_until(lambda: not any(lives(process.process) for process in processes), within_s):
            return


def wait_until(condition: Callable[[], bool], within_s: float) -> bool:
    """Return whether a condition becomes true within a time."""
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(POLL_S)
    return True


def _find_stack(directory: Path) -> Iterator[Running]:
    named: dict[int, tuple[str, int, psutil.Process]] = {}
    for process in psutil.process_iter():
        # Skip processes that have just ended or belong to another user.
        with contextlib.suppress(psutil.Error):
            name = _name(process.cmdline())
            if name and _find_directory(process) == directory and process.status() != psutil.STATUS_ZOMBIE:
                named[process.pid] = (name, process.ppid(), process)
    for pid, (name, parent, process) in named.items():
        # A fork has the command line of its parent.
        if parent not in named or named[parent][0] != name:
            yield Running(name, process, sum(1 for other in named.values() if other[:2] == (name, pid)))


def _name(command: Sequence[str]) -> str | None:
    """Return the name of the process that a command line starts: a Python with one of our modules or our queue."""
    if not _is_python(command):
        return None
    if _QUEUE in command[1:]:
        return "worker"
    if "-m" not in command[:-1]:
        return None
    modules = [word for word in command[command.index("-m") + 1 :] if word != "reverie.run"]
    return _MODULES.get(modules[0]) if modules else None


def _is_python(command: Sequence[str]) -> bool:
    return bool(command) and "python" in Path(command[0]).name.lower()


def _find_directory(process: psutil.Process) -> Path | None:
    try:
        return Path(find_data_directory(process.environ()))
    except NoDataDirectory:
        return None


def describe_listener(host: str, port: int) -> str:
    """Return the process that listens at an address, and its data directory if it is a Reverie server."""
    process = _find_listening_process(host, port)
    if process is None:
        return "a program of another user"
    try:
        name = "".join(sign for sign in process.name() if sign.isprintable())
    except psutil.Error:
        name = "a program"
    home = find_directory_of_process(process)
    return f"{name} (pid {process.pid})" + (f", the Reverie of {home}," if home else "")


def _find_listening_process(host: str, port: int) -> psutil.Process | None:
    """Return the process that listens at an address, None if this user may not see it."""
    pid_of_ip = {ip: pid for ip, listening_port, pid in _list_listening() if listening_port == port}
    pid = next((pid_of_ip[ip] for ip in (host, *_ANY_ADDRESS) if ip in pid_of_ip), None)
    with contextlib.suppress(psutil.Error):
        return None if pid is None else psutil.Process(pid)
    return None


def _list_listening() -> Iterator[tuple[str, int, int]]:
    """Yield the address, port and process of each listening socket that this user may see."""
    try:
        connections = [(entry, entry.pid) for entry in psutil.net_connections("tcp")]
    except psutil.Error:
        # macOS shows all sockets to root only, and to others those of their own processes.
        connections = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                connections += [(entry, process.pid) for entry in process.net_connections("tcp")]
    for connection, pid in connections:
        if connection.status == psutil.CONN_LISTEN and pid is not None:
            yield connection.laddr.ip, connection.laddr.port, pid
