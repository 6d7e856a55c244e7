"""Finish purges outside of one store: copies in other workspaces, quotations in turns and logs, refusal marks.

A purge records the remaining work in its own transaction. This module does it at once if possible; otherwise the purge
stage of a worker retries until nothing is left.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from pipeline.errors import NotFound, StoreUnavailable
from pipeline.jobs import snapshot
from pipeline.services.spool_purge import scrub_spool
from pipeline.store import hook_runs, memories, purges, refusals
from pipeline.store.purges import UnfinishedPurge
from pipeline.store.refusals import RefusedBy
from pipeline.text.quotation import QuotationFinder, QuotationMarks
from pipeline.times import utc_now
from pipeline.workspace import Workspace
from pipeline.write import revise

Step = Callable[[], object]


def finish_purges(workspace: Workspace) -> list[str]:
    """Erase texts of purged memories from other files; return the keys of the finished purges.

    Raises the first StoreUnavailable after erasing everything possible.
    """
    unfinished = _list_unfinished(workspace)
    if unfinished:
        pending = list(unfinished.values())
        steps: list[Step] = [partial(_follow_copies, workspace)]
        steps += [partial(_refuse_return, workspace, purge) for purge in pending]
        _run_all([*steps, *_list_quotation_steps(workspace, pending)])
    return list(unfinished)


def _list_unfinished(workspace: Workspace) -> dict[str, UnfinishedPurge]:
    with workspace.database.read() as db:
        return purges.list_unfinished(db)


def _run_all(steps: Iterable[Step]) -> None:
    """Run every step; raise the first StoreUnavailable at the end."""
    failures = []
    for step in steps:
        try:
            step()
        except StoreUnavailable as error:
            failures.append(error)
    if failures:
        raise failures[0]


def _follow_copies(workspace: Workspace) -> None:
    """Purge the copies in other workspaces, and recursively the copies of those."""
    siblings = [sibling for sibling in workspace.list_siblings() if sibling.id != workspace.id]
    for purge in _list_unfinished(workspace).values():
        _run_all(partial(_purge_copies, sibling, purge) for sibling in siblings if purge.by.may_write(sibling.id))


def _purge_copies(workspace: Workspace, purge: UnfinishedPurge) -> None:
    # A workspace that was deleted since contains no copy.
    with suppress(NotFound):
        with workspace.database.read() as db:
            copies = purges.find_copies(db, purge.memory_ids)
        if copies and workspace.settings.read_only:
            problem = f"{len(copies)} copies of a purged memory remain: the workspace is read only (setting read_only)"
            workspace.operations.record_error("purge", problem, workspace=workspace.id)
        elif copies:
            with workspace.database.write() as db:
                # Purging one may also delete others.
                present = (memories.get(db, copy.id) for copy in copies)
                for memory in present:
                    if memory is not None:
                        revise.purge_memory(db, memory, purge.by)
            _follow_copies(workspace)


def _refuse_return(workspace: Workspace, purge: UnfinishedPurge) -> None:
    """Mark the texts in the purging person's store, which is checked before any workspace stores a text."""
    with workspace.of_person(purge.by.person_id).person.create().write() as db:
        for content_hash in purge.hashes:
            refusals.add(db, purge.memory_ids[0], content_hash, RefusedBy.PURGED, utc_now())


def _list_quotation_steps(workspace: Workspace, unfinished: Sequence[UnfinishedPurge]) -> list[Step]:
    marks = [QuotationMarks.of_json(purge.marks) for purge in unfinished]
    of_person = [mark for mark, purge in zip(marks, unfinished, strict=True) if purge.is_of_person]
    here = QuotationFinder(marks)
    # A word that identifies the memory in its own workspace may be an ordinary word in another.
    anywhere = QuotationFinder([*of_person, *(replace(mark, telling=frozenset()) for mark in marks)])
    ids = [memory_id for purge in unfinished for memory_id in purge.memory_ids]

    def quotes(workspace_id: str | None, text: str) -> bool:
        return (here if workspace_id == workspace.id else anywhere).quotes(text)

    # First, so that the other steps find what was delivered before.
    waiting = workspace.home_settings.paths.spool
    steps: list[Step] = [partial(scrub_spool, waiting, lambda name, text: quotes(name or workspace.id, text))]
    steps.append(partial(snapshot.delete_matching_texts_of_store, workspace.database, here.quotes))
    if of_person:
        steps.append(partial(_forget_said_everywhere, workspace, QuotationFinder(of_person)))
    steps.append(partial(_purge_journal, workspace, ids, quotes))
    if workspace.peers.exists:
        steps.append(partial(workspace.peers.purge_quarantined, ids))
    if (logs := workspace.home_settings.paths.logs).is_dir():
        steps += [partial(_blank_lines, file, here) for file in sorted(logs.iterdir()) if file.is_file()]
    return steps


def _forget_said_everywhere(workspace: Workspace, finder: QuotationFinder) -> None:
    """Delete turns that quote personal memories in every workspace and its snapshots."""
    for sibling in workspace.list_siblings():
        with suppress(NotFound):
            snapshot.delete_matching_texts(sibling.database, sibling.paths.snapshots, finder.quotes)


def _purge_journal(workspace: Workspace, memory_ids: Sequence[str], quotes: Callable[[str | None, str], bool]) -> None:
    with workspace.operations.write() as db:
        hook_runs.purge(db, memory_ids, quotes)
    workspace.operations.purge_errors(quotes)
    workspace.operations.erase_deleted_data()


def _blank_lines(file: Path, finder: QuotationFinder) -> None:
    """Overwrite matching lines of a log in place, because another process may append at the same time."""
    try:
        with file.open("r+b") as log:
            start = 0
            for line in log.read().splitlines(keepends=True):
                if finder.quotes(line.decode(errors="replace")):
                    log.seek(start)
                    log.write(b"-" * len(line.rstrip(b"\r\n")))
                start += len(line)
    except OSError as error:
        raise StoreUnavailable(f"{file} cannot be rewritten: {error}") from error
