"""Export and import: a home's memory as one file, as a folder of notes, or as lines of JSON; and back."""

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
    """What became of notes: how many memories were edited, made, left as they are, and which were not taken."""

    edited: int = 0
    created: int = 0
    same: int = 0
    refused: list[str] = field(default_factory=list)


def _circle(peers: Peers) -> Circle | None:
    return Circle(peers) if peers.exists else None


def _copy_each(paths: HomePaths, databases: Databases, workspaces: Sequence[str]) -> Iterator[tuple[str, Database]]:
    """Give verified copies of workspaces one after the other, without waiting for writes that come later.

    A copy stands where a purge waits for it, and where whoever comes next removes what an interrupted run has left.
    On a server, all that is read of a workspace is one snapshot.
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
    """Write everything that workspaces know to one file; raise NotFound for a workspace that there is not."""
    circle, databases = _circle(stores.peers), stores.databases
    for workspace in filter(databases.exists, workspaces):
        # Whoever imports the bundle must be able to tell a later change from an earlier one.
        keep_log(workspace, databases.get(workspace), circle)
    return bundle.write_bundle(target, _copy_each(paths, databases, workspaces), circle, phrase)


def import_bundle(paths: HomePaths, stores: Stores, source: Path, phrase: str | None) -> BundleMerged:
    """Merge a bundle into this home; raise InvalidField for a file that is no whole bundle."""
    paths.ensure()
    try:
        circle, databases = _circle(stores.peers), stores.databases
        return bundle.merge_bundle(
            source, phrase, lambda workspace: databases.get(_named(workspace), create=True), circle
        )
    except PeerRefused as error:
        raise InvalidField(FieldError(source.name, str(error))) from error


def _named(workspace: str) -> str:
    if not is_workspace_id(workspace):
        raise PeerRefused("it names no workspace")
    return workspace


def _list_memories(database: Database) -> Iterator[Memory]:
    """Go through every memory, in the order in which they were written."""
    with database.read() as db:
        seqs = memories.all_seqs(db)
        for start in range(0, len(seqs), PAGE):
            yield from memories.by_seqs(db, seqs[start : start + PAGE]).values()


def export_notes(paths: HomePaths, databases: Databases, target: Path, workspaces: Sequence[str]) -> dict[str, int]:
    """Write each memory as a Markdown note below a folder of their own; archived ones and candidates are left out.

    Raises Conflict for a folder that contains other files.
    """
    if target.exists() and (not target.is_dir() or (any(target.iterdir()) and not holds_notes(target))):
        raise Conflict(f"{target} holds other things; name an empty folder, or one that was exported before")
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
    """Take in what somebody changed in a folder of notes; a note that is gone forgets nothing.

    A new note goes where those beside it are from, or to the usual workspace. Where a memory was changed too since the
    export, neither is touched, and that is told.
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
        raise InvalidField(FieldError("workspace", "is none"))
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
