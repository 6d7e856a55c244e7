"""Copies of who shares a home: kept beside those of its workspaces, by the same rule, and put back.

The access log is in none, and what was revoked stays so.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from config.paths import HomePaths
from pipeline.errors import NotFound, StoreDamaged
from pipeline.jobs.runner import JobRun, Report
from pipeline.jobs.snapshot import ProblemSink, find_outlived, find_snapshot
from pipeline.store import backup, people_file
from pipeline.store.backup import Snapshot, Taken
from pipeline.store.migrations import migrate_copy


def snapshot_people(job: JobRun, paths: HomePaths, report: Report) -> Report:
    """Copy the people of a home, where it has any and they changed; return the report with what was done."""
    folder = people_file.find_copies(paths.people)
    if not paths.people.is_file():
        return report
    with backup.locked(folder):
        newest = next((one for one in backup.snapshots(folder) if one.taken is Taken.DAILY), None)
        taken = newest is None or _differs(newest.file, paths.people)
        if taken and not _copy(paths.people, backup.new_file(folder, Taken.DAILY, job.now), job.pausing):
            return replace(report, more=True)
        for one in find_outlived(backup.snapshots(folder), job.now):
            backup.remove(one.file)
    return replace(report, counts={**report.counts, "people": 1}) if taken else report


def take_people_snapshot(paths: HomePaths, now: datetime) -> Snapshot:
    """Copy the people of a home now, whether or not they changed; raise NotFound where there are none."""
    if not paths.people.is_file():
        raise NotFound("nobody was ever added: there are no people to copy")
    folder = people_file.find_copies(paths.people)
    with backup.locked(folder):
        file = backup.new_file(folder, Taken.DAILY, now)
        _copy(paths.people, file)
    return find_snapshot(folder, file.stem)


def _differs(newest: Path, file: Path) -> bool:
    try:
        return people_file.read_state(newest) != people_file.read_state(file)
    except StoreDamaged:
        # Whichever of the two it is, the copy that is made now tells.
        return True


def _copy(file: Path, target: Path, pausing: Callable[[], bool] = lambda: False) -> bool:
    draft = target.with_name(f"{backup.PARTIAL}people.sqlite")
    if not backup.copy(file, draft, pausing):
        return False
    people_file.forget_accesses(draft)
    backup.put_in_place(draft, target)
    return True


def restore_people(paths: HomePaths, name: str, now: datetime, on_problem: ProblemSink) -> tuple[Snapshot, str | None]:
    """Put a copy in the place of the people; return it, and by which name what was there before is kept, if anything.

    Who was removed since, and each token that was revoked since, stays so where the present file can be read. The
    caller sees to it that nothing of the home runs. Interrupted at any place, the file is the old one or the new one.
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
            kept = backup.new_file(folder, Taken.BEFORE_RESTORE, now)
            backup.put_aside(file, kept)
            aside = kept.stem
            _carry_over(file, draft, kept, on_problem)
        else:
            on_problem("what was revoked since that copy was taken is not known: see `reverie user list`")
        backup.settle(draft)
        backup.put_in_place(draft, file)
    return chosen, aside


def _carry_over(file: Path, draft: Path, kept: Path, on_problem: ProblemSink) -> None:
    try:
        with backup.typed_errors(file):
            migrate_copy(file, people_file.MIGRATIONS)
        people_file.carry_revocations(file, draft)
        people_file.carry_accesses(file, draft)
        people_file.forget_accesses(kept)
    except StoreDamaged as error:
        on_problem(f"what was revoked or asked since that copy was taken cannot all be read: {error}")
