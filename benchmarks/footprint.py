"""Measure what the whole stack costs: memory while digesting, digested and at rest, what it does idle, how it starts.

Run by `make bench-footprint`. Starts the real `reverie up` on a home of its own. Memory is the sum of PSS, in which
what processes share counts once.
"""

import argparse
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
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.corpus import memories
from benchmarks.figures import Aim, Limit, Report
from benchmarks.homes import BENCH, bench_folder, share_models
from benchmarks.processes import BARE_RUNTIME, MIB, HomeProcesses, UpStack, run_bare
from tests.support.stack import ROOT, wait_until

SEED = 7
BATCH = 500
LOOK_S = 1.0
DIGESTED_WITHIN_S = 7200.0
STARTED_WITHIN_S = 120.0
SETTLE_S = 10.0
STARTS = 3
SHELL_CALLS = 5
ASK_AGAIN_S = 0.005
QUESTION = "which service reads the key"
DIGESTING, DIGESTED, IDLE = Aim("MiB", 500), Aim("MiB", 350), Aim("MiB", 300)


class Peak:
    """Keep the largest use of memory that a thread sees while a block runs."""

    def __init__(self, processes: HomeProcesses) -> None:
        self._processes = processes
        self._stop = threading.Event()
        self.largest = processes.sample(0.0)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(LOOK_S):
            now = self._processes.sample(time.monotonic() - began)
            self.largest = max(self.largest, now, key=lambda sample: sample.total)


@contextmanager
def run(stack: UpStack) -> Iterator[float]:
    """Run `reverie up`; yield when it was told to start. At the end nothing of it may be left."""
    began = time.monotonic()
    stack.launch()
    assert stack.supervisor is not None
    try:
        yield began
    finally:
        stack.supervisor.terminate()
        stack.supervisor.wait(30)
    if left := stack.processes.names():
        raise SystemExit(f"processes were left behind: {left}")


def seconds_until(stack: UpStack, began: float, holds: Callable[[], bool]) -> float:
    """Return the seconds from a start until something holds."""
    assert stack.supervisor is not None
    while not holds():
        if stack.supervisor.poll() is not None or time.monotonic() - began > STARTED_WITHIN_S:
            raise SystemExit(f"the stack did not come up; {stack.log} says why")
        time.sleep(ASK_AGAIN_S)
    return time.monotonic() - began


@dataclass(frozen=True, slots=True)
class BareProcess:
    """The seconds that an interpreter takes to start, and the MiB of one with the libraries of a server process."""

    seconds: Limit
    mib: Limit


def digest(report: Report, stack: UpStack, count: int, bare: BareProcess) -> None:
    """Write the memories at once, and look on while they are digested."""
    client = stack.client()
    before, began = stack.processes.usage(), time.monotonic()
    with Peak(stack.processes) as peak:
        corpus = list(memories(count, SEED))
        for start in range(0, count, BATCH):
            client.call("POST", "/v1/memories/batch", {"items": corpus[start : start + BATCH]})
        wait_until(
            "everything is digested",
            lambda: time.sleep(LOOK_S) or not sum(client.call("GET", "/v1/queue").body["pending"].values()),
            DIGESTED_WITHIN_S,
        )
    seconds = time.monotonic() - began
    cpu = sum(stack.processes.usage().since(before).cpu.values())
    most = peak.largest.total / MIB
    report.row("while digesting, at most", str(peak.largest), (DIGESTING, most), against=(bare.mib, most))
    time.sleep(SETTLE_S)
    use = stack.processes.sample(seconds)
    report.row("digested", str(use), (DIGESTED, use.total / MIB), against=(bare.mib, use.total / MIB))
    report.row("digestion", f"{count / seconds:6.1f} memories/s, {cpu:.0f} s of CPU")
    report.keep("memory", "digesting", value=peak.largest.total)
    report.keep("memory", "digested", value=use.total)
    client.close()


