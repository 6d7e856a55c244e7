"""Measure what the whole stack costs: memory while digesting, digested and at rest, what it does idle, how it starts.

Run by `make bench-footprint`. Starts the real `reverie up` on a home of its own. Memory is the sum of PSS, in which
what processes share counts once.
"""

import argparse
import contextlib
import http.client
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

from tests.benchmarks.corpus import memories
from tests.benchmarks.figures import Aim, Report
from tests.benchmarks.homes import BENCH, bench_folder
from tests.support.stack import HOST, ROOT, Client, free_port, wait_until

SEED = 7
BATCH = 500
LOOK_S = 1.0
DIGESTED_WITHIN_S = 7200.0
SETTLE_S = 10.0
STARTS = 3
SHELL_CALLS = 5
ASK_AGAIN_S = 0.005
MIB = 2**20
KINDS = (("web.cli", "supervisor"), ("workers.tasks.huey", "worker"), ("workers.schedule", "scheduler"))
QUESTION = "which service reads the key"


def kind_of(process: psutil.Process) -> str:
    """Name a process of the stack by its command line."""
    command = process.cmdline()
    return next((kind for mark, kind in KINDS if mark in command), "web" if "web" in command else "other")


@dataclass
class Use:
    """What the processes of a stack use at a moment, by kind."""

    memory: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    processes: int = 0

    @property
    def total(self) -> int:
        """Return the bytes of all together."""
        return sum(self.memory.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{kind} {size / MIB:.0f}" for kind, size in sorted(self.memory.items()))
        return f"{self.total / MIB:6.0f} MiB  ({parts}; {self.processes} processes)"


class Tree:
    """A running `reverie up` with everything under it."""

    def __init__(self, pid: int) -> None:
        self._top = psutil.Process(pid)

    def processes(self) -> list[psutil.Process]:
        """List the processes that live now."""
        return [self._top, *self._top.children(recursive=True)]

    def memory(self) -> Use:
        """Sum up PSS."""
        use = Use()
        for process in self.processes():
            with contextlib.suppress(psutil.Error, OSError):
                use.memory[kind_of(process)] += pss(process.pid)
                use.processes += 1
        return use

    def spent(self) -> tuple[float, int]:
        """Return the CPU seconds and the bytes sent to the disk so far, those of ended children included."""
        cpu, written = 0.0, 0
        for process in self.processes():
            with contextlib.suppress(psutil.Error, OSError):
                times = process.cpu_times()
                cpu += times.user + times.system + times.children_user + times.children_system
                written += written_bytes(process.pid)
        return cpu, written


def pss(pid: int) -> int:
    """Return a process's proportional set size in bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def written_bytes(pid: int) -> int:
    """Return the bytes that a process and the children that it waited for caused to be written to a disk."""
    for line in Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    return 0


class Peak:
    """Keep the largest use that a thread sees while a block runs."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._stop = threading.Event()
        self.largest = tree.memory()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            self.largest = max(self.largest, self._tree.memory(), key=lambda use: use.total)


@dataclass(frozen=True)
class Started:
    """A stack that has been told to start, and when."""

    process: "subprocess.Popen[bytes]"
    port: int
    home: Path
    began: float

    def client(self) -> Client:
        """Return a client with the home's token."""
        return Client(self.port, (self.home / "token").read_text(encoding="ascii").strip(), timeout_s=60)

    def seconds_until(self, holds: Callable[[], bool]) -> float:
        """Return the seconds from the start until something holds."""
        while not holds():
            if self.process.poll() is not None or time.monotonic() - self.began > 120:
                raise SystemExit(f"the stack did not come up; {self.home / 'stack.log'} says why")
            time.sleep(ASK_AGAIN_S)
        return time.monotonic() - self.began

    def answers(self) -> bool:
        """Tell whether the server answers."""
        with contextlib.closing(http.client.HTTPConnection(HOST, self.port, timeout=5)) as connection:
            try:
                connection.request("GET", "/healthz")
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False


def environment(home: Path, port: int) -> dict[str, str]:
    """Return the environment of a stack with default settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
    return kept | {"REVERIE_HOME": str(home), "REVERIE_PORT": str(port), "HF_HUB_OFFLINE": "1"}


@contextmanager
def stack_of(home: Path) -> Iterator[Started]:
    """Run `reverie up`; at the end nothing of it may be left."""
    port = free_port()
    began = time.monotonic()
    with (home / "stack.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "web.cli", "up"],
            cwd=ROOT,
            env=environment(home, port),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        started = Started(process, port, home, began)
        family: list[psutil.Process] = []
        try:
            yield started
            family = Tree(process.pid).processes()
        finally:
            process.terminate()
            process.wait(30)
    left = [one.pid for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    if left:
        raise SystemExit(f"processes were left behind: {left}")


def digest(report: Report, started: Started, count: int) -> None:
    """Write the memories at once, and look on while they are digested."""
    client, tree = started.client(), Tree(started.process.pid)
    began = time.monotonic()
    with Peak(tree) as peak:
        corpus = list(memories(count, SEED))
        for start in range(0, count, BATCH):
            client.call("POST", "/v1/memories/batch", {"items": corpus[start : start + BATCH]})
        wait_until(
            "everything is digested",
            lambda: time.sleep(LOOK_S) or not sum(client.call("GET", "/v1/queue").body["pending"].values()),
            DIGESTED_WITHIN_S,
        )
    seconds = time.monotonic() - began
    cpu, _ = tree.spent()
    report.row("while digesting, at most", str(peak.largest), (Aim("MiB", 600), peak.largest.total / MIB))
    time.sleep(SETTLE_S)
    use = tree.memory()
    report.row("digested", str(use), (Aim("MiB", 400), use.total / MIB))
    report.row("digestion", f"{count / seconds:6.1f} memories/s, {cpu:.0f} s of CPU since the start")
    report.keep("memory", "digesting", value=peak.largest.total)
    report.keep("memory", "digested", value=use.total)
    client.close()


def rest(report: Report, started: Started, minutes: float) -> None:
    """Leave the stack alone for a while; its second half says what it does idle."""
    tree = Tree(started.process.pid)
    time.sleep(minutes * 30)
    cpu, written = tree.spent()
    began = time.monotonic()
    time.sleep(minutes * 30)
    seconds = time.monotonic() - began
    more_cpu, more_written = tree.spent()
    use = tree.memory()
    share, rate = (more_cpu - cpu) / seconds * 100, (more_written - written) / seconds / 1000
    report.row(f"after {minutes:g} quiet minutes", str(use), (Aim("MiB", 300), use.total / MIB))
    report.row("idle CPU, of one core", f"{share:6.2f} %", (Aim("%", 0.3), share))
    report.row("idle writing", f"{rate:6.2f} KB/s", (Aim("KB/s", 1), rate))
    report.keep("memory", "idle", value=use.total)
    report.keep("idle", value={"cpu_percent": share, "written_kb_s": rate})


def time_starts(report: Report, home: Path) -> None:
    """Start on a full home again and again."""
    found: Mapping[str, list[float]] = defaultdict(list)
    for _ in range(STARTS):
        with stack_of(home) as started:
            found["/healthz"].append(started.seconds_until(started.answers))
            for channel in ("lexical", "dense"):
                found[channel].append(time_channel(started, channel))
            time.sleep(SETTLE_S / 2)
            found["shell"] += [time_shell(started) for _ in range(SHELL_CALLS)]
    for name, aim in (("/healthz", 0.8), ("lexical", 1.2), ("dense", 3.0), ("shell", 0.35)):
        shown = "`reverie recall`" if name == "shell" else f"`reverie up` to the first {name} answer"
        middle = statistics.median(found[name])
        figure = f"{middle:6.2f} s  (best {min(found[name]):.2f}, worst {max(found[name]):.2f})"
        report.row(shown, figure, (Aim("s", aim), middle))
        report.keep("start", name, value=found[name])


def time_channel(started: Started, channel: str) -> float:
    """Return the seconds from the start until a channel takes part in a recall."""
    client = started.client()
    try:
        return started.seconds_until(lambda: client.recall(QUESTION)["channels"][channel]["state"] == "ok")
    finally:
        client.close()


def time_shell(started: Started) -> float:
    """Return the seconds of a recall from the shell."""
    program = Path(sys.executable).with_name("reverie")
    began = time.monotonic()
    subprocess.run(
        [program, "recall", QUESTION],
        env=environment(started.home, started.port),
        cwd=started.home,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.monotonic() - began


LIMITS = {
    "an interpreter": "",
    "with flask, waitress, pydantic and numpy": "import flask, waitress, pydantic, numpy",
    "with the encoder's runtime besides": "import flask, waitress, pydantic, numpy, onnxruntime, tokenizers",
}


def bare_limits(report: Report) -> None:
    """Measure what nothing but interpreters and libraries take."""
    for name, code in LIMITS.items():
        took, size = min(_run_bare(code) for _ in range(STARTS))
        report.row(f"bare: {name}", f"{took:6.2f} s, {size / MIB:.0f} MiB")


def _run_bare(code: str) -> tuple[float, int]:
    tell = f"{code}\nprint(flush=True)\ninput()"
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", tell], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        took = time.monotonic() - began
        size = pss(process.pid)
        process.communicate(b"\n")
    return took, size


def compile_once(home: Path) -> None:
    """See to it that the encoder is compiled: what that takes happens once and is not measured here."""
    subprocess.run(
        [sys.executable, "-m", "web.cli", "model", "compile"],
        cwd=ROOT,
        env=environment(home, free_port()),
        stdout=subprocess.DEVNULL,
        check=True,
    )


def main() -> None:
    """Fill a home, leave it alone, start it again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long nobody asks the stack for anything")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    given = parser.parse_args()
    # Asked to end, it stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    report = Report()
    # A disk and not a file system in memory, or writing would not be counted.
    with tempfile.TemporaryDirectory(prefix="footprint-", dir=bench_folder(BENCH)) as place:
        home = Path(place) / "home"
        home.mkdir()
        models = BENCH / "models"
        models.mkdir(exist_ok=True)
        (home / "models").symlink_to(models, target_is_directory=True)
        compile_once(home)
        report.section("Bare limits")
        bare_limits(report)
        report.section(f"Memory, {given.memories:,} memories")
        with stack_of(home) as started:
            started.seconds_until(started.answers)
            digest(report, started, given.memories)
            rest(report, started, given.minutes)
        report.section(f"Start, {given.memories:,} memories")
        time_starts(report, home)
    report.write(given.json)


if __name__ == "__main__":
    main()
