"""Measure sync: how long an empty machine takes to know all, what one change takes, and whether histories agree.

Run by `make bench-sync`. Works in this process, on homes of its own.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.bare import time_bare_commits
from benchmarks.corpus import memories
from benchmarks.figures import Aim, Limit, Report, latency
from pipeline.kernel.records import Draft
from pipeline.write.accept import commit
from pipeline.write.prepare import prepare_batch
from tests.fakes.homes import Home, pair
from tests.fakes.machines import close_all, exchange_all, list_lost, play

AT_ONCE = 1000
CHANGES = 20
STEPS = 40


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--histories", type=int, default=0, help="generated histories to play, beside the times")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure_folder(Path(folder), options.memories, Report())
    if options.histories:
        play_histories(options.histories)


def measure_folder(folder: Path, count: int, report: Report) -> None:
    """Time a first exchange of so many memories, then single changes; a bare commit of the same texts is the limit."""
    report.section(f"{count:,} memories over a folder")
    one, two = Home(folder / "one"), Home(folder / "two")
    pair(one, two, url=f"dir:{folder}/shared")
    drafts = [Draft(body["content"]) for body in memories(count, seed=1)]
    for start in range(0, count, AT_ONCE):
        commit(one.database(), prepare_batch(drafts[start : start + AT_ONCE]))
    texts = [draft.content for draft in drafts]
    whole = Limit("bare commits of them, s", sum(time_bare_commits(folder, texts, AT_ONCE)) / 1000)
    for name, exchange in (("sent", one.exchange), ("received", two.exchange)):
        took = _time(exchange)
        report.row(name, f"{took:.2f} s", (Aim("s", 60), took), against=(whole, took))
    size = sum(file.stat().st_size for file in (folder / "shared").rglob("*") if file.is_file())
    text = Limit("the bytes of the texts", sum(len(text.encode()) for text in texts) / count)
    for name, each in (("on the remote", size / count), ("in the store of the receiver", _store_bytes(two) / count)):
        report.row(name, f"{each:.0f} bytes a memory", against=(text, each))
    times = []
    for number in range(CHANGES):
        one.say(f"one more change, number {number}")
        times.append(1000 * (_time(one.exchange) + _time(two.exchange)))
    limit = Limit("two bare commits", 2 * latency(time_bare_commits(folder, texts[:CHANGES])).p50)
    report.latency("one change, sent and received", latency(times), limit, p50=5000)
    assert len(one.texts()) == len(two.texts())
    one.close()
    two.close()


def _time(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _store_bytes(home: Home) -> int:
    home.database().complete_file()
    return home.settings.paths.workspace("default").events.stat().st_size


def play_histories(count: int) -> None:
    """Play histories of two to five machines, and count those that do not end the same."""
    began, wrong, lost = time.perf_counter(), 0, 0
    for seed in range(count):
        folder = Path(tempfile.mkdtemp())
        machines = play(folder, seed, STEPS)
        exchange_all(machines)
        wrong += len({machine.dump() for machine in machines}) > 1
        lost += bool(list_lost(machines))
        close_all(machines)
        shutil.rmtree(folder)
    took = time.perf_counter() - began
    print(f"{count} histories of {STEPS} steps: {wrong} diverged, {lost} lost anything, {took:.0f} s")


if __name__ == "__main__":
    main()
