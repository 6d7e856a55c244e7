"""Finish purges outside of one store: copies in other workspaces, quotations in turns and logs, refusal marks.

A purge records the remaining work in its own transaction. This module does it at once if possible; otherwise the purge
stage of a worker retries until nothing is left.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from config.operating_system import sync_to_disk
from config.paths import SPOOL_BEGUN, SPOOL_ENDING, SPOOL_HELD, SPOOL_REFUSED, WORKSPACE_HEADER
from pipeline.features.snapshots import job as snapshot
from pipeline.kernel.errors import NotFound, StoreUnavailable
from pipeline.kernel.records.people import HOME_OWNER, caller_of
from pipeline.kernel.store import purges, refusals, tables
from pipeline.kernel.store.atomic_files import writing
from pipeline.kernel.store.rows import Quotes
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.text.memory_terms import list_value_texts
from pipeline.text.quotation import QuotationFinder, QuotationMarks
from pipeline.write import revise

Step = Callable[[], object]


def finish_purges(workspace: Workspace) -> list[str]:
    """Erase texts of purged memories from other files; return the keys of the finished purges.

    Raises the first StoreUnavailable after erasing everything possible.
    """
    unfinished = _list_unfinished(workspace)
    if unfinished:
        pending = list(unfinished.values())
        marking = (partial(_refuse_return, workspace, purge) for purge in pending)
        _run_all([partial(_follow_copies, workspace), *marking, *_list_quotation_steps(workspace, pending)])
    return list(unfinished)


def _list_unfinished(workspace: Workspace) -> dict[str, purges.UnfinishedPurge]:
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
    # Those who asked for the purges decide where, not the caller who completes them.
    siblings = [sibling for sibling in workspace.of(HOME_OWNER).list_siblings() if sibling.id != workspace.id]
    for purge in _list_unfinished(workspace).values():
        _run_all(partial(_purge_copies, sibling, purge) for sibling in siblings if purge.by.may_write(sibling.id))


def _purge_copies(workspace: Workspace, purge: purges.UnfinishedPurge) -> None:
    # A workspace that was deleted since contains no copy.
    with suppress(NotFound):
        with workspace.database.read() as db:
            copies = purges.find_copies(db, purge.memory_ids)
        if copies and workspace.access.is_read_only:
            problem = f"{len(copies)} copies of a purged memory remain: the workspace is read only (setting read_only)"
            workspace.operations.record_error("purge", problem, workspace=workspace.id)
        elif copies:
            with workspace.database.write() as db:
                revise.purge_existing(db, [copy.id for copy in copies], purge.by)
            workspace.database.sync_log()
            _follow_copies(workspace)


def _refuse_return(workspace: Workspace, purge: purges.UnfinishedPurge) -> None:
    """Mark the texts in the purging person's store, which is checked before any workspace stores a text."""
    person = workspace.of(caller_of(purge.by.person_id)).person.create()
    with person.write() as db:
        for content_hash in purge.hashes:
            refusals.add(db, purge.memory_ids[0], content_hash, refusals.RefusedBy.PURGED, utc_now())
    person.sync_log()


def _list_quotation_steps(workspace: Workspace, unfinished: Sequence[purges.UnfinishedPurge]) -> list[Step]:
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
    steps: list[Step] = [
        partial(scrub_spool, waiting, lambda name, text: quotes(name or workspace.id, text)),
        partial(snapshot.delete_matching_texts_of_store, workspace.database, here.quotes),
    ]
    if of_person:
        steps.append(partial(_forget_said_everywhere, workspace, QuotationFinder(of_person)))
    steps.append(partial(_erase_outside, workspace, ids, quotes))
    if (logs := workspace.home_settings.paths.logs).is_dir():
        steps += [partial(_blank_lines, file, here) for file in sorted(logs.iterdir()) if file.is_file()]
    return steps


