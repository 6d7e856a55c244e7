"""Snapshots of the users of a data directory: stored next to its workspaces' snapshots, by the same rules, and
restored.

They contain only the tables of users. A restored snapshot does not undo a revocation.
"""

from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING

from config.operating_system import publish
from config.paths import HomePaths
from pipeline.features.snapshots.job import ProblemSink, find_snapshot, renew_copies, snapshot
from pipeline.kernel.errors import NotFound, StoreDamaged
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.store import backup, people
from pipeline.kernel.store.backup import Snapshot, Taken
from pipeline.kernel.store.copying import SqliteTables, copy
from pipeline.kernel.store.development_data import import_home_file
from pipeline.kernel.store.home_file import MIGRATIONS, HomeFile
from pipeline.kernel.store.migrations import is_migrated, writing_new_file

if TYPE_CHECKING:
    from pipeline.features.maintenance.context import JobContext


def take_snapshots(run: JobRun, context: "JobContext") -> Report:
    """Copy a workspace and, once a night, the users."""
    if context.snapshots is not None:
        taken = context.snapshots.take(run.database, run.now, anew=False)
        return Report({"taken": int(taken is not None), "unchanged": int(taken is None)})
    report = snapshot(run, context.paths.snapshots)
    if report.more or run.database.file is None:
        return report
    # The users belong to the data directory: the first workspace of the night copies them.
    return snapshot_people(run, context.settings.paths, report)


def snapshot_people(job: JobRun, paths: HomePaths, report: Report) -> Report:
    """Copy the users if there are any and they changed; return the report with the counts."""
    if job.pausing():
        return replace(report, more=True)
    with closing(HomeFile(paths.home)) as home, home.read() as db:
        content = people.read_content(db)
        if not content[0]:
            return report
        copied = renew_copies(
            paths.snapshots,
            job.now,
            lambda newest: backup.read(newest, people.read_content) != content,
            lambda target: _write_copy(db, target),
        )
    return replace(report, counts={**report.counts, "people": 1}) if copied.counts["taken"] else report


def take_people_snapshot(paths: HomePaths, now: datetime) -> Snapshot:
    """Copy the users now, whether or not they changed; raise NotFound if there are none."""
    with closing(HomeFile(paths.home)) as home, home.read() as db:
        if not people.read_content(db)[0]:
            raise NotFound("There are no users to copy. Add one with `reverie user add`.")
        with backup.locked(paths.snapshots):
            file = backup.new_file(paths.snapshots, Taken.DAILY, now)
            _write_copy(db, file)
    return find_snapshot(paths.snapshots, file.stem)


def count_people(file: Path) -> int:
    """Count the people in a snapshot who were not removed."""
    return backup.read(file, people.count)


def _write_copy(source: Connection, target: Path) -> None:
    draft = target.with_name(f"{backup.PARTIAL}{target.name}")
    try:
        with backup.typed_errors(target):
            with writing_new_file(draft, MIGRATIONS) as db:
                copy(SqliteTables(source, people.SNAPSHOT_TABLES), SqliteTables(db, people.SNAPSHOT_TABLES))
            publish(draft, target)
    finally:
        backup.remove(draft)


def restore_people(paths: HomePaths, name: str, now: datetime, on_problem: ProblemSink) -> tuple[Snapshot, str | None]:
    """Replace the users by a snapshot; return it, and the name of the snapshot of the replaced users, if any.

    Users that were removed and tokens that were revoked since then stay removed, if the present file can be read.
    """
    with backup.locked(paths.snapshots):
        chosen = find_snapshot(paths.snapshots, name)
        backup.read(chosen.file, lambda db: backup.verify(db, backup.row_counts(db)))
        aside = _put_aside(paths, now, on_problem)
        with closing(HomeFile(paths.home)) as home, home.write() as db:
            revocations = people.list_revocations(db)
            _replace_people(db, chosen.file)
            people.carry_revocations(db, revocations)
    return chosen, aside


def _put_aside(paths: HomePaths, now: datetime, on_problem: ProblemSink) -> str | None:
    """Keep the present users as a snapshot, or a damaged file of the data directory byte for byte."""
    aside = backup.new_file(paths.snapshots, Taken.BEFORE_RESTORE, now)
    try:
        with closing(HomeFile(paths.home)) as home, home.read() as db:
            if not people.read_content(db)[0]:
                on_problem(
                    "Tokens revoked after this copy was taken may be valid again. Check them with `reverie user list`."
                )
                return None
            _write_copy(db, aside)
    except StoreDamaged as error:
        on_problem(f"Some revocations or requests after this copy was taken cannot be read: {error}")
        backup.put_aside(paths.home, aside)
        backup.remove(paths.home)
    return aside.stem


def _replace_people(db: Connection, file: Path) -> None:
    target = SqliteTables(db, people.SNAPSHOT_TABLES)
    target.clear(target.tables)
    if is_migrated(file, MIGRATIONS):
        backup.read(file, lambda source: copy(SqliteTables(source, people.SNAPSHOT_TABLES), target))
    else:
        import_home_file(db, file)