def rest(report: Report, stack: UpStack, minutes: float, bare: BareProcess) -> None:
    """Leave the stack alone for a while; its second half says what it does idle."""
    time.sleep(minutes * 30)
    before = stack.processes.usage()
    time.sleep(minutes * 30)
    used, memory = stack.processes.usage().since(before), stack.processes.sample(minutes * 60)
    share, rate = used.cpu_share * 100, used.written_a_second / 1000
    mib = memory.total / MIB
    report.row(f"after {minutes:g} quiet minutes", str(memory), (IDLE, mib), against=(bare.mib, mib))
    report.row("idle CPU, of one core", f"{share:6.2f} %", (Aim("%", 0.3), share))
    report.row("idle writing", f"{rate:6.2f} KB/s", (Aim("KB/s", 1), rate))
    report.keep("memory", "idle", value=memory.total)
    report.keep("idle", value={"cpu_percent": share, "written_kb_s": rate})


def time_starts(report: Report, stack: UpStack, bare: BareProcess) -> None:
    """Start on a full home again and again."""
    found: Mapping[str, list[float]] = defaultdict(list)
    for _ in range(STARTS):
        with run(stack) as began:
            found["/healthz"].append(seconds_until(stack, began, stack.is_healthy))
            for channel in ("lexical", "dense"):
                found[channel].append(time_channel(stack, began, channel))
            time.sleep(SETTLE_S / 2)
            found["shell"] += [time_shell(stack) for _ in range(SHELL_CALLS)]
    for name, aim in (("/healthz", 0.8), ("lexical", 1.2), ("dense", 3.0), ("shell", 0.35)):
        shown = "`reverie recall`" if name == "shell" else f"`reverie up` to the first {name} answer"
        middle = statistics.median(found[name])
        figure = f"{middle:6.2f} s  (best {min(found[name]):.2f}, worst {max(found[name]):.2f})"
        report.row(shown, figure, (Aim("s", aim), middle), against=(bare.seconds, middle))
        report.keep("start", name, value=found[name])


def time_channel(stack: UpStack, began: float, channel: str) -> float:
    """Return the seconds from the start until a channel takes part in a recall."""
    client = stack.client()
    try:
        return seconds_until(stack, began, lambda: client.recall(QUESTION)["channels"][channel]["state"] == "ok")
    finally:
        client.close()


def time_shell(stack: UpStack) -> float:
    """Return the seconds of a recall from the shell."""
    program = Path(sys.executable).with_name("reverie")
    began = time.monotonic()
    subprocess.run(
        [program, "--json", "recall", "--workspace", "default", QUESTION],
        env=stack.environment,
        cwd=stack.home,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.monotonic() - began


LIMITS = {
    "an interpreter": "",
    "with flask, waitress, pydantic and numpy": "import flask, waitress, pydantic, numpy",
    "with the encoder's runtime besides": BARE_RUNTIME,
}


def bare_limits(report: Report) -> BareProcess:
    """Measure what nothing but interpreters and libraries take."""
    measured = {}
    for name, code in LIMITS.items():
        took, size = measured[code] = min(run_bare(code) for _ in range(STARTS))
        report.row(f"bare: {name}", f"{took:6.2f} s, {size / MIB:.0f} MiB")
    return BareProcess(
        Limit("an interpreter, s", measured[""][0]),
        Limit("one with the libraries, MiB", measured[BARE_RUNTIME][1] / MIB),
    )


def compile_once(stack: UpStack) -> None:
    """See to it that the encoder is compiled: what that takes happens once and is not measured here."""
    subprocess.run(
        [sys.executable, "-m", "web.cli", "model", "compile"],
        cwd=ROOT,
        env=stack.environment,
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
        stack = UpStack(Path(place) / "home", share_models())
        compile_once(stack)
        report.section("Bare limits")
        bare = bare_limits(report)
        report.section(f"Memory, {given.memories:,} memories")
        with run(stack) as began:
            seconds_until(stack, began, stack.is_healthy)
            digest(report, stack, given.memories, bare)
            rest(report, stack, given.minutes, bare)
        report.section(f"Start, {given.memories:,} memories")
        time_starts(report, stack, bare)
    report.write(given.json)


if __name__ == "__main__":
    main()