def _forget_said_everywhere(workspace: Workspace, finder: QuotationFinder) -> None:
    """Delete turns that quote personal memories in every workspace and its snapshots."""
    for sibling in workspace.list_siblings():
        with suppress(NotFound):
            snapshot.delete_matching_texts(sibling.database, sibling.paths.snapshots, finder.quotes)


def _erase_outside(workspace: Workspace, memory_ids: Sequence[str], quotes: Quotes) -> None:
    journal = workspace.operations.tables
    with journal.write() as db:
        tables.erase_outside(db, memory_ids, quotes)
    journal.erase_deleted_data()


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


BATCH = "/v1/memories/batch"
# A request that is rewritten has this ending meanwhile, so that it is not delivered.
CLAIMED = ".purge"


def scrub_spool(folder: Path, quotes: Quotes) -> None:
    """Delete the requests that quote a purged text; of a batch, only the memories that do.

    Raises StoreUnavailable while such a request is being delivered, and if a file cannot be changed: the purge stays
    queued, and its next turn also finds what was delivered meanwhile.
    """
    try:
        being_delivered = [file for file in _list_files(folder) if not _scrub(file, quotes)]
        for file in _list_files(folder / SPOOL_REFUSED):
            _scrub(file, quotes)
        if folder.is_dir():
            sync_to_disk(folder)
    except OSError as error:
        raise StoreUnavailable(f"the spool in {folder} cannot be searched: {error}") from error
    if being_delivered:
        raise StoreUnavailable(f"{being_delivered[0].name} quotes a purged memory and is being delivered")


def _list_files(folder: Path) -> list[Path]:
    """List requests and drafts, also those that an interrupted purge was rewriting."""
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.name.endswith((SPOOL_ENDING, SPOOL_HELD, CLAIMED)))


def _scrub(file: Path, quotes: Quotes) -> bool:
    """Remove what a file quotes; return False if it must be delivered first."""
    if os.path.lexists(file) and not stat.S_ISREG(file.lstat().st_mode):
        # A folder, pipe, device or link contains no request.
        return True
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        # Its delivery was started since, or is finished: other steps of the purge then find the text in the store.
        begun = file.with_name(f"{file.name.removesuffix(SPOOL_ENDING)}{SPOOL_BEGUN}")
        return not begun.exists() or _scrub(begun, quotes)
    rest = _remove_quotations(data, quotes)
    if rest == data:
        return True
    if file.name.endswith(SPOOL_BEGUN) and file.parent.name != SPOOL_REFUSED:
        return False
    _rewrite(file, rest)
    return True


def _remove_quotations(data: bytes, quotes: Quotes) -> bytes | None:
    """Return the content of a file without quotations: unchanged, as a smaller batch, or None if nothing is left."""
    try:
        request = json.loads(data)
        workspace, path, body = request["headers"].get(WORKSPACE_HEADER), unquote(request["path"]), request["body"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # A damaged file, or a draft that is being written.
        return None if quotes(None, data.decode(errors="replace")) else data
    if path == BATCH and isinstance(body, dict) and isinstance(body.get("items"), list):
        kept = [item for item in body["items"] if not _is_quoting(item, workspace, quotes)]
        if len(kept) < len(body["items"]):
            body["items"] = kept
            return json.dumps(request, ensure_ascii=False).encode() if kept else None
    return None if quotes(workspace, path) or _is_quoting(body, workspace, quotes) else data


def _is_quoting(value: Any, workspace: str | None, quotes: Quotes) -> bool:
    return any(quotes(workspace, text) for text in list_value_texts(value, with_keys=True))


def _rewrite(file: Path, rest: bytes | None) -> None:
    """Replace the content of a file, or delete the file, unless its delivery is started meanwhile."""
    claimed = file if file.name.endswith(CLAIMED) else file.with_name(f".{file.name}{CLAIMED}")
    if claimed != file:
        file.replace(claimed)
    if rest is not None:
        with writing(file.with_name(claimed.name.removeprefix(".").removesuffix(CLAIMED))) as stream:
            stream.write(rest)
    claimed.unlink(missing_ok=True)
