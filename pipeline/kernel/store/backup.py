"""Copy a workspace's SQLite file while other processes use it, and verify the copy.

A copy is written under a name that starts with `partial-`, and renamed once it is complete, verified and synced. So
every file named like a snapshot is valid, and the next run removes the remains of an interrupted one.
"""

import errno
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Set as AbstractSet
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from config.operating_system import make_folder, publish, sync_to_disk
from config.paths import WorkspacePaths
from config.steps import reached
from pipeline.kernel.errors import StoreBusy, StoreDamaged, StoreFull, StoreUnavailable
from pipeline.kernel.store import driver
from pipeline.kernel.store.driver import failure_of, sqlite_errors
from pipeline.kernel.store.key import find_key
from pipeline.kernel.store.rows import list_rows

_T = TypeVar("_T")

# 2 MiB per step: a request to stop the copy waits at most for one step.
STEP_PAGES = 512
# How long to wait for another process that uses a file.
BUSY_S = 5.0
PARTIAL = "partial-"
LOG_SUFFIXES = ("-wal", "-shm", "-journal")


class Taken(StrEnum):
    """The reason for a snapshot."""

    DAILY = "daily"
    BEFORE_MIGRATION = "before-migration"
    BEFORE_RESTORE = "before-restore"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a store at a time (UTC)."""

    file: Path
    taken: Taken
    at: datetime

    @property
    def name(self) -> str:
        """Return the name for restoring the snapshot."""
        return self.file.stem


_NAME = re.compile(rf"(?:({Taken.BEFORE_MIGRATION}|{Taken.BEFORE_RESTORE})-)?(\d{{8}}T\d{{6}})(\d{{3}})Z\.sqlite")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder of snapshots against other processes; remove the remains of interrupted runs."""
    with ExitStack() as held:
        with typed_errors(folder):
            make_folder(folder)
            held.enter_context(FileLock(folder / ".lock"))
            for entry in folder.glob(f"{PARTIAL}*"):
                entry.unlink()
        yield


def snapshots(folder: Path) -> list[Snapshot]:
    """List the snapshots of a folder, newest first."""
    return parse_names(folder.iterdir()) if folder.is_dir() else []


def parse_names(files: Iterable[Path]) -> list[Snapshot]:
    """List the files that are named like snapshots, newest first."""
    snapshots_found = []
    for entry in files:
        name = _NAME.fullmatch(entry.name)
        if name is not None:
            at = datetime.strptime(f"{name[2]}{name[3]}000", "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
            snapshots_found.append(Snapshot(entry, Taken(name[1] or Taken.DAILY), at))
    return sorted(snapshots_found, key=lambda snapshot: (snapshot.at, snapshot.file.name), reverse=True)


def describe_newest(paths: WorkspacePaths) -> str:
    """Return the command that restores the newest snapshot of a workspace, with its time."""
    found = snapshots(paths.snapshots)
    # A replaced store may be the damaged one.
    newest = next((snapshot for snapshot in found if snapshot.taken is Taken.DAILY), next(iter(found), None))
    if newest is None:
        return f"No snapshot is left. To start anew, delete the folder {paths.root}"
    command = f"reverie -w {paths.root.name} store snapshot restore {newest.name}"
    return f"`{command}` restores the newest snapshot, of {newest.at:%Y-%m-%d %H:%M} UTC"


def check_not_lost(file: Path) -> None:
    """Raise StoreDamaged if a store's file is missing or empty although the store was used."""
    paths = WorkspacePaths(file.parent)
    trace = paths.lost_store if file.name == paths.events.name else None
    if trace is not None:
        what = "is empty" if file.exists() else "is missing"
        raise StoreDamaged(f"{file} {what}, but {trace}. {describe_newest(paths)}")


def new_file(folder: Path, reason: Taken, now: datetime, known: AbstractSet[str] = frozenset()) -> Path:
    """Return a name that no snapshot has, here or in the given list."""
    moment = now.astimezone(UTC)
    while True:
        stamp = f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}Z"
        file = folder / (f"{stamp}.sqlite" if reason is Taken.DAILY else f"{reason}-{stamp}.sqlite")
        if not file.exists() and file.name not in known:
            return file
        moment += timedelta(milliseconds=1)


