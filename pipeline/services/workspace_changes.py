"""Rename, merge and delete workspaces while nothing else uses the store, in files or on a PostgreSQL server."""

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from config.paths import is_personal, is_workspace_id
from config.settings import Settings
from pipeline.errors import Conflict, FieldError, InvalidField, NotFound
from pipeline.identity.renames import Renames
from pipeline.index.storage import open_storage
from pipeline.services.export import export_bundle, import_bundle
from pipeline.services.workspace_listing import list_workspaces
from pipeline.services.workspaces import DEFAULT_WORKSPACE
from pipeline.store.database import WriterProfile
from pipeline.store.moves import HomeFiles, Part, StoreLocation
from pipeline.store.stores import open_stores
from pipeline.sync.bundle import BundleMerged

# Parts of the object storage that have a folder for each workspace.
_SHARED = ("vectors", "segments")


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


def check_rename(settings: Settings, workspace_id: str, new_id: str) -> None:
    """Raise Conflict if a workspace keeps its name or the new one is taken, InvalidField if that cannot be a name."""
    _check_changeable(workspace_id)
    if not is_workspace_id(new_id) or is_personal(new_id) or new_id == DEFAULT_WORKSPACE:
        raise InvalidField(
            FieldError("NAME", f"{new_id!r} cannot be the name of a workspace; use a-z, 0-9, ., _ and -")
        )
    if new_id in list_workspaces(settings):
        raise Conflict(f"There is a workspace {new_id} already. Merge them with `reverie workspace merge`.")


def check_merge(workspace_id: str, target: str) -> None:
    """Raise Conflict if a workspace keeps its name, InvalidField for a merge with itself."""
    _check_changeable(workspace_id)
    if workspace_id == target:
        raise InvalidField(FieldError("ID", "names the same workspace twice"))


def check_delete(workspace_id: str) -> None:
    """Raise Conflict for the workspace of a person."""
    if is_personal(workspace_id):
        raise Conflict(f"Workspace {workspace_id} has the memories about you. Delete them with `reverie me`.")


def rename_workspace(settings: Settings, workspace_id: str, new_id: str) -> None:
    """Rename a workspace; the folders that use it use the new name. Raise Conflict if that name is taken."""
    check_rename(settings, workspace_id, new_id)
    paths = settings.paths
    # Settings of a project without memories, or indexes of an earlier workspace.
    shutil.rmtree(paths.workspace(new_id).root, ignore_errors=True)
    with _opened(settings) as location:
        location.rename(workspace_id, new_id)
    _delete_indexes(settings, workspace_id)
    Renames(paths.renames).add(workspace_id, new_id)


def merge_workspaces(settings: Settings, workspace_id: str, target: str) -> BundleMerged:
    """Copy all memories of a workspace into another one, then delete it; its folders use the other one."""
    check_merge(workspace_id, target)
    paths = settings.paths
    file = paths.root / f".merge-{secrets.token_hex(4)}.bundle"
    # The copy must not be readable without the key of an encrypted data directory.
    phrase = secrets.token_urlsafe(32) if paths.store_key.is_file() else None
    stores = open_stores(settings, WriterProfile("FULL", 0), str)
    try:
        export_bundle(paths, stores, file, [workspace_id], phrase)
        merged = import_bundle(paths, stores, file, phrase, target=target)
    finally:
        file.unlink(missing_ok=True)
        stores.close()
    if merged.put_aside:
        raise Conflict(f"Only part of the memories was copied to {target}, and none was deleted: {merged.put_aside[0]}")
    _delete(settings, workspace_id)
    Renames(paths.renames).add(workspace_id, target)
    return merged


def delete_workspace(settings: Settings, workspace_id: str) -> None:
    """Delete a workspace with its settings, indexes and snapshots."""
    check_delete(workspace_id)
    _delete(settings, workspace_id)
    Renames(settings.paths.renames).forget(workspace_id)


def _delete(settings: Settings, workspace_id: str) -> None:
    with _opened(settings) as location:
        location.delete(workspace_id)
    _delete_indexes(settings, workspace_id)


def _delete_indexes(settings: Settings, workspace_id: str) -> None:
    """Delete the indexes of a workspace on this machine and on object storage."""
    shutil.rmtree(settings.paths.workspace(workspace_id).root, ignore_errors=True)
    objects = open_storage(settings)
    if objects is None:
        return
    for part in _SHARED:
        below = objects.below(f"{part}/{workspace_id}")
        below.delete(below.list())


def _check_changeable(workspace_id: str) -> None:
    if is_personal(workspace_id) or workspace_id == DEFAULT_WORKSPACE:
        raise Conflict(
            f"Workspace {workspace_id} cannot be renamed or merged. To move a memory, run `reverie workspace move`."
        )


@contextmanager
def _opened(settings: Settings) -> Iterator[StoreLocation]:
    url = settings.store.reveal()
    if not url:
        yield HomeFiles(settings.paths)
        return
    # Imported here because most installations have no server.
    from pipeline.store.postgres.moves import PostgresLocation

    location = PostgresLocation(url)
    try:
        location.check_unused()
        yield location
    finally:
        location.close()
