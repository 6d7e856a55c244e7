"""Rebuild data directories as a loss of power could leave them, by a seed, and check each."""

import hashlib
import random
import shutil
import sqlite3
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.power.disk import Disk
from tests.power.promises import Promises, check, find_traces, list_traceable
from tests.power.recording import Record

# How a file of SQLite that is not encrypted starts.
PLAIN_STORE = b"SQLite format 3"
# Digests of the rows of stores, by those of their bytes.
KNOWN_ROWS: dict[bytes, bytes] = {}


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
        shutil.rmtree(target)


def apply(disk: Disk, promises: Promises, record: Record) -> None:
    """Apply a record to the disk or to the promises."""
    if record.kind != "M":
        disk.take(record)
    elif record.mark["at"] == "settle":
        disk.settle_all()
    else:
        promises.take(record.mark)


def explore(scenario: str, records: Sequence[Record], seed: int, count: int, folder: Path) -> tuple[int, list[Failure]]:
    """Build so many states of a recorded program and check the different ones; return how many, and the failures.

    The folder is common to all processes and seeds.
    """
    rng = random.Random(f"{scenario} {seed}")
    moments = choose_moments(records, rng, count)
    checked, failures = 0, []
    with tempfile.TemporaryDirectory(prefix="states-", dir=folder) as scratch:
        states = rebuild(records, moments, rng, Path(scratch), is_journaled=seed % 2 == 0)
        for moment, how, target, promises in states:
            if not is_new(target, promises, folder):
                continue
            checked += 1
            try:
                check(target, promises)
            except Exception as error:  # noqa: BLE001 - any error of an opened directory is a finding
                last = traceback.extract_tb(error.__traceback__)[-1]
                problem = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
                failures.append(Failure(scenario, seed, moment, how, problem))
    return checked, failures


def is_new(target: Path, promises: Promises, folder: Path) -> bool:
    """Return whether no directory with the same contents was checked with the same promises."""
    digest = hashlib.sha256(repr((promises.homes, promises.begun)).encode())
    erased = {
        token: text for home in promises.homes.values() for token, text in {**home.erased, **home.traceless}.items()
    }
    digest.update(repr(sorted(find_traces(target, list_traceable(erased)))).encode())
    for path in sorted(target.rglob("*")):
        content = read_contents(path, folder) if path.is_file() else b"folder"
        if content is not None:
            digest.update(f"{path.relative_to(target)} ".encode() + content)
    try:
        (folder / f"seen-{digest.hexdigest()}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def read_contents(file: Path, folder: Path) -> bytes | None:
    """Return a digest of a file, of a store one of its rows, which many different logs contain; None for such a log."""
    content = file.read_bytes()
    if content.startswith(PLAIN_STORE):
        log = file.with_name(f"{file.name}-wal")
        return digest_rows(content, log.read_bytes() if log.exists() else b"", folder)
    store = file.with_name(file.name.removesuffix("-wal"))
    is_read_with_store = store != file and store.exists() and store.read_bytes().startswith(PLAIN_STORE)
    return None if is_read_with_store else hashlib.sha256(content).digest()


def digest_rows(store: bytes, log: bytes, folder: Path) -> bytes:
    """Return a digest of the rows of a store, or of its bytes if they cannot be read."""
    key = hashlib.sha256(store).digest() + hashlib.sha256(log).digest()
    if key not in KNOWN_ROWS:
        KNOWN_ROWS[key] = key
        with tempfile.TemporaryDirectory(dir=folder) as scratch, suppress(sqlite3.DatabaseError):
            file = Path(scratch) / "copy"
            file.write_bytes(store)
            if log:
                file.with_name("copy-wal").write_bytes(log)
            with closing(sqlite3.connect(file)) as db:
                rows = [*db.iterdump(), repr(db.execute("PRAGMA integrity_check").fetchall())]
            KNOWN_ROWS[key] = hashlib.sha256("\n".join(rows).encode()).digest()
    return KNOWN_ROWS[key]