def copy(source: Path, target: Path, pausing: Callable[[], bool] = lambda: False, pages: int = STEP_PAGES) -> bool:
    """Make a verified copy of a store that may be in use; return False if it was asked to stop.

    The caller has locked the target's folder. Raises StoreDamaged if the source or the copy is damaged, StoreFull or
    StoreUnavailable if the copy cannot be written.
    """
    check_not_lost(source)
    partial = target.with_name(f"{PARTIAL}{target.name}")
    with typed_errors(source):
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            counts = _copy_pages(source, partial, pausing, pages)
            # A single file without a log, which every SQLite program can read.
            with closing(_connect(partial)) as db:
                db.execute("PRAGMA journal_mode=DELETE")
                verify(db, counts)
            reached("snapshot copied")
            publish(partial, target)
            reached("snapshot published")
        except _StoppedError:
            return False
        finally:
            remove(partial)
    return True


class _StoppedError(Exception):
    """Interrupt a copy between two steps."""


def _copy_pages(source: Path, partial: Path, pausing: Callable[[], bool], pages: int) -> dict[str, int]:
    def look_up(_status: int, _left: int, _total: int) -> None:
        if pausing():
            raise _StoppedError

    with closing(_connect(source)) as live, closing(_connect(partial)) as target:
        if driver.is_encrypted(target) and not driver.is_encrypted(live):
            # An interrupted encryption: pages of a plain store are not pages of an encrypted copy.
            return driver.export(live, partial, find_key(partial))
        # One read transaction from start to end: concurrent writes neither wait for it nor restart it.
        live.execute("BEGIN")
        counts = row_counts(live)
        # A partial copy may be lost; it is synced once, when it is complete.
        target.execute("PRAGMA synchronous=OFF")
        live.backup(target, pages=pages, progress=look_up, sleep=0)
    return counts


def verify(db: sqlite3.Connection, counts: Mapping[str, int]) -> None:
    """Raise StoreDamaged if a copy is damaged or has other row counts than its source."""
    problems = [row[0] for row in db.execute("PRAGMA integrity_check(3)")]
    if problems != ["ok"]:
        raise StoreDamaged(f"the integrity check found: {'; '.join(problems)}")
    if row_counts(db) != counts:
        raise StoreDamaged("the copy has a different number of rows than its source")


def row_counts(db: sqlite3.Connection) -> dict[str, int]:
    """Count the rows of every table."""
    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'")
    return {
        name: db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608 - names of the file's own tables
        for (name,) in tables.fetchall()
    }


def state(file: Path) -> tuple[list[str], str | None]:
    """Return a value that changes when a store changes: its schema and its last change."""
    with typed_errors(file), closing(_connect(file)) as db:
        schema = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY sql")]
        logs = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'change'").fetchone()
        row = db.execute("SELECT hlc FROM change ORDER BY seq DESC LIMIT 1").fetchone() if logs else None
        return schema, None if row is None else row[0]


def read(file: Path, ask: Callable[[sqlite3.Connection], _T]) -> _T:
    """Return an answer from a store or a snapshot."""
    with typed_errors(file), closing(_connect(file)) as db:
        return ask(db)


def count_memories(file: Path) -> int:
    """Count the memories of a store, including archived ones."""
    return read(file, lambda db: int(db.execute("SELECT count(*) FROM memory").fetchone()[0]))


def list_purged(db: sqlite3.Connection) -> dict[str, datetime]:
    """List all memories that were ever purged: id and time (UTC)."""
    rows = db.execute("SELECT memory_id, hlc FROM change WHERE op = 'purge' ORDER BY seq").fetchall()
    return {memory_id: datetime.fromtimestamp(int(hlc.split("-")[0]) / 1000, UTC) for memory_id, hlc in rows}


