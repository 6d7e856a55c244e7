"""The snapshot job: keep verified copies of the store, remove purged memories from them, and restore one.

A restored copy loses its indexes, which are derived again. No copy keeps a purged memory: if the memory cannot be
removed from a copy, the copy is deleted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from config.operating_system import sync_to_disk
from config.paths import WorkspacePaths
from config.steps import reached
from pipeline.features.indexing.job import request_rebuild
from pipeline.index.documents import MEMORIES, TURNS
from pipeline.kernel.errors import NotFound, StoreDamaged
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.store import backup, leases, meta, purges, tables
from pipeline.kernel.store.backup import Snapshot, Taken
from pipeline.kernel.store.database import Database, WriterProfile
from pipeline.kernel.store.migrations import MIGRATIONS, is_migrated, migrate_copy
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.text.quotation import QuotationFinder, QuotationMarks
from pipeline.write import revise

DAYS = 7
WEEKS = 4
LATEST = "latest"
# A damaged store is kept byte for byte, so it may still contain memories that were purged shortly before.
UNSETTLED = timedelta(hours=1)
# Copies contain no acknowledged writes of clients, so one sync at the end is enough.
_COPY = WriterProfile("NORMAL", 1000, 5000)

ProblemSink = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Restored:
    """The restored snapshot, its number of memories, and the name under which the replaced store is kept, if there was
    one.
    """

    snapshot: Snapshot
    memories: int
    aside: str | None


def snapshot(job: JobRun, folder: Path) -> Report:
    """Copy the store into the snapshot folder unless the newest copy is identical; delete outdated copies."""
    if job.pausing():
        return Report(more=True)
    file = job.database.file
    if file is None:
        # A store on a database server has its own backups.
        return Report()
    return renew_copies(
        folder,
        job.now,
        lambda newest: backup.state(newest) != backup.state(file),
        lambda target: backup.copy(file, target, job.pausing),
    )


def renew_copies(
    folder: Path, now: datetime, differs: Callable[[Path], bool], write: Callable[[Path], object]
) -> Report:
    """Write a copy into a folder if the newest one differs; delete outdated copies.

    A `write` that returns False was asked to stop.
    """
    with backup.locked(folder):
        newest = next((snapshot for snapshot in backup.snapshots(folder) if snapshot.taken is Taken.DAILY), None)
        try:
            taken = int(newest is None or differs(newest.file))
        except StoreDamaged:
            # Either file may be damaged; copying the current one shows which.
            taken = 1
        if taken and write(backup.new_file(folder, Taken.DAILY, now)) is False:
            return Report(more=True)
        surplus = find_outdated_snapshots(backup.snapshots(folder), now)
        for outdated in surplus:
            backup.remove(outdated.file)
        reached("outdated snapshots removed")
        remaining = len(backup.snapshots(folder))
    return Report({"taken": taken, "unchanged": 1 - taken, "removed": len(surplus), "kept": remaining})


def take_snapshot(paths: WorkspacePaths, now: datetime) -> Snapshot:
    """Copy the store now, whether or not it has changed, while other processes write to it."""
    backup.check_not_lost(paths.events)
    if not paths.events.is_file():
        raise NotFound("There are no memories in this workspace yet, so there is nothing to copy.")
    with backup.locked(paths.snapshots):
        file = backup.new_file(paths.snapshots, Taken.DAILY, now)
        backup.copy(paths.events, file)
    return find_snapshot(paths.snapshots, file.stem)


def find_outdated_snapshots(snapshots: Iterable[Snapshot], now: datetime) -> list[Snapshot]:
    """Return the snapshots to delete.

    Keeps the newest of each of the last 7 days and 4 ISO weeks (UTC) that have any, replaced stores of the last 4
    weeks, and the newest of each type.
    """
    ordered = sorted(snapshots, key=lambda snapshot: snapshot.at, reverse=True)
    keep: set[Path] = set()
    for sort in Taken:
        mine = [snapshot for snapshot in ordered if snapshot.taken is sort]
        keep.update(snapshot.file for snapshot in mine[:1])
        if sort is Taken.DAILY:
            keep.update(_newest_each(mine, DAYS, lambda snapshot: snapshot.at.date()))
            keep.update(_newest_each(mine, WEEKS, lambda snapshot: snapshot.at.isocalendar()[:2]))
        else:
            keep.update(snapshot.file for snapshot in mine if snapshot.at > now - timedelta(weeks=WEEKS))
    return [snapshot for snapshot in ordered if snapshot.file not in keep]


def _newest_each(ordered: Sequence[Snapshot], limit: int, period: Callable[[Snapshot], object]) -> list[Path]:
    newest: dict[object, Path] = {}
    for snapshot in ordered:
        newest.setdefault(period(snapshot), snapshot.file)
    return list(newest.values())[:limit]


def find_snapshot(folder: Path, name: str) -> Snapshot:
    """Return a snapshot by name, or the newest for `latest`; raise NotFound if there is none."""
    return choose_snapshot(backup.snapshots(folder), name)


def choose_snapshot(snapshots: Iterable[Snapshot], name: str) -> Snapshot:
    """Return a snapshot by name, or the newest for `latest`, from a list with the newest first; raise NotFound if there
    is none.
    """
    for snapshot in snapshots:
        if name in (snapshot.name, snapshot.file.name) or (name == LATEST and snapshot.taken is Taken.DAILY):
            return snapshot
    raise NotFound(
        "There is no snapshot yet. Take one with `reverie store snapshot take`."
        if name == LATEST
        else f"There is no snapshot named {name}. List them with `reverie store snapshot list`."
    )


def scrub_snapshots(database: Database, folder: Path, on_problem: ProblemSink) -> int:
    """Remove every purged memory from every snapshot; return the number of snapshots that contained one.

    A snapshot of an older version is deleted instead, as is a damaged one that was taken before a purge. If none is
    left, a new one is taken at once. Raises StoreBusy while a process reads a snapshot.
    """
    file = database.file
    if file is None or not folder.is_dir():
        return 0
    # The lock waits for a snapshot in progress, which may have started before the purge.
    with backup.locked(folder):
        before = backup.snapshots(folder)
        reached = _scrub_all(before, backup.read(file, backup.list_purged), on_problem)
        if before and not backup.snapshots(folder):
            backup.copy(file, backup.new_file(folder, Taken.DAILY, datetime.now(UTC)))
        # Deleted copies and logs of changed ones.
        sync_to_disk(folder)
    return reached


def _scrub_all(snapshots: Iterable[Snapshot], purged: Mapping[str, datetime], on_problem: ProblemSink) -> int:
    return sum(scrub_copy(snapshot, purged, on_problem) for snapshot in snapshots) if purged else 0


def scrub_copy(snapshot: Snapshot, purged: Mapping[str, datetime], on_problem: ProblemSink) -> bool:
    """Remove purged memories from a snapshot, or delete it if that is impossible; return whether it had any."""
    try:
        # The log of an interrupted run remains, and the file still contains the removed memories.
        backup.settle(snapshot.file)
        held = backup.list_held(snapshot.file, purged)
        if not held and not backup.read(snapshot.file, purges.list_unfinished):
            return False
        if is_migrated(snapshot.file, MIGRATIONS):
            _purge_in(snapshot.file, held)
            return True
        reason = "it was taken by an older version"
    except StoreDamaged as error:
        if max(purged.values()) + UNSETTLED < snapshot.at:
            return False
        reason = str(error)
    backup.remove(snapshot.file)
    on_problem(f"snapshot {snapshot.name} was deleted because a purged memory cannot be removed from it: {reason}")
    return True


def _purge_in(file: Path, memory_ids: Sequence[str]) -> None:
    with _opened_copy(file) as copy:
        with copy.write() as db:
            revise.purge_existing(db, memory_ids)
        with copy.read() as db:
            unfinished = purges.list_unfinished(db)
        finder = QuotationFinder([QuotationMarks.of_json(purge.marks) for purge in unfinished.values()])
        delete_matching_texts_of_store(copy, finder.quotes)
        copy.erase_deleted_data()
        # A copy has no worker to finish them. Only now: after a crash, the copy is purged again.
        with copy.write() as db:
            purges.remove(db, unfinished)


@contextmanager
def _opened_copy(file: Path) -> Iterator[Database]:
    """Open a snapshot for a change; afterwards it is a single file again."""
    with closing(SqliteDatabase(file, _COPY, create=False)) as copy:
        yield copy
    backup.settle(file)
    file.with_suffix(".opening").unlink(missing_ok=True)


def delete_matching_texts(database: Database, folder: Path, matches: Callable[[str], bool]) -> None:
    """Erase matching texts of sessions and questions from a store and its snapshots."""
    _erase_matching(database, matches)
    if not folder.is_dir():
        return
    with backup.locked(folder):
        for snapshot in backup.snapshots(folder):
            migrate_copy(snapshot.file, MIGRATIONS)
            with _opened_copy(snapshot.file) as copy:
                _erase_matching(copy, matches)


def _erase_matching(database: Database, matches: Callable[[str], bool]) -> None:
    # A store without such a text is not rewritten.
    if delete_matching_texts_of_store(database, matches):
        database.erase_deleted_data()


def delete_matching_texts_of_store(database: Database, matches: Callable[[str], bool]) -> bool:
    """Erase matching texts of sessions and questions from a store; return whether there were any."""
    # Search before writing: other writes must not wait while thousands of turns are read.
    with database.read() as db:
        quotations = tables.find_quotations(db, tables.WORKSPACE, lambda _workspace, text: matches(text))
    if quotations:
        with database.write() as db:
            tables.erase_quotations(db, quotations)
    return bool(quotations)


def restore_snapshot(paths: WorkspacePaths, name: str, now: datetime, on_problem: ProblemSink) -> Restored:
    """Replace the store by a snapshot, keep the replaced store as a snapshot, and request a rebuild of every index.

    The caller makes sure that no process uses the workspace. Raises StoreBusy if a process has the store open, and
    StoreDamaged if the snapshot is damaged. After an interruption the store is either the old or the new one.
    """
    find_snapshot(paths.snapshots, name)
    with backup.locked(paths.snapshots):
        # Restoring must not undo a purge that is not finished.
        _scrub_all(backup.snapshots(paths.snapshots), _list_purged_now(paths.events, on_problem), on_problem)
        chosen = find_snapshot(paths.snapshots, name)
        draft = prepare_copy(chosen)
        memories = backup.count_memories(draft)
        aside = backup.replace_store(paths, draft, now)
        if backup.count_memories(paths.events) != memories:
            raise StoreDamaged(f"The restored {paths.events.name} differs from its snapshot. Restore another snapshot.")
    return Restored(chosen, memories, aside)


def _list_purged_now(file: Path, on_problem: ProblemSink) -> Mapping[str, datetime]:
    if not file.exists():
        return {}
    try:
        # SQLite deletes the log of an empty file.
        backup.check_not_lost(file)
        return backup.read(file, backup.list_purged)
    except StoreDamaged as error:
        on_problem(f"The latest purges cannot be read: {error}")
        return {}


def prepare_copy(chosen: Snapshot) -> Path:
    """Make a copy that is ready to become the store: of the current version, without indexes."""
    draft = chosen.file.with_name(f"{backup.PARTIAL}restore.sqlite")
    backup.copy(chosen.file, draft)
    migrate_copy(draft, MIGRATIONS)
    with closing(SqliteDatabase(draft, _COPY, create=False)) as database:
        request_rebuild(database)
        with database.write() as db:
            for keys in (MEMORIES.keys, TURNS.keys):
                meta.drop(db, keys.name)
                meta.drop(db, keys.covers)
            leases.drop_leases(db)
            meta.put(db, meta.RESTORED, chosen.name)
    backup.settle(draft)
    return draft
