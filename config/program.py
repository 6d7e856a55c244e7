"""How every long-running program of Reverie starts."""

import argparse
import sys
from collections.abc import Callable, Sequence

from config.logging import configure_logging
from config.process import EXIT_TAKEN, Role, RoleTaken, add_parent_option, stop_with_parent
from config.settings import Settings, SettingsError, load_settings


def start_program(
    command: str, description: str | None, redact: Callable[[str], str], arguments: Sequence[str] | None = None
) -> Settings:
    """Read the command line (`arguments` of it) and the settings, watch the parent if asked to, and set up logging."""
    parser = argparse.ArgumentParser(prog=command, description=description)
    add_parent_option(parser)
    parent = parser.parse_args(arguments).stop_with_parent
    if parent is not None:
        stop_with_parent(parent)
    try:
        settings = load_settings()
    except SettingsError as error:
        sys.exit(str(error))
    configure_logging(settings.log_level, redact)
    settings.paths.ensure()
    return settings


def run_in_role(role_name: str, settings: Settings, run: Callable[[Settings], int]) -> int:
    """Run while holding a role of the home; return EXIT_TAKEN when another process holds it."""
    role = Role(settings.paths.root, role_name)
    try:
        role.take()
    except RoleTaken as error:
        print(error, file=sys.stderr)  # noqa: T201 - this is the command's answer
        return EXIT_TAKEN
    try:
        return run(settings)
    finally:
        role.release()
