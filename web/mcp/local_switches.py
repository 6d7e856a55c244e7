"""The switches of a stdio session, read from the settings files: the server may still be down."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from config.settings import Settings, environment_read_only, load_settings
from config.toml_files import SettingsError
from config.workspace_configs import ConfigFiles
from pipeline.errors import ReverieError
from web.mcp.offered_tools import Switches


def read_switches(
    load_home: Callable[[], Settings], choose_workspace: Callable[[], str], *, is_read_only: bool
) -> Switches:
    """Return the switches of the folder's workspace; with invalid settings, those of the session alone."""
    session = session_switches(is_read_only=is_read_only)
    try:
        home = load_home()
        # The settings of a workspace in PostgreSQL are not in a file; the server checks them at each call.
        own = None if home.store_place else ConfigFiles(home.paths).read(choose_workspace())
        settings = load_settings(own=own)
    except (SettingsError, ReverieError, OSError):
        return session
    may_write = session.may_write and settings.write_tools and not settings.read_only
    return replace(session, is_enabled=settings.enabled, may_write=may_write)


def session_switches(*, is_read_only: bool) -> Switches:
    """Return the switches that the session itself has, by its options and its environment."""
    with suppress(SettingsError):
        is_read_only = is_read_only or environment_read_only()
    return Switches(may_write=not is_read_only, is_read_only_session=is_read_only)
