"""`make test-power`: check as many states of each scenario as the schedule says, then let every call fail once."""

import argparse
import os
import sys
import tempfile
import time
import tomllib
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from config.file_modes import make_umask_private
from tests.power.crashes import Failure, explore
from tests.power.recording import Record, build_recorder, fail_calls, find_obstacle, read_log, record_program

SCHEDULE = Path(__file__).with_name("schedule.toml")
# States of one scenario and one seed, which one process checks.
AT_ONCE = 25


@cache
def _records(scenario: str, folder: Path) -> list[Record]:
    return list(read_log(folder / f"{scenario}.log", folder / scenario))


def _explore(scenario: str, folder: Path, seed: int) -> tuple[int, list[Failure]]:
    make_umask_private()
    return explore(scenario, _records(scenario, folder), seed, AT_ONCE, folder)


def main() -> int:
    """Run the schedule; print what is broken, and what was checked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", help="default: all, and every call that fails")
    parser.add_argument("--calls", nargs="+", help="only let calls of these operations fail: purge, purge/sync")
    parser.add_argument("--states", type=float, default=1.0, help="share of the schedule's states")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    obstacle = find_obstacle()
    if obstacle:
        print(f"skipped: {obstacle}")
        return 0
    schedule = tomllib.loads(SCHEDULE.read_text(encoding="utf-8"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="power-", dir=os.environ.get("TMPDIR")) as scratch:
        folder = Path(scratch).resolve()
        library = build_recorder(folder)
        scenarios = options.scenarios or (() if options.calls else schedule["states"])
        chosen = {name: schedule["states"][name] * options.states for name in scenarios}
        broken = check_states(chosen, options.seed, folder, library, options.workers)
        if not options.scenarios:
            broken += check_calls(options.calls or schedule["calls"], folder, library, options.workers)
    print(f"{time.monotonic() - began:.0f} s, {broken} broken promises")
    return 1 if broken else 0


def check_states(chosen: dict[str, float], first_seed: int, folder: Path, library: Path, workers: int) -> int:
    """Check states of scenarios; return the number of broken ones."""
    work: dict[Future[tuple[int, list[Failure]]], str] = {}
    states, checked, broken = Counter[str](), Counter[str](), Counter[str]()
    with ThreadPoolExecutor(workers) as recorders:
        list(recorders.map(lambda name: record_program(library, name, folder / name, folder / f"{name}.log"), chosen))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        # The scenarios take turns, so that a run that is stopped has seen all of them.
        parts = {name: max(1, round(count / AT_ONCE)) for name, count in chosen.items()}
        turns = sorted((number / count, name, number) for name, count in parts.items() for number in range(count))
        for _, scenario, number in turns:
            work[pool.submit(_explore, scenario, folder, first_seed + number)] = scenario
        for done in as_completed(work):
            count, failures = done.result()
            states[work[done]] += AT_ONCE
            checked[work[done]] += count
            broken[work[done]] += len(failures)
            total = f"{states.total():,} states, {checked.total():,} different, {broken.total()} broken"
            print(*failures, total, sep="\n", flush=True)
    for name in chosen:
        print(f"{name}: {states[name]:,} states, {checked[name]:,} different, {broken[name]} broken", flush=True)
    return broken.total()


def check_calls(operations: list[str], folder: Path, library: Path, workers: int) -> int:
    """Let each call of operations fail once; return the number of broken promises."""
    broken = 0
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        work = [
            pool.submit(fail_calls, library, folder / f"calls-{name.replace('/', '-')}", name) for name in operations
        ]
        for done in as_completed(work):
            lines = done.result()
            broken += len(lines) - 1
            print("\n".join(lines), flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(main())
