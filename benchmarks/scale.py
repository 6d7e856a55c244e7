"""Measure Reverie on one home and past one machine: what more workers and fronts give, and what much costs.

Run by `make bench-scale`. Everything runs on this one machine, clients included, so that it is its cores that end a
row: what parts cost each other by network is not in these figures. Prints, for SQLite in one home and for PostgreSQL,
Redis and S3: writes and recalls a second with their latencies, digestion, and the CPU seconds of each part; then bytes
a memory, and latencies over workspaces at random where there are many.
"""

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bare import load_bare_encoder, time_bare_encodings, time_bare_writes
from benchmarks.corpus import memories
from benchmarks.crowd import Crowd, crowd
from benchmarks.deployments import (
    Deployment,
    Shape,
    one_cluster,
    one_home,
    run_cluster,
    run_home,
    scratch,
    servers,
    wait_until_digested,
)
from benchmarks.figures import Limit, Report, latency
from benchmarks.homes import BENCH, share_models, stack_on
from benchmarks.scale_fill import Filled, fill, measure_bytes
from benchmarks.wire import post
from tests.support.stack import Stack

CLIENTS = 4
# Of a shape: enough that memories of one workspace meet, and that workspaces do not wait for each other.
NAMES = [f"team-{number}" for number in range(8)]
WARM_UP = 40
PATIENCE_S = 3600.0
BARE = 200

Make = Callable[[Shape], AbstractContextManager[Deployment]]


@dataclass(frozen=True, slots=True)
class Bare:
    """What one client alone waits for at least: a POST with a commit, and the encoding of a question."""

    write: Limit
    recall: Limit


def measure_bare() -> Bare:
    """Measure both, of one client at a time."""
    bodies = list(memories(BARE, seed=9))
    with tempfile.TemporaryDirectory(prefix="reverie-bare-") as folder:
        (Path(folder) / "models").symlink_to(share_models(BENCH).resolve(), target_is_directory=True)
        encodings = time_bare_encodings(load_bare_encoder(Path(folder)), [body["content"][:80] for body in bodies])
        writes = time_bare_writes(Path(folder), bodies)
    return Bare(
        Limit("a bare POST and commit alone", latency(writes).p50),
        Limit("an encoding alone", latency(encodings).p50),
    )


def measure_shape(make: Make, shape: Shape, count: int, bare: Bare, report: Report) -> None:
    """Write, digest and recall with so many workers and fronts."""
    with make(shape) as running:
        _send(running, _writes(running, NAMES, WARM_UP, seed=1))
        wait_until_digested(running, NAMES, PATIENCE_S)
        before, began = running.cpu_seconds(), time.perf_counter()
        wrote = _send(running, _writes(running, NAMES, count, seed=2))
        wait_until_digested(running, NAMES, PATIENCE_S)
        digested = count / (time.perf_counter() - began)
        between = running.cpu_seconds()
        recalled = _send(running, _recalls(running, NAMES, count, seed=2))
        after = running.cpu_seconds()
    report.section(f"{running.name}: {shape}")
    _tell(report, "write, while workers digest", wrote, bare.write)
    report.row("digested", f"{digested:.1f} memories a second")
    _tell(report, "recall", recalled, bare.recall)
    path = running.name, str(shape)
    _tell_cpu(report, (*path, "cpu_ms_a_memory"), "CPU, ms a memory", _difference(before, between, count))
    _tell_cpu(report, (*path, "cpu_ms_a_recall"), "CPU, ms a recall", _difference(between, after, count))
    report.keep(*path, "write", value=wrote.latency)
    report.keep(*path, "recall", value=recalled.latency)
    report.keep(*path, "a second", value=[wrote.per_second, round(digested, 1), recalled.per_second])


def _difference(before: Mapping[str, float], after: Mapping[str, float], count: int) -> dict[str, float]:
    return {part: 1000 * (used - before[part]) / count for part, used in sorted(after.items())}


def _tell_cpu(report: Report, path: Sequence[str], title: str, used: Mapping[str, float]) -> None:
    report.row(title, ", ".join(f"{part} {milliseconds:.1f}" for part, milliseconds in used.items()))
    report.keep(*path, value=used)


