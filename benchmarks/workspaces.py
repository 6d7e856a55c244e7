"""Measure a home of many workspaces that several clients visit at random, writing and recalling.

Run by `make bench-workspaces`. Prints failures, the most open files and the memory of the processes as time goes by,
latencies beside the bare limit, and what a tick of the scheduler costs when nothing happens any more.
"""

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.bare import load_bare_encoder, time_bare_encodings
from benchmarks.corpus import memories
from benchmarks.figures import Aim, Latency, Limit, Report, latency
from benchmarks.homes import BENCH, bench_folder, share_models, stack_on
from benchmarks.processes import BARE_RUNTIME, MIB, HomeProcesses, Sample, run_bare
from benchmarks.wire import Wire, post
from config.settings import load_settings
from pipeline.bootstrap.scheduler import SchedulerContainer
from pipeline.bootstrap.web import CHECKPOINT_PAGES
from pipeline.kernel.store import meta
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.support.stack import Stack
from workers import tasks
from workers.schedule import SWEEP, build_clock

PROCESSES = ("web", "worker", "scheduler")
LOOK_S = 1.0
STEP_S = 30.0
MOST_FILES = Aim("files", 300)
TICK_MS = Aim("ms", 50)
# Of this many workspaces at most.
FEW, FEW_MEMORY = 300, Aim("MiB", 500)
ENCODINGS = 100
TICKS = 20


@dataclass
class Visits:
    """What clients saw."""

    writes: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    degraded: int = 0


def visit(port: int, token: str, names: Sequence[str], seed: int, end: float, visits: Visits) -> None:
    """Go from workspace to workspace until the end: write there, and ask for what was written."""
    choice = random.Random(seed)
    corpus = memories(1_000_000, seed)
    with Wire(port) as wire:
        while time.monotonic() < end:
            name, memory = choice.choice(names), next(corpus)
            wrote = wire.ask(post("/v1/memories", memory, token, name))
            recalled = wire.ask(post("/v1/recall", {"query": memory["content"][:80], "k": 5}, token, name))
            visits.writes.append(wrote.took_ms)
            visits.recalls.append(recalled.took_ms)
            visits.failures += _list_failures(name, (wrote, 200, 201), (recalled, 200))
            if recalled.status == 200:
                visits.degraded += recalled.json()["degraded"]


def _list_failures(name: str, *answers: Any) -> list[str]:
    return [
        f"{name}: {answer.status} {answer.body[:200]!r}" for answer, *wanted in answers if answer.status not in wanted
    ]


def look_on(processes: HomeProcesses, end: float, step_s: float) -> list[tuple[int, Sample]]:
    """Look at the processes every second; return a sample a step, each with the most open files so far."""
    began, found, most = time.monotonic(), list[tuple[int, Sample]](), 0
    while True:
        now = time.monotonic()
        sample = processes.sample(now - began)
        most = max(most, *sample.files.values())
        if now >= end or now - began >= step_s * (len(found) + 1):
            found.append((most, sample))
        if now >= end:
            return found
        time.sleep(LOOK_S)


def fill(stack: Stack, names: Sequence[str]) -> None:
    """Write the first memory of every workspace."""
    token = (stack.home / "token").read_text(encoding="ascii").strip()
    corpus = memories(len(names), 3)
    with Wire(stack.port) as wire:
        for name, memory in zip(names, corpus, strict=False):
            answer = wire.ask(post("/v1/memories", memory, token, name))
            if answer.status != 201:
                raise SystemExit(f"{name}: {answer.status} {answer.body[:200]!r}")


