"""Snapshots of the users of a data directory: stored next to its workspaces' snapshots, by the same rules, and
restored.

They do not contain the access log, and a restored snapshot does not undo a revocation.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from config.paths import HomePaths
from pipeline.errors import NotFound, StoreDamaged
from pipeline.jobs.runner import JobRun, Report
from pipeline.jobs.snapshot import ProblemSink, find_outdated_snapshots, find_snapshot
from pipeline.store import backup, people_file
from pipeline.store.backup import Snapshot, Taken
from pipeline.store.migrations import migrate_copy


def snapshot_people(job: JobRun, paths: HomePaths, report: Report) -> Report:
    """Copy the users if there are any and they changed; return the report with the counts."""
    folder = people_file.find_copies(paths.people)
    if not paths.people.is_file():
        return report
    with backup.locked(folder):
        newest = next((outdated for outdated in backup.snapshots(folder) if outdated.taken is Taken.DAILY), None)
        taken = newest is None or _differs(newest.file, paths.people)
        if taken and not _copy(paths.people, backup.new_file(folder, Taken.DAILY, job.now), job.pausing):
            return replace(report, more=True)
        for outdated in find_outdated_snapshots(backup.snapshots(folder), job.now):
            backup.remove(outdated.file)
    return replace(report, counts={**report.counts, "people": 1}) if taken else report


def take_people_snapshot(paths: HomePaths, now: datetime) -> Snapshot:
    """Copy the users now, whether or not they changed; raise NotFound if there are none."""
    if not paths.people.is_file():
        raise NotFound("There are no users to copy. Add one with `reverie user add`.")
    folder = people_file.find_copies(paths.people)
    with backup.locked(folder):
        file = backup.new_file(folder, Taken.DAILY, now)
        _copy(paths.people, file)
    return find_snapshot(folder, file.stem)


def _differs(newest: Path, file: Path) -> bool:
    try:
        return people_file.read_state(newest) != people_file.read_state(file)
    except StoreDamaged:
        # Either file may be damaged; copying the current one shows which.
        return True


def _copy(file: Path, target: Path, pausing: Callable[[], bool] = lambda: False) -> bool:
    draft = target.with_name(f"{backup.PARTIAL}people.sqlite")
    if not backup.copy(file, draft, pausing):
        return False
    people_file.forget_accesses(draft)
    backup.replace_store_file(draft, target)
    return True


def restore_people(paths: HomePaths, name: str, now: datetime, on_problem: ProblemSink) -> tuple[Snapshot, str | None]:
    """Replace the users by a copy; return it, and the name under which the replaced file is kept, if there was one.

    Users that were removed and tokens that were revoked since then stay removed, if the present file can be read. The
    caller makes sure that no process uses the data directory. After an interruption the file is either the old or the
    new one.
    """
    folder, file = people_file.find_copies(paths.people), paths.people
    find_snapshot(folder, name)
    with backup.locked(folder):
        chosen = find_snapshot(folder, name)
        draft = chosen.file.with_name(f"{backup.PARTIAL}restore.sqlite")
        backup.copy(chosen.file, draft)
        migrate_copy(draft, people_file.MIGRATIONS)
        aside = None
        if file.exists():
            backup_file = backup.new_file(folder, Taken.BEFORE_RESTORE, now)
            backup.put_aside(file, backup_file)
            aside = backup_file.stem
            _carry_over(file, draft, backup_file, on_problem)
        else:
            on_problem(
                "Tokens revoked after this copy was taken may be valid again. Check them with `reverie user list`."
            )
        backup.settle(draft)
        backup.replace_store_file(draft, file)
    return chosen, aside


def _carry_over(file: Path, draft: Path, backup_file: Path, on_problem: ProblemSink) -> None:
    try:
        with backup.typed_errors(file):
            migrate_copy(file, people_file.MIGRATIONS)
        people_file.carry_revocations(file, draft)
        people_file.carry_accesses(file, draft)
        people_file.forget_accesses(backup_file)
    except StoreDamaged as error:
        on_problem(f"Some revocations or requests after this copy was taken cannot be read: {error}")
