"""Export memories as one file, a folder of notes or JSON lines, and import them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from config.paths import HomePaths, is_workspace_id
from pipeline.errors import Conflict, FieldError, InvalidField, NotFound, PeerRefused
from pipeline.records import Draft, HistoryEntry, Memory, Revision
from pipeline.store import backup, history, memories
from pipeline.store.atomic_files import writing
from pipeline.store.database import Database, Databases, WriterProfile
from pipeline.store.peers import Peers
from pipeline.store.sqlite import SqliteDatabase
from pipeline.store.stores import Stores
from pipeline.sync import bundle
from pipeline.sync.bundle import BundleCounts, BundleMerged
from pipeline.sync.circle import Circle
from pipeline.sync.exchange import keep_log
from pipeline.sync.notes import Note, digest_of, holds_notes, path_of, read_notes, render_note
from pipeline.workspace import Workspace
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


def _list_memories(database: Database) -> Iterator[Memory]:
    """Yield every memory, in the order in which they were written."""
    with database.read() as db:
        seqs = memories.all_seqs(db)
        for start in range(0, len(seqs), PAGE):
            yield from memories.by_seqs(db, seqs[start : start + PAGE]).values()


def export_notes(paths: HomePaths, databases: Databases, target: Path, workspaces: Sequence[str]) -> dict[str, int]:
    """Write each memory as a Markdown note in a folder per workspace, except archived ones and candidates.

    Raises Conflict for a folder that contains other files.
    """
    if target.exists() and (not target.is_dir() or (any(target.iterdir()) and not holds_notes(target))):
        raise Conflict(f"{target} contains other files. Name an empty folder or an earlier export.")
    counts: dict[str, int] = {}
    for workspace, database in _copy_each(paths, databases, workspaces):
        counts[workspace] = 0
        for memory in _list_memories(database):
            if memory.archived_at is None and not memory.candidate:
                file = target / workspace / path_of(memory)
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                file.write_text(render_note(workspace, memory), encoding="utf-8")
                counts[workspace] += 1
    return counts


def export_lines(paths: HomePaths, databases: Databases, target: Path, workspaces: Sequence[str]) -> dict[str, int]:
    """Write each memory, archived ones too, with its history as a line of JSON in the shape of the API."""
    counts: dict[str, int] = {}
    with writing(target) as file:
        for workspace, database in _copy_each(paths, databases, workspaces):
            counts[workspace] = 0
            for memory in _list_memories(database):
                with database.read() as db:
                    earlier = history.of(db, memory.seq)
                file.write(json.dumps(_line(workspace, memory, earlier), ensure_ascii=False).encode() + b"\n")
                counts[workspace] += 1
    return counts


def _line(workspace: str, memory: Memory, earlier: Sequence[HistoryEntry]) -> dict[str, Any]:
    values = {
        attribute.name: getattr(memory, attribute.name)
        for attribute in fields(memory)
        if attribute.name not in ("seq", "key", "anchor")
    }
    if memory.anchor is not None:
        anchor = memory.anchor
        values["anchor"] = {"path": anchor.path, "lines": anchor.lines, "content_hash": anchor.content_hash}
    scope = {"kind": memory.scope.kind, "id": memory.scope.id}
    return {"workspace": workspace, **values, "scope": scope, "history": [asdict(entry) for entry in earlier]}


def import_notes(usual: Workspace, folder: Path) -> NotesMerged:
    """Import the edits in a folder of notes; a deleted note does not delete its memory.

    A new note goes to the workspace of the other notes in its folder, or to the usual one. If a memory also changed
    since the export, the note is rejected.
    """
    merged = NotesMerged()
    notes = list(read_notes(folder))
    workspaces = {note.file.parent: note.workspace for note in notes if note.workspace is not None}
    for note in notes:
        try:
            _take_note(usual.sibling(note.workspace or workspaces.get(note.file.parent) or usual.id), note, merged)
        except (InvalidField, Conflict, NotFound) as error:
            merged.refused.append(f"{note.file.relative_to(folder)}: {error}")
    return merged


def _take_note(workspace: Workspace, note: Note, merged: NotesMerged) -> None:
    if not is_workspace_id(workspace.id):
        raise InvalidField(FieldError("workspace", "is not a valid workspace name"))
    policy = workspace.write_policy()
    if note.id is None:
        if note.content:
            accept(workspace.create(), Draft(note.content, kind=note.kind, tags=note.tags), policy)
            merged.created += 1
        return
    with workspace.database.read() as db:
        memory = memories.get(db, note.id)
    if memory is None:
        raise NotFound("no memory has its id any more")
    content = note.content if note.is_edited and note.content != memory.content.strip() else None
    if content is not None and digest_of(memory.content) != note.digest:
        raise Conflict("the memory was changed too since it was exported")
    tags = note.tags if set(note.tags) != set(memory.tags) else None
    pinned = note.pinned if note.pinned != memory.pinned else None
    if content is None and tags is None and pinned is None:
        merged.same += 1
        return
    revise.edit(workspace.database, memory.id, Revision(content=content, tags=tags, pinned=pinned))
    merged.edited += 1
