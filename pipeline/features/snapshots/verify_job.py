"""The verify job: restore the newest snapshot into a scratch file, and compare every memory with its hash."""

from collections.abc import Callable
from pathlib import Path

from pipeline.features.snapshots.job import prepare_copy
from pipeline.kernel.errors import StoreDamaged
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.store import backup, row_hashes
from pipeline.kernel.store.backup import Taken


def verify_snapshot(_run: JobRun, folder: Path, on_problem: Callable[[str], object]) -> Report:
    """Prepare the newest snapshot of a folder as a restore does; report why it could not replace the store."""
    newest = next((snapshot for snapshot in backup.snapshots(folder) if snapshot.taken is Taken.DAILY), None)
    if newest is None:
        return Report()
    with backup.locked(folder):
        try:
            draft = prepare_copy(newest)
            wrong = [
                memory_id
                for find in (row_hashes.list_edited, row_hashes.list_deleted)
                for memory_id in backup.read(draft, find)
            ]
            problem = f"{len(wrong)} memories do not match their hashes or are missing" if wrong else None
            backup.remove(draft)
        except StoreDamaged as error:
            problem = str(error)
    if problem is not None:
        on_problem(f"Snapshot {newest.name} cannot be restored: {problem}. Take another one.")
    return Report({"verified": int(problem is None), "broken": int(problem is not None)})
