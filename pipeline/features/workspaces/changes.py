"""Move all memories of a workspace to another one, and delete workspaces, in files or on a PostgreSQL server."""

import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from sqlite3 import Connection

from config.paths import is_personal
from config.settings import Settings
from pipeline.features.export.usecases import export_bundle, import_bundle
from pipeline.features.snapshots.shared import drop_indexes, open_place
from pipeline.features.workspaces.usecases import DEFAULT_WORKSPACE, Renames
from pipeline.index.storage import open_storage
from pipeline.kernel.errors import Conflict, FieldError, InvalidField, NotFound
from pipeline.kernel.records import Memory
from pipeline.kernel.store import history, memories
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.moves import Part, StoreLocation
from pipeline.kernel.store.stores import Stores
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.write.move import MOVED
from pipeline.write.revise import archive_memory, restore_memory

# Memories per transaction, so that other writers do not wait long.
PAGE = 50


def find_by_prefix(name: str, existing: Sequence[str]) -> str:
    """Return the workspace of this name, or the only one that starts with it; raise InvalidField otherwise."""
    matches = [name] if name in existing else [workspace for workspace in existing if workspace.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise InvalidField(FieldError("ID", f"several workspaces start with {name}: {', '.join(matches)}"))
    listed = f"The workspaces are: {', '.join(existing)}." if existing else "There are no workspaces yet."
    raise InvalidField(FieldError("ID", f"there is no workspace {name}. {listed}"))


def count_memories(settings: Settings, workspace_id: str) -> int:
    """Return how many memories a workspace contains, archived memories included."""
    with _opened(settings) as location, location.reading(Part(workspace_id)) as tables:
        if tables is None:
            raise NotFound(f"there is no workspace {workspace_id}")
        return tables.count(table for table in tables.tables if table.name == "memory")


def check_delete(workspace_id: str) -> None:
    """Raise Conflict for the workspace of a person."""
    if is_personal(workspace_id):
        raise Conflict(f"Workspace {workspace_id} has the memories about you. Delete them with `reverie me`.")


def move_workspace(settings: Settings, stores: Stores, source: Workspace, target: Workspace) -> int:
    """Copy a workspace into another one, archive its memories, and let its folders use the other one.

    Return the number of moved memories. Raises Conflict if a memory cannot be copied; nothing is archived then.
    """
    _check_move(source.id, target.id)
    source.write_policy()
    target.write_policy()
    with source.database.read() as db:
        moved = [memory.id for memory in memories.by_seqs(db, memories.all_seqs(db)).values() if not memory.archived_at]
    if not target.exists:
        stores.configs.edit(target.id, lambda own: own or stores.configs.read(source.id).text)
    _copy(settings, stores, source.id, target.id)
    now = utc_now()
    _change_each(target.database, moved, lambda db, memory: _use_again(db, memory, now))
    if source.id != DEFAULT_WORKSPACE:
        # From here on, sessions in its folders write to the other workspace.
        Renames(settings.paths.renames).add(source.id, target.id)
    _change_each(source.database, moved, lambda db, memory: _archive(db, memory, target.id, now))
    return len(moved)


def _check_move(source: str, target: str) -> None:
    if is_personal(source) or is_personal(target):
        raise Conflict("The memories about you have a workspace of their own, which agents see in every project.")
    if source == target:
        raise InvalidField(FieldError("workspace", "is the same workspace"))


def _copy(settings: Settings, stores: Stores, source: str, target: str) -> None:
    """Copy all memories of a workspace, with history and edges, by an export and an import."""
    file = settings.paths.root / f".move-{secrets.token_hex(4)}.bundle"
    # The copy must not be readable without the key of an encrypted data directory.
    phrase = secrets.token_urlsafe(32) if settings.paths.store_key.is_file() else None
    try:
        export_bundle(settings.paths, stores, file, [source], phrase)
        merged = import_bundle(settings.paths, stores, file, phrase, target=target)
    finally:
        file.unlink(missing_ok=True)
    if merged.put_aside:
        problem = merged.put_aside[0]
        raise Conflict(f"Only part of the memories was copied to {target}, and none was archived: {problem}")


def _change_each(database: Database, ids: Sequence[str], change: Callable[[Connection, Memory], None]) -> None:
    """Change memories, a page in a transaction; those that are gone are left out."""
    for start in range(0, len(ids), PAGE):
        with database.write() as db:
            for memory_id in ids[start : start + PAGE]:
                memory = memories.get(db, memory_id)
                if memory is not None:
                    change(db, memory)


def _use_again(db: Connection, memory: Memory, now: str) -> None:
    """Restore a memory that was moved away from here before, unless another one has its text."""
    was_moved = any(entry.event == MOVED and "to" in entry.detail for entry in history.of(db, memory.seq))
    if memory.archived_at is None or not was_moved:
        return
    if memory.key is not None or memories.find_active_text(db, memory.scope, memory.content_hash) is None:
        restore_memory(db, memory, now)


def _archive(db: Connection, memory: Memory, target: str, now: str) -> None:
    if memory.archived_at is None:
        history.add(db, memory.seq, now, MOVED, None, {"to": target, "as": memory.id})
        archive_memory(db, memory, now)


def delete_workspace(settings: Settings, workspace_id: str) -> None:
    """Delete a workspace with its settings, indexes and snapshots."""
    check_delete(workspace_id)
    with _opened(settings) as location:
        location.delete(workspace_id)
    paths = settings.paths.workspace(workspace_id)
    drop_indexes(paths, open_storage(settings))
    shutil.rmtree(paths.root, ignore_errors=True)
    Renames(settings.paths.renames).forget(workspace_id)


@contextmanager
def _opened(settings: Settings) -> Iterator[StoreLocation]:
    with open_place(settings) as location:
        location.check_unused()
        yield location
