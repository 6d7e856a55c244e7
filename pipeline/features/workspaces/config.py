"""List workspaces, and read and edit their own settings, without open stores."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from config.program_variables import select_daemon_variables
from config.settings import (
    SWITCHES,
    SettingOrigin,
    Settings,
    WorkspaceConfig,
    check_workspace_config,
    environment_with,
    explain_settings,
    load_settings,
)
from config.workspace_configs import ConfigFiles, WorkspaceConfigs
from pipeline.kernel.errors import Conflict

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


@contextmanager
def opened_configs(settings: Settings) -> Iterator[WorkspaceConfigs]:
    """Open the settings of all workspaces without their stores; they raise StoreUnavailable if the server is down."""
    if not settings.store.reveal():
        yield ConfigFiles(settings.paths)
        return
    # Imported here because most commands only read local files.
    from pipeline.kernel.store.stores import opened_config_values

    with opened_config_values(settings) as configs:
        yield configs


def explain_workspace(settings: Settings, workspace_id: str) -> list[SettingOrigin]:
    """List every setting with its effective value in a workspace and the origin of that value."""
    with opened_configs(settings) as configs:
        return explain_settings(own=configs.read(workspace_id))


def read_switches(settings: Settings, workspace_id: str) -> dict[str, Any]:
    """Return the switches that a server started in the background now would use in a workspace."""
    environment = select_daemon_variables(environment_with({}), settings.paths.root)
    with opened_configs(settings) as configs:
        in_force = load_settings(environment, configs.read(workspace_id))
    return {name: getattr(in_force, name) for name in SWITCHES}


def edit_config(settings: Settings, workspace_id: str, write: Callable[[str], str | None]) -> tuple[str, bool]:
    """Let `write` edit a workspace's own settings; return where they are stored, and whether they changed.

    Raises SettingsError for invalid settings, Conflict if they were changed at the same time.
    """
    with opened_configs(settings) as configs:
        before = configs.read(workspace_id)
        text = write(before.text)
        if text is None or text == before.text:
            return before.place, False
        check_workspace_config(WorkspaceConfig(text, before.place))

        def put(now: str) -> str:
            if now != before.text:
                raise Conflict(
                    f"{before.place} was changed while you edited it. Your edit was not saved; edit it again."
                )
            return text

        configs.edit(workspace_id, put)
        return before.place, True
