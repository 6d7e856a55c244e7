"""Rebuild data directories as a loss of power could leave them, by a seed, and check each."""

import random
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.power.disk import Disk
from tests.power.promises import Promises, check, remove
from tests.power.recording import Record


@dataclass(frozen=True, slots=True)
class Failure:
    """A state that breaks a promise: how to rebuild it, and what is wrong."""

    scenario: str
    seed: int
    record: int
    how: str
    problem: str

    def __str__(self) -> str:
        return f"{self.scenario} seed {self.seed}, after record {self.record} ({self.how}): {self.problem}"


def choose_moments(records: Sequence[Record], rng: random.Random, count: int) -> list[int]:
    """Choose the record after which the power goes, for each of so many states."""
    is_start = [record.kind == "M" and record.mark["at"] in ("settle", "forget") for record in records]
    first = is_start.index(True) if any(is_start) else 0
    changes = [number for number, record in enumerate(records) if record.kind != "S" and number >= first]
    return sorted(rng.choice(changes) for _ in range(count))


def rebuild(
    records: Sequence[Record], moments: Sequence[int], rng: random.Random, scratch: Path, *, is_journaled: bool
) -> Iterator[tuple[int, str, Path, Promises]]:
    """Yield (record, how it was chosen, data directory, promises) for each moment; the caller may change the folder."""
    disk, promises, at = Disk(is_journaled=is_journaled), Promises(), 0
    for number, moment in enumerate(moments):
        while at <= moment:
            apply(disk, promises, records[at])
            at += 1
        target = scratch / f"state-{number}"
        how = disk.write_crashed(target, rng)
        yield moment, how, target, promises
        remove(target)


def apply(disk: Disk, promises: Promises, record: Record) -> None:
    """Apply a record to the disk or to the promises."""
    if record.kind != "M":
        disk.take(record)
    elif record.mark["at"] == "settle":
        disk.settle_all()
    else:
        promises.take(record.mark)


def explore(scenario: str, records: Sequence[Record], seed: int, count: int) -> tuple[int, list[Failure]]:
    """Check so many states of a recorded program; return how many, and the failures."""
    rng = random.Random(f"{scenario} {seed}")
    moments = choose_moments(records, rng, count)
    failures = []
    with tempfile.TemporaryDirectory(prefix="power-") as folder:
        states = rebuild(records, moments, rng, Path(folder), is_journaled=seed % 2 == 0)
        for moment, how, target, promises in states:
            try:
                check(target, promises)
            except Exception as error:  # noqa: BLE001 - any error of an opened directory is a finding
                last = traceback.extract_tb(error.__traceback__)[-1]
                problem = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
                failures.append(Failure(scenario, seed, moment, how, problem))
    return len(moments), failures