def measure_many(running: Deployment, filled: Filled, count: int, bare: Bare, report: Report) -> None:
    """Write and recall in workspaces at random where there are many."""
    names = list(filled.names)
    report.section(f"{running.name}: {filled.memories:,} memories in {len(names):,} workspaces, visited at random")
    for title, requests in (
        ("recall, mostly the first of its workspace", _recalls(running, names, count, seed=3)),
        ("recall", _recalls(running, names[: max(1, len(names) // 100)], count, seed=4)),
        ("write", _writes(running, names, count, seed=5)),
    ):
        found = _send(running, requests)
        _tell(report, title, found, bare.write if title == "write" else bare.recall)
        report.keep(running.name, "many", title, value=found.latency)
    each = ", ".join(f"{part} {size:.0f}" for part, size in sorted(running.memory_mib().items()))
    report.row("memory, MiB", each)


def _writes(running: Deployment, names: Sequence[str], count: int, seed: int) -> list[list[bytes]]:
    choice = random.Random(seed)
    corpus = memories(count, seed=1000 + seed)
    return _share(post("/v1/memories", memory, running.token, choice.choice(names)) for memory in corpus)


def _recalls(running: Deployment, names: Sequence[str], count: int, seed: int) -> list[list[bytes]]:
    choice = random.Random(seed)
    asked = ({"query": memory["content"][:80], "k": 10, "budget_ms": 10_000} for memory in memories(count, 1000 + seed))
    return _share(post("/v1/recall", question, running.token, choice.choice(names)) for question in asked)


def _share(requests: Iterator[bytes]) -> list[list[bytes]]:
    every = list(requests)
    return [every[number::CLIENTS] for number in range(CLIENTS)]


def _send(running: Deployment, requests: list[list[bytes]]) -> Crowd:
    found = crowd(running.port, requests)
    if found.failed:
        raise SystemExit(f"{running.name}: {len(found.failed)} requests failed, {found.failed[0]}")
    return found


def _tell(report: Report, name: str, found: Crowd, limit: Limit) -> None:
    report.latency(name, found.latency, limit)
    report.row("", f"{found.per_second:.1f} a second by {CLIENTS} clients, {found.degraded} lacked a channel")


@contextmanager
def _filled_home(memories_each: int, names: Sequence[str], report: Report) -> Iterator[tuple[Deployment, Filled]]:
    with scratch() as place:
        stack = stack_on(place / "home")
        with stack:
            filled = fill(stack.environment, names, memories_each, report)
            measure_bytes("SQLite", stack.environment, filled, report)
            yield run_home(stack), filled


@contextmanager
def _filled_cluster(memories_each: int, names: Sequence[str], report: Report) -> Iterator[tuple[Deployment, Filled]]:
    # Without a scheduler: what a thousand workspaces have due at once after such a filling is another matter.
    with scratch() as place, servers(place, Shape(1, 2), schedulers=0) as cluster:
        machine: Stack = cluster.machines["worker-1"].stack
        # The client of S3 finds the server by the environment of its process.
        os.environ.update(cluster.s3.environment)
        filled = fill(machine.environment, names, memories_each, report)
        measure_bytes("PostgreSQL, Redis, S3", machine.environment, filled, report)
        yield run_cluster(cluster), filled


STORES: dict[str, tuple[Make, Any]] = {"sqlite": (one_home, _filled_home), "cluster": (one_cluster, _filled_cluster)}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=20_000)
    parser.add_argument("--workspaces", type=int, default=100)
    parser.add_argument("--store", choices=(*STORES, "both"), default="both")
    parser.add_argument("--written", type=int, default=600, help="memories written to each shape")
    parser.add_argument("--shapes", action=argparse.BooleanOptionalAction, default=True, help="vary workers and fronts")
    parser.add_argument("--many", action=argparse.BooleanOptionalAction, default=True, help="fill many workspaces")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    report, bare = Report(), measure_bare()
    names = [f"project-{number:05}" for number in range(args.workspaces)]
    for store, (make, make_filled) in STORES.items():
        if args.store not in (store, "both"):
            continue
        if args.shapes:
            for fronts in (1, 2) if store == "cluster" else (1,):
                for workers in (1, 2, 4):
                    measure_shape(make, Shape(workers, fronts), args.written, bare, report)
        if args.many:
            with make_filled(args.memories // args.workspaces, names, report) as (running, filled):
                measure_many(running, filled, args.written, bare, report)
    report.write(args.json)


if __name__ == "__main__":
    main()
