"""What the processes of a home hold and use, read from the kernel."""

import contextlib
import http.client
import math
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.stack import HOST, ROOT, Client, free_port, wait_until

MIB = 1 << 20
# What an interpreter's arguments name, and what the process is called here.
_NAMES = {"web": "web", "workers.schedule": "scheduler", "workers.tasks.huey": "worker", "web.cli": "supervisor"}
# The libraries that every server process loads.
BARE_RUNTIME = "import flask, waitress, pydantic, numpy, onnxruntime, tokenizers"
SUPERVISOR = (sys.executable, "-m", "web.cli", "up")


@dataclass(frozen=True, slots=True)
class Sample:
    """One look: bytes of memory, open files and threads by the name of a process, forks told apart by a number.

    PSS is what a process costs, and moves with who else maps the same libraries; USS is its own and tells growth.
    """

    at_s: float
    pss: dict[str, int]
    uss: dict[str, int]
    files: dict[str, int]
    threads: dict[str, int]

    @property
    def total(self) -> int:
        """Return the PSS of all."""
        return sum(self.pss.values())

    def own(self, name: str) -> int:
        """Return the USS of a process, or of all."""
        return sum(self.uss.values()) if name == "all" else self.uss.get(name, 0)

    def __str__(self) -> str:
        each = ", ".join(f"{name} {pss / MIB:.0f}" for name, pss in self.pss.items())
        total, threads = self.total / MIB, sum(self.threads.values())
        files = max(self.files.values(), default=0)
        return f"{self.at_s:5.0f} s  {total:5.0f} MiB ({each}), {files} files at most, {threads} threads"


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds and bytes written to disk by each process, named with its id, since a moment.

    A parent answers for the children that have ended.
    """

    at: float
    cpu: dict[str, float]
    written: dict[str, int]

    def since(self, before: "Usage") -> "Usage":
        """Return what was used in between; a process that came meanwhile counts from its start.

        What one that ended had used before is taken off: its parent counts all of it.
        """
        names = before.cpu | self.cpu
        cpu = {name: self.cpu.get(name, 0.0) - before.cpu.get(name, 0.0) for name in names}
        written = {name: self.written.get(name, 0) - before.written.get(name, 0) for name in names}
        return Usage(self.at - before.at, cpu, written)

    @property
    def cpu_share(self) -> float:
        """Return the share of one core, of a difference."""
        return sum(self.cpu.values()) / self.at

    @property
    def written_a_second(self) -> float:
        """Return bytes a second, of a difference."""
        return sum(self.written.values()) / self.at

    def by_process(self) -> dict[str, tuple[float, float]]:
        """Return both for each process, of a difference."""
        return {name: (cpu / self.at, self.written[name] / self.at) for name, cpu in self.cpu.items()}


class HomeProcesses:
    """The processes that were started for a home, whoever their parent is now."""

    def __init__(self, home: Path) -> None:
        self._home = str(home)

    def alive(self) -> list[psutil.Process]:
        """List them, zombies left out, oldest first."""
        return sorted(self._scan(), key=lambda process: (process.create_time(), process.pid))

    def names(self) -> list[str]:
        """Return the names of those that live."""
        return [name for name, _ in self._named()]

    def find(self, name: str) -> psutil.Process:
        """Return the oldest process of a name."""
        return dict(reversed(self._named()))[name]

    def kill_all(self) -> None:
        """Kill whatever lives."""
        for process in self.alive():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def sample(self, at_s: float) -> Sample:
        """Look at all of them."""
        pss: dict[str, int] = {}
        uss: dict[str, int] = {}
        files: dict[str, int] = {}
        threads: dict[str, int] = {}
        numbers: defaultdict[str, int] = defaultdict(int)
        for name, process in self._named():
            numbers[name] += 1
            label = name if numbers[name] == 1 else f"{name} {numbers[name]}"
            with contextlib.suppress(psutil.NoSuchProcess):
                memory = process.memory_full_info()
                pss[label], uss[label] = memory.pss, memory.uss
                files[label] = process.num_fds()
                threads[label] = process.num_threads()
        return Sample(at_s, pss, uss, files, threads)

    def usage(self) -> Usage:
        """Read what each has used since it started."""
        cpu: dict[str, float] = {}
        written: dict[str, int] = {}
        for name, process in self._named():
            with contextlib.suppress(psutil.NoSuchProcess):
                times, io = process.cpu_times(), process.io_counters()
                cpu[f"{name} {process.pid}"] = sum(times[:4])
                written[f"{name} {process.pid}"] = io.write_bytes
        return Usage(time.monotonic(), cpu, written)

    def _scan(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("REVERIE_HOME") == self._home and process.status() != psutil.STATUS_ZOMBIE:
                    yield process

    def _named(self) -> list[tuple[str, psutil.Process]]:
        found = []
        for process in self.alive():
            with contextlib.suppress(psutil.NoSuchProcess):
                words = process.cmdline()
                found.append((next((name for word, name in _NAMES.items() if word in words), "other"), process))
        return found


class UpStack:
    """`reverie up` on a scratch home: started, asked and ended as a person does it."""

    def __init__(self, home: Path, models: Path) -> None:
        self.home = home
        self.log = home.parent / "up.log"
        self.port = free_port()
        home.mkdir(parents=True)
        (home / "models").symlink_to(models, target_is_directory=True)
        own = {"HOME": str(home), "HOST": HOST, "PORT": str(self.port)}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
        self.environment = kept | {f"REVERIE_{name}": value for name, value in own.items()} | {"HF_HUB_OFFLINE": "1"}
        self.processes = HomeProcesses(home)
        self.supervisor: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start it without waiting for anything."""
        with self.log.open("ab") as log:
            self.supervisor = subprocess.Popen(
                SUPERVISOR, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def up(self) -> None:
        """Start it and wait until it answers and its workers have come."""
        self.launch()
        wait_until("the server answers", self.is_healthy)
        wait_until("every process is there", lambda: {"web", "worker", "scheduler"} <= set(self.processes.names()))

    def down(self) -> None:
        """Call `reverie down`."""
        command = (sys.executable, "-m", "web.cli", "down")
        subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, check=True)

    def reap(self) -> None:
        """Collect the supervisor that has ended."""
        if self.supervisor is not None:
            self.supervisor.wait()

    def client(self) -> Client:
        """Return a connection of its own."""
        return Client(self.port, (self.home / "token").read_text(encoding="ascii").strip())

    def is_healthy(self) -> bool:
        """Tell whether the server answers now."""
        probe = Client(self.port, "", timeout_s=5)
        try:
            return probe.call("GET", "/healthz").status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            probe.close()


def run_bare(code: str) -> tuple[float, int]:
    """Return the seconds that an interpreter takes to run some code, and the PSS that it then has."""
    tell = f"{code}\nprint(flush=True)\ninput()"
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", tell], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        took = time.monotonic() - began
        size: int = psutil.Process(process.pid).memory_full_info().pss
        process.communicate(b"\n")
    return took, size


@dataclass(frozen=True, slots=True)
class Fit:
    """The slope of a line through points, and twice its standard error."""

    slope: float
    twice_error: float


def fit_slope(points: Sequence[tuple[float, float]]) -> Fit:
    """Fit a line by least squares; of fewer than three points nothing is known."""
    if len(points) < 3:
        return Fit(0.0, math.inf)
    x, y = ([float(value) for value in column] for column in zip(*points, strict=True))
    slope, intercept = statistics.linear_regression(x, y)
    rest = sum((b - intercept - slope * a) ** 2 for a, b in points)
    middle = statistics.fmean(x)
    spread = sum((value - middle) ** 2 for value in x)
    return Fit(slope, 2 * math.sqrt(rest / (len(points) - 2) / spread))
