"""The branches job: move the memories of merged branches to the repository, and archive those of deleted ones."""

from collections.abc import Callable
from dataclasses import replace
from sqlite3 import Connection

from pipeline.identity.branch_outcome import BranchOutcome, Outcome, find_outcome
from pipeline.identity.branches import is_usable_name
from pipeline.jobs.runner import JobRun, Report
from pipeline.records import Memory
from pipeline.records.branches import KnownBranch
from pipeline.store import branches
from pipeline.write.branch_end import archive_unmerged, follow_rename, promote

# Memories per transaction, so that other writers do not wait long.
PAGE = 50


def follow_branches(run: JobRun) -> Report:
    """Look what became of each branch that has memories; branches that were not seen on this machine stay."""
    with run.database.read() as db:
        names, known = branches.list_branches_with_memories(db), branches.read_known(db)
    for number, name in enumerate(names):
        if run.pausing():
            return run.report(more=True)
        if name in known:
            run.counts["branches"] += 1
            _follow(run, known[name], find_outcome(known[name]))
        run.progress(number + 1, len(names))
    return run.report(more=False)


def _follow(run: JobRun, known: KnownBranch, result: BranchOutcome) -> None:
    name = known.branch.name
    if result.outcome is Outcome.OPEN:
        if result.is_ahead != known.is_ahead and result.tip != known.settled:
            _note(run, replace(known, is_ahead=result.is_ahead))
    elif result.outcome is Outcome.MERGED:
        _change_each(run, name, "promoted", promote)
        _note(run, replace(known, is_ahead=False, settled=result.tip))
    elif result.outcome is Outcome.DELETED:
        _change_each(run, name, "archived", archive_unmerged)
        _note(run, replace(known, is_ahead=False, settled=result.tip))
    elif result.outcome is Outcome.RENAMED and is_usable_name(result.new_name):
        _rename(run, known, result.new_name)


def _note(run: JobRun, known: KnownBranch) -> None:
    with run.database.write() as db:
        branches.put_known(db, known)


def _rename(run: JobRun, known: KnownBranch, new_name: str) -> None:
    def rename(db: Connection, memory: Memory, at: str) -> None:
        follow_rename(db, memory, new_name, at)

    _change_each(run, known.branch.name, "renamed", rename)
    with run.database.write() as db:
        branches.rename_known(db, known.branch.name, known, new_name)


def _change_each(run: JobRun, name: str, count: str, change: Callable[[Connection, Memory, str], object]) -> None:
    """Change each memory of a branch, a page in a transaction."""
    last = 0
    while True:
        with run.database.write() as db:
            page = branches.list_memories_of(db, name, last, PAGE)
            for memory in page:
                run.counts[count] += change(db, memory, run.at) is not False
        if len(page) < PAGE:
            return
        last = page[-1].seq
