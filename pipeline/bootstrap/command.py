"""The container of commands that work on a data directory directly, with or without running processes."""

from collections.abc import Callable

from config.settings import Settings
from pipeline.bootstrap import mask
from pipeline.features.sync.usecases import SyncService
from pipeline.kernel.store.database import WakeUps, WriterProfile, wake_no_worker
from pipeline.kernel.store.stores import open_stores
from pipeline.kernel.workspace import Workspace, WorkspaceSettings

# An import writes for minutes, and no worker starts before it ends: the command moves a large log into the file.
CHECKPOINT_PAGES = 16_000


class CommandContainer:
    """The stores and the sync service of a data directory; `on_commit` receives the work queued by commits."""

    def __init__(self, settings: Settings, on_commit: Callable[[str, WakeUps], None] = wake_no_worker) -> None:
        self.settings = settings
        self.stores = open_stores(settings, WriterProfile("FULL", CHECKPOINT_PAGES), mask, on_commit)
        self.databases, self.operations = self.stores.databases, self.stores.operations
        self.people = self.stores.people
        self._settings = WorkspaceSettings(settings, self.stores)
        self.sync = SyncService(self.stores, self._settings)

    def workspace(self, workspace_id: str) -> Workspace:
        """Return a workspace, which need not exist yet."""
        return Workspace(workspace_id, self.settings.paths.workspace(workspace_id), self.databases, self._settings)

    def close(self) -> None:
        """Close all files."""
        self.stores.close()
