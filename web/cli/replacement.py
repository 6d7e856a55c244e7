"""Stop a stack in the background that runs older code of this installation, so that another one can start."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pipeline.errors import ReverieError
from web.cli.processes import SUPERVISOR, list_running, stop_all

if TYPE_CHECKING:
    import psutil

    from config.settings import Settings

HEALTH_TIMEOUT_S = 5.0
# The end of the command line of a stack in the background, as `background.launch` and the service write it.
BACKGROUND = ("-m", "web.cli", "up")


def stop_older_stack(settings: "Settings") -> bool:
    """Stop the stack if it may be replaced; return whether it is stopped.

    A stack in a terminal, of `reverie team serve` or of another installation is left: its user restarts it.
    """
    supervisor = next((running for running in list_running(settings) if running.name == SUPERVISOR), None)
    if supervisor is None or not _is_replaceable(supervisor.process) or not _runs_other_code(settings):
        return False
    stop_all(settings)
    return not list_running(settings)


def _is_replaceable(process: "psutil.Process") -> bool:
    import psutil

    with suppress(psutil.Error):
        return process.terminal() is None and is_background_command(process.cmdline())
    return False


def is_background_command(words: Sequence[str]) -> bool:
    """Return whether a command line starts a stack of this installation in the background."""
    return bool(words) and words[0] == sys.executable and tuple(words[-len(BACKGROUND) :]) == BACKGROUND


def _runs_other_code(settings: "Settings") -> bool:
    from web.client import Client
    from web.version import BUILD

    try:
        with Client.from_settings(settings, timeout_s=HEALTH_TIMEOUT_S) as client:
            return bool(client.health().get("build") != BUILD)
    except ReverieError:
        # It does not answer, and may be stopping.
        return False