def list_held(file: Path, memory_ids: Iterable[str]) -> list[str]:
    """List which of some memories a store contains."""
    known = set(read(file, lambda db: list_rows(db, str, "SELECT id FROM memory")))
    return [memory_id for memory_id in memory_ids if memory_id in known]


def settle(file: Path) -> None:
    """Checkpoint a store's log into its file; raise StoreBusy while another process has it open."""
    with typed_errors(file), closing(_connect(file)) as db:
        db.execute("PRAGMA secure_delete=ON")
        mode = db.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
        # Reading makes SQLite roll back an interrupted transaction.
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if mode != "delete":
        raise StoreBusy(f"{file} is in use")


def put_aside(file: Path, target: Path) -> None:
    """Move a store aside before it is replaced; keep a damaged store unchanged, with its log.

    The caller has locked the target's folder. Raises StoreBusy while another process has the store open.
    """
    with typed_errors(file):
        raw = _raw_copies(file, target)
        try:
            # SQLite deletes the log of an empty file.
            check_not_lost(file)
            settle(file)
            copy(file, target)
        except StoreDamaged:
            # Opening the store may have changed it, so the state from before counts.
            for suffix, piece in raw.items():
                publish(piece, target.with_name(target.name + suffix))
        finally:
            for piece in raw.values():
                piece.unlink(missing_ok=True)


def _raw_copies(file: Path, target: Path) -> dict[str, Path]:
    raw: dict[str, Path] = {}
    for suffix in ("", *LOG_SUFFIXES):
        piece = file.with_name(file.name + suffix)
        if piece.exists():
            raw[suffix] = target.with_name(f"{PARTIAL}raw-{target.name}{suffix}")
            os.close(os.open(raw[suffix], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
            shutil.copyfile(piece, raw[suffix])
    return raw


def replace_store_file(source: Path, file: Path) -> None:
    """Replace a store by a complete file; the caller has moved the store aside and no process has it open."""
    # SQLite would replay the log of the old file into the new one.
    for suffix in LOG_SUFFIXES:
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    sync_to_disk(file.parent)
    reached("log dropped")
    publish(source, file)
    reached("store replaced")


def replace_store(paths: WorkspacePaths, source: Path, now: datetime) -> str | None:
    """Replace a workspace's store by a complete file; return the name of the snapshot that keeps the replaced store.

    The caller has locked the snapshots, and no process has the store open.
    """
    aside = None
    with typed_errors(paths.events):
        if paths.events.exists():
            replaced = new_file(paths.snapshots, Taken.BEFORE_RESTORE, now)
            put_aside(paths.events, replaced)
            aside = replaced.stem
            reached("store put aside")
        # The indexes refer to row numbers, which may now belong to other memories.
        for derived in paths.indexes:
            if derived.exists():
                shutil.rmtree(derived)
        reached("indexes dropped")
        replace_store_file(source, paths.events)
    return aside


def remove(file: Path) -> None:
    """Delete a copy and its log files."""
    for suffix in (*LOG_SUFFIXES, ""):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    file.with_suffix(".opening").unlink(missing_ok=True)


def _connect(file: Path) -> sqlite3.Connection:
    # Mode `rw` never creates a missing file.
    return driver.connect(file, timeout_s=BUSY_S)


@contextmanager
def typed_errors(file: Path) -> Iterator[None]:
    """Translate errors of a file or its copy into the store's exceptions."""
    try:
        yield
    except sqlite_errors(sqlite3.DatabaseError) as error:
        # All other SQLite errors mean that the data is damaged.
        raise failure_of(error, file) or StoreDamaged(f"{file} is damaged: {error}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"no room for {file} or its copy: free some space on its disk") from error
        raise StoreUnavailable(
            f"{file} or its copy cannot be read or written: {error}; run `reverie doctor` to check its disk and owner"
        ) from error
