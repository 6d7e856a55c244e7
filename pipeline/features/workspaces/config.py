"""Read and edit a workspace's own settings without open stores, for the command line and the diagnostics."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

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