def measure_visits(
    stack: Stack, names: Sequence[str], clients: int, seconds: float, store: Limit, report: Report
) -> None:
    """Let clients visit the workspaces, and tell what they saw and what that took."""
    token = (stack.home / "token").read_text(encoding="ascii").strip()
    visits, end = Visits(), time.monotonic() + seconds
    threads = [
        threading.Thread(target=visit, args=(stack.port, token, names, 100 + number, end, visits), daemon=True)
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    samples = look_on(HomeProcesses(stack.home), end, STEP_S)
    for thread in threads:
        thread.join()
    report.section(f"{clients} clients, {len(names)} workspaces at random, {seconds:.0f} s")
    report.row("failures", str(len(visits.failures)), (Aim("", 0), len(visits.failures)))
    for failure in visits.failures[:5]:
        report.row("", failure)
    report.latency("write", latency(visits.writes), store)
    report.latency("recall, each of a question that is new", latency(visits.recalls), _measure_encoding(stack.home))
    report.row("recalls of which a channel was late or cold", f"{visits.degraded} of {len(visits.recalls)}")
    bare = Limit("an interpreter with the libraries, MiB", run_bare(BARE_RUNTIME)[1] / MIB)
    for most, sample in samples:
        mib = sample.total / MIB
        aims = [(MOST_FILES, float(most)), *([(FEW_MEMORY, mib)] if len(names) <= FEW else [])]
        report.row(f"most open files so far: {most}", str(sample), *aims, against=(bare, mib))
    report.keep("failures", value=visits.failures)
    report.keep("samples", value=[{"files": most, **asdict(sample)} for most, sample in samples])
    report.keep("write", value=latency(visits.writes))
    report.keep("recall", value=latency(visits.recalls))


def _measure_encoding(home: Path) -> Limit:
    texts = [memory["content"] for memory in memories(ENCODINGS, 3)]
    return Limit("its encoding alone", latency(time_bare_encodings(load_bare_encoder(home), texts)).p50)


def measure_bare(folder: Path, report: Report) -> Limit:
    """Measure what no bound on open files can avoid: opening, committing to and closing one file with its log."""
    profile = WriterProfile("FULL", CHECKPOINT_PAGES, 5000)
    SqliteDatabase(folder / "events.sqlite", profile, create=True).close()
    opened, committed, closed = [], [], []
    for number in range(200):
        moments = [time.perf_counter()]
        database = SqliteDatabase(folder / "events.sqlite", profile, create=False)
        moments.append(time.perf_counter())
        with database.write() as db:
            meta.put(db, "number", str(number))
        moments.append(time.perf_counter())
        database.close()
        moments.append(time.perf_counter())
        for times, began, ended in zip((opened, committed, closed), moments, moments[1:], strict=False):
            times.append((ended - began) * 1000)
    report.section("the bare limit: one store, opened, written to and closed")
    for name, times in (("open", opened), ("one FULL commit", committed), ("close, with its log folded in", closed)):
        report.latency(name, latency(times))
    each = [sum(times) for times in zip(opened, committed, closed, strict=True)]
    return Limit("one store opened, written to and closed", latency(each).p50)


def measure_ticks(home: Path, report: Report) -> None:
    """Measure the scheduler's tick where nothing happens: the first, which looks into every store, and later ones."""
    settings = load_settings({"REVERIE_HOME": str(home)})
    container = SchedulerContainer(settings)
    sent: list[tuple[Any, ...]] = []
    kept = tasks.sweep, tasks.run_job
    tasks.sweep, tasks.run_job = (lambda *names: sent.append(names)), (lambda *names: sent.append(names))
    try:
        sweep = _sweep_of(container)
        wall, cpu = [], []
        for _ in range(2 + TICKS):
            # The files' times say something only when they are not of this moment.
            began, began_cpu = time.perf_counter(), time.process_time()
            sweep()
            wall.append((time.perf_counter() - began) * 1000)
            cpu.append((time.process_time() - began_cpu) * 1000)
            if len(wall) <= 2:
                time.sleep(3)
                sent.clear()
        idle = len(sent)
        container.close()
        container = SchedulerContainer(settings)
        began = time.perf_counter()
        _sweep_of(container)()
        again = (time.perf_counter() - began) * 1000
    finally:
        tasks.sweep, tasks.run_job = kept
        container.close()
    _tell_ticks(latency(wall[2:]), latency(cpu[2:]), (wall[0], again), idle, report)


def _sweep_of(container: SchedulerContainer) -> Callable[[], None]:
    found: Callable[[], None] = next(job.func for job in build_clock(container).get_jobs() if job.id == SWEEP)
    return found


def _tell_ticks(wall: Latency, cpu: Latency, firsts: tuple[float, float], sent: int, report: Report) -> None:
    report.section("a tick of the scheduler, nothing written since")
    report.row("the first of all, which looks into every store", f"{firsts[0]:.0f} ms")
    report.row("the first after a restart", f"{firsts[1]:.0f} ms")
    report.row(f"later ones, {wall.count}: wall", str(wall), (TICK_MS, wall.p50))
    report.row(f"later ones, {cpu.count}: CPU", str(cpu), (TICK_MS, cpu.p50))
    report.row("messages that they sent", str(sent))
    report.keep("tick", "wall", value=wall)
    report.keep("tick", "cpu", value=cpu)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workspaces", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    names = [f"project-{number:04}" for number in range(args.workspaces)]
    report = Report()
    with tempfile.TemporaryDirectory(prefix="workspaces-", dir=bench_folder(BENCH)) as place:
        store = measure_bare(Path(place) / "bare", report)
        (Path(place) / "models").symlink_to(share_models(), target_is_directory=True)
        home = Path(place) / "home"
        with stack_on(home, SWEEP_INTERVAL_S="30") as stack:
            stack.start(*PROCESSES)
            stack.wait_for_encoder()
            fill(stack, names)
            measure_visits(stack, names, args.clients, args.seconds, store, report)
        measure_ticks(home, report)
    report.write(args.json)


if __name__ == "__main__":
    main()
