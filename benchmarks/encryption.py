"""Measure what encryption costs: opening, writing, recalling and copying an encrypted store beside a plain one.

Run by `make bench-encryption`. Works in this process, in turn on two homes that hold the same, with an encoder that
costs nothing; what is written to them is synced as the web server does it.
"""

import argparse
import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.corpus import memories
from benchmarks.figures import Limit, Report, latency
from pipeline.bootstrap.web import WebContainer
from pipeline.features.encryption.usecases import choose_key, encrypt_home
from pipeline.features.snapshots import job as local_snapshots
from pipeline.kernel.records import Draft
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import accept_batch, digest_all, fast_settings, open_web, open_worker
from web.http.app import create_app

AT_ONCE = 1000
ROUNDS = 300
FULL = WriterProfile("FULL", 0, 5000)
KINDS = ("plain", "encrypted")


def main() -> None:
    """Make the homes, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    count = parser.parse_args().memories
    with tempfile.TemporaryDirectory(prefix="reverie-encryption-") as folder:
        homes = {kind: Path(folder) / kind for kind in KINDS}
        fill(homes["plain"], count)
        shutil.copytree(homes["plain"], homes["encrypted"])
        paths = fast_settings(homes["encrypted"]).paths
        choose_key(paths, Path(folder) / "key")
        size = paths.workspace("default").events.stat().st_size / 2**20
        report = Report()
        report.section(f"{count:,} memories, {size:.0f} MiB")
        plain = paths.workspace("default").events
        copy = Limit("a copy of the store", _time(lambda: shutil.copyfile(plain, Path(folder) / "copy")))
        took = _time(lambda: encrypt_home(paths))
        report.row("encryption of the store", f"{took / 1000:.2f} s", against=(copy, took))
        measure(homes, report)


def fill(home: Path, count: int) -> None:
    """Write so many memories and have them digested."""
    drafts = [Draft(body["content"]) for body in memories(count, seed=1)]
    with contextlib.closing(open_worker(fast_settings(home))) as worker:
        database = worker.databases.get("default", create=True)
        for start in range(0, count, AT_ONCE):
            accept_batch(database, drafts[start : start + AT_ONCE])
        digest_all(worker)
        worker.context("default").rebuild_segment()
        database.complete_file()


def measure(homes: Mapping[str, Path], report: Report) -> None:
    """Take each figure of the homes in turn, so that what the machine does meanwhile meets both."""
    events = {kind: fast_settings(home).paths.workspace("default").events for kind, home in homes.items()}
    with contextlib.ExitStack() as opened:
        containers = {kind: opened.enter_context(_open_web(home)) for kind, home in homes.items()}
        clients = {kind: CheckedClient(create_app(one), one.token) for kind, one in containers.items()}
        stores = {kind: one.databases.get("default") for kind, one in containers.items()}
        questions = [" ".join(body["content"].split()[:6]) for body in memories(ROUNDS, seed=2)]
        drafts = [Draft(body["content"]) for body in memories(ROUNDS, seed=3)]
        compare(report, "opening", ROUNDS, lambda kind, _: SqliteDatabase(events[kind], FULL, create=False).close())
        compare(report, "a write, synced", ROUNDS, lambda kind, number: accept(stores[kind], drafts[number]))
        compare(report, "a recall", ROUNDS, lambda kind, number: clients[kind].recall(questions[number]))
    paths = {kind: fast_settings(home).paths.workspace("default") for kind, home in homes.items()}
    compare(report, "a snapshot", 5, lambda kind, _: local_snapshots.take_snapshot(paths[kind], datetime.now(UTC)))


@contextlib.contextmanager
def _open_web(home: Path) -> Iterator[WebContainer]:
    with contextlib.closing(open_web(fast_settings(home))) as container:
        yield container


def compare(report: Report, name: str, rounds: int, act: Callable[[str, int], object]) -> None:
    """Do something in turn on both homes; report its milliseconds, the encrypted against the plain."""
    taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind in KINDS if number % 2 else reversed(KINDS):
            taken[kind].append(_time(lambda kind=kind, number=number: act(kind, number)))
    plain, encrypted = (latency(taken[kind]) for kind in KINDS)
    report.latency(f"{name}, plain", plain)
    report.latency(f"{name}, encrypted", encrypted, Limit("plain", plain.p50))


def _time(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
