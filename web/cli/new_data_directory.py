"""Warn that a data directory is new although agents are connected to it: the former one may have been moved."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from config.data_directory import VARIABLE
from config.regular_files import read_regular
from config.settings import Settings

# The settings of an agent are smaller.
MOST_SETTINGS_BYTES = 64 * 1024 * 1024


def warn_if_replaced(settings: Settings, environment: Mapping[str, str], home: Path) -> None:
    """Warn if a data directory is about to be created to which agents on this machine were connected earlier."""
    from web.hosts.installed_files import STATE_FILE

    paths = settings.paths
    if paths.token_file.exists() or (paths.root / STATE_FILE).exists():
        return
    files = list(dict.fromkeys(_list_connected_files(settings, environment, home)))
    if files:
        click.echo(
            f"{paths.root} is a new, empty data directory, but agents were connected to it earlier "
            f"({', '.join(map(str, files))}). If you moved it, run `reverie down`, then move it back or set "
            f"{VARIABLE}.",
            err=True,
        )


def _list_connected_files(settings: Settings, environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the files of agents that have entries of Reverie for the data directory."""
    from web.hosts.environment import HostEnvironment, Installation, programs_folder
    from web.hosts.hosts import HOSTS

    root = str(settings.paths.root).lower()
    is_default = settings.paths.root == home / ".reverie"
    host_env = HostEnvironment(home, sys.platform, lambda _program: None, lambda _program: None, environment)
    installation = Installation(programs_folder(), {}, None)
    for host in HOSTS:
        for target in host.targets(host_env, installation):
            text = read_lowered(target.path)
            names_other = VARIABLE.lower() in text
            if "reverie" in text and (root in text if names_other else is_default):
                yield target.path


def read_lowered(file: Path) -> str:
    """Return a file of an agent's settings in lower case, "" if it cannot be read."""
    try:
        return read_regular(file, MOST_SETTINGS_BYTES).decode("utf-8", "replace").lower()
    except OSError:
        return ""
