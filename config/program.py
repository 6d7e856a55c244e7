"""How every long-running program of Reverie starts: its options, its settings, and its log on standard error."""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence

from config.process import EXIT_TAKEN, Role, RoleTaken, add_parent_option, stop_with_parent
from config.settings import Settings, SettingsError, load_settings

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


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


class RedactingFormatter(logging.Formatter):
    """Format a record, then mask what the given function calls secret."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(LINE)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line without secrets."""
        return self._redact(super().format(record))


def configure_logging(level: str, redact: Callable[[str], str]) -> None:
    """Send every log line to standard error through the redacting formatter."""
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter(redact))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # These report every request, job tick and task at INFO, which would bury what matters.
    for noisy in ("apscheduler", "huey", "sentence_transformers", "waitress.queue"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level]))
