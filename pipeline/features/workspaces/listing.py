"""List workspaces without open stores, for the command line and the choice of a folder's workspace."""

from contextlib import closing
from typing import TYPE_CHECKING

from config.settings import Settings

if TYPE_CHECKING:
    from pipeline.kernel.store.stores import Stores


def list_workspaces(settings: Settings) -> list[str]:
    """List the workspaces of a data directory by name; raise StoreUnavailable if their server is down."""
    if not settings.store.reveal():
        return settings.paths.workspace_ids()
    with _opened(settings) as stores:
        return stores.databases.ids()


def has_workspace(settings: Settings, workspace_id: str) -> bool:
    """Return whether a workspace has a store; raise StoreUnavailable if its server is down."""
    if not settings.store.reveal():
        paths = settings.paths.workspace(workspace_id)
        return paths.events.is_file() or paths.lost_store is not None
    with _opened(settings) as stores:
        return stores.databases.exists(workspace_id)


def is_in_use(settings: Settings, workspace_id: str) -> bool:
    """Return whether a workspace has a store or its own settings; raise StoreUnavailable if its server is down."""
    if not settings.store.reveal():
        paths = settings.paths.workspace(workspace_id)
        return paths.events.is_file() or paths.config.is_file() or paths.lost_store is not None
    with _opened(settings) as stores:
        return stores.is_in_use(workspace_id)


def _opened(settings: Settings) -> "closing[Stores]":
    # Imported here because most commands only read local files.
    from pipeline.kernel.store.database import WriterProfile
    from pipeline.kernel.store.stores import open_stores

    return closing(open_stores(settings, WriterProfile("NORMAL", 0), str))
