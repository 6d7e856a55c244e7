"""Export memories as one file, a folder of notes or JSON lines, and import them."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path, PurePath
from typing import Any

from config.paths import HomePaths, is_workspace_id
from pipeline.features.ingest.fields import Progress
from pipeline.features.ingest.json_values import SkippedValue
from pipeline.features.ingest.jsonl import is_export as is_exported_file, read_exported
from pipeline.features.sync import bundle
from pipeline.features.sync.bundle import BundleCounts, BundleMerged
from pipeline.features.sync.circle import Circle
from pipeline.features.sync.exchange import keep_log
from pipeline.features.sync.notes import Note, digest_of, holds_notes, list_notes, path_of, read_note, render_note
from pipeline.features.sync.restored_memories import MemoryRestore, Restored
from pipeline.kernel.anchors import path_in_checkout
from pipeline.kernel.errors import Conflict, FieldError, InvalidField, NotFound, PeerRefused
from pipeline.kernel.records import Draft, HistoryEntry, Memory, Outcome, Revision
from pipeline.kernel.store import backup, history, memories, replicated_records
from pipeline.kernel.store.atomic_files import writing
from pipeline.kernel.store.database import Database, Databases, WriterProfile
from pipeline.kernel.store.peers import Peers
from pipeline.kernel.store.replicated_records import MEMORY, Key
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.kernel.store.stores import Stores
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.write import revise
from pipeline.write.accept import accept

PAGE = 500
_COPY = WriterProfile("NORMAL", 0, 5000)


@dataclass(slots=True)
class NotesMerged:
    """Result of importing notes: counts of edited, created and unchanged memories, and reasons for rejected notes."""

    edited: int = 0
    created: int = 0
    same: int = 0
    refused: list[str] = field(default_factory=list)


def _circle(peers: Peers) -> Circle | None:
    return Circle(peers) if peers.exists else None


def _copy_each(paths: HomePaths, databases: Databases, workspaces: Sequence[str]) -> Iterator[tuple[str, Database]]:
    """Yield verified copies of workspaces one after the other, without blocking writes.

    A copy is in the snapshots folder: purges wait for it there, and the next run removes that of an interrupted run.
    On a database server, one read transaction takes the place of the copy.
    """
    for workspace in workspaces:
        if not databases.exists(workspace):
            raise NotFound(f"there is no workspace {workspace}")
        database = databases.get(workspace)
        if database.file is None:
            with database.read():
                yield workspace, database
            continue
        files = paths.workspace(workspace)
        with backup.locked(files.snapshots):
            copy = files.snapshots / f"{backup.PARTIAL}export.sqlite"
            backup.copy(files.events, copy)
            database = SqliteDatabase(copy, _COPY, create=False)
            try:
                yield workspace, database
            finally:
                database.close()
                backup.remove(copy)


def export_bundle(
    paths: HomePaths, stores: Stores, target: Path, workspaces: Sequence[str], phrase: str | None
) -> BundleCounts:
    """Write all contents of workspaces to one file; raise NotFound for an unknown workspace."""
    circle, databases = _circle(stores.peers), stores.databases
    for workspace in filter(databases.exists, workspaces):
        # An import needs the log to order changes in time.
        keep_log(workspace, databases.get(workspace), circle)
    return bundle.write_bundle(target, _copy_each(paths, databases, workspaces), circle, phrase)


def import_bundle(
    paths: HomePaths, stores: Stores, source: Path, phrase: str | None, *, target: str | None = None
) -> BundleMerged:
    """Merge a bundle into this data directory, or all of it into the workspace `target`.

    Raises InvalidField for a damaged or incomplete bundle.
    """
    paths.ensure()
    try:
        circle, databases = _circle(stores.peers), stores.databases
        return bundle.merge_bundle(
            source, phrase, lambda workspace: databases.get(_named(target or workspace), create=True), circle
        )
    except PeerRefused as error:
        raise InvalidField(FieldError(source.name, str(error))) from error


def _named(workspace: str) -> str:
    if not is_workspace_id(workspace):
        raise PeerRefused("it names no workspace")
    return workspace


def _list_exported(workspace: str, database: Database) -> Iterator[dict[str, Any]]:
    """Yield every memory with its history and its edges, in the shape of the API."""
    with database.read() as db:
        seqs = memories.all_seqs(db)
        for start in range(0, len(seqs), PAGE):
            page = memories.by_seqs(db, seqs[start : start + PAGE]).values()
            ids = [memory.id for memory in page]
            edges: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for key, values in replicated_records.read_edges(db, ids):
                edges[key.memory_id].append({"kind": key.name, "to": key.other_id, **(values or {})})
            records = replicated_records.read(db, [Key(MEMORY, memory_id) for memory_id in ids])
            for memory in page:
                exported = _describe(workspace, memory, history.of(db, memory.seq))
                exported |= {"edges": edges[memory.id]} if memory.id in edges else {}
                survivor = records.get(Key(MEMORY, memory.id), {}).get("merged_into")
                yield exported if survivor is None else {**exported, "merged_into": survivor}


def _describe(workspace: str, memory: Memory, earlier: Sequence[HistoryEntry]) -> dict[str, Any]:
    values = {
        attribute.name: getattr(memory, attribute.name)
        for attribute in fields(memory)
        if attribute.name not in ("seq", "key", "anchor")
    }
    if memory.anchor is not None:
        anchor = memory.anchor
        is_absolute = PurePath(anchor.path).is_absolute()
        path = path_in_checkout(anchor.path, anchor.checkout) if is_absolute else anchor.path
        values["anchor"] = {"path": path, "lines": anchor.lines, "content_hash": anchor.content_hash}
    scope = {"kind": memory.scope.kind, "id": memory.scope.id}
    return {"workspace": workspace, **values, "scope": scope, "history": [asdict(entry) for entry in earlier]}


def export_notes(paths: HomePaths, databases: Databases, target: Path, workspaces: Sequence[str]) -> dict[str, int]:
    """Write each memory as a Markdown note in a folder per workspace, except archived ones and candidates.

    Raises Conflict for a folder that contains other files.
    """
    if target.exists() and (not target.is_dir() or (any(target.iterdir()) and not holds_notes(target))):
        raise Conflict(f"{target} contains other files. Name an empty folder or an earlier export.")
    counts: dict[str, int] = {}
    for workspace, database in _copy_each(paths, databases, workspaces):
        counts[workspace] = 0
        for exported in _list_exported(workspace, database):
            if exported["archived_at"] is None and not exported["candidate"]:
                file = target / workspace / path_of(exported)
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                file.write_text(render_note(exported), encoding="utf-8")
                counts[workspace] += 1
    return counts


def export_lines(paths: HomePaths, databases: Databases, target: Path, workspaces: Sequence[str]) -> dict[str, int]:
    """Write each memory, archived ones too, with its history as a line of JSON in the shape of the API."""
    counts: dict[str, int] = {}
    with writing(target) as file:
        for workspace, database in _copy_each(paths, databases, workspaces):
            counts[workspace] = 0
            for exported in _list_exported(workspace, database):
                file.write(json.dumps(exported, ensure_ascii=False).encode() + b"\n")
                counts[workspace] += 1
    return counts


def is_export(form: str, path: Path) -> bool:
    """Return whether Reverie exported a file of JSON lines, or a folder or file of notes."""
    return is_exported_file(path) if form == "jsonl" else holds_notes(path)


def import_lines(
    usual: Workspace, file: Path, progress: Progress, *, target: str | None = None, is_own: bool = False
) -> Restored:
    """Restore the memories of exported lines in the workspaces that they name, or all in the workspace `target`."""
    counts = Restored()
    restores: dict[str, MemoryRestore] = {}
    for place, entry in read_exported(file, progress):
        workspace = target or ("" if isinstance(entry, SkippedValue) else str(entry.get("workspace")))
        if isinstance(entry, SkippedValue):
            counts.refused.append(f"{place}: {entry.reason}")
        elif not is_workspace_id(workspace):
            counts.refused.append(f"{place}: names no workspace")
        else:
            restore = restores.setdefault(workspace, MemoryRestore(usual.sibling(workspace), counts, is_own))
            restore.add(place, entry)
    for restore in restores.values():
        restore.finish()
    return counts


def import_notes(usual: Workspace, folder: Path, *, target: str | None = None, is_own: bool = False) -> NotesMerged:
    """Import the edits in a folder of notes, and restore the memories that are not here.

    A note without an id goes to the workspace of the other notes in its folder, or to the usual one; with `target`, all
    notes go there. A deleted note does not delete its memory. If a memory also changed since the export, the note is
    rejected.
    """
    merged = NotesMerged()
    notes: list[Note] = []
    for file in list_notes(folder):
        try:
            notes.append(read_note(file))
        except InvalidField as error:
            merged.refused.append(str(error))
    workspaces = {note.file.parent: note.workspace for note in notes if note.workspace is not None}
    counts = Restored(refused=merged.refused)
    restores: dict[str, MemoryRestore] = {}
    for note in notes:
        name = target or note.workspace or workspaces.get(note.file.parent) or usual.id
        place = str(note.file.relative_to(folder)) if note.file != folder else note.file.name
        if not is_workspace_id(name):
            merged.refused.append(f"{place}: {name} is not a valid workspace name")
            continue
        workspace = usual.sibling(name)
        try:
            is_here = _take_note(workspace, note, merged)
        except (InvalidField, Conflict) as error:
            merged.refused.append(f"{place}: {error}")
            continue
        if not is_here:
            # A text that was edited since the export is of now.
            entry = {**note.entry, "updated_at": utc_now()} if note.is_edited else note.entry
            restores.setdefault(name, MemoryRestore(workspace, counts, is_own)).add(place, entry)
    for restore in restores.values():
        restore.finish()
    merged.created += counts.restored
    return merged


def _take_note(workspace: Workspace, note: Note, merged: NotesMerged) -> bool:
    """Import a note without an id, or the edits of a stored memory; return whether the memory is here."""
    policy = workspace.write_policy()
    if note.id is None:
        if note.content:
            receipt = accept(workspace.create(), Draft(note.content, kind=note.kind, tags=note.tags), policy)
            if receipt.outcome is Outcome.REJECTED:
                raise Conflict(f"it was rejected: {receipt.reason}")
            merged.created += receipt.outcome is not Outcome.MERGED
            merged.same += receipt.outcome is Outcome.MERGED
        return True
    if not workspace.exists:
        return False
    with workspace.database.read() as db:
        memory = memories.get(db, note.id)
    if memory is None:
        return False
    content = note.content if note.is_edited and note.content != memory.content.strip() else None
    if content is not None and digest_of(memory.content) != note.digest:
        raise Conflict("the memory was changed too since it was exported")
    tags = note.tags if note.is_marked and set(note.tags) != set(memory.tags) else None
    pinned = note.pinned if note.is_marked and note.pinned != memory.pinned else None
    if content is None and tags is None and pinned is None:
        merged.same += 1
    else:
        revise.edit(workspace.database, memory.id, Revision(content=content, tags=tags, pinned=pinned))
        merged.edited += 1
    return True
