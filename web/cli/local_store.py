"""Open the files of the data directory for commands that need no server, and keep the stack from starting."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from config.settings import Settings, environment_read_only
from pipeline.kernel.errors import Conflict, ReadOnly
from web.cli.state import State
from workers.notifier import WakeUp, WakeUps

if TYPE_CHECKING:
    from pipeline.bootstrap.command import CommandContainer


def refuse_read_only() -> None:
    """Raise ReadOnly in a read-only session: a command that opens the files asks no server, which would refuse it."""
    if environment_read_only():
        raise ReadOnly(
            "Nothing was changed: this session is read-only (REVERIE_READ_ONLY). Unset the variable to run the command."
        )


@contextmanager
def open_home(state: State, *, only_reads: bool = False) -> Iterator["CommandContainer"]:
    """Open the data directory for a command; afterwards wake the workers for the work that it created.

    Unless the command `only_reads`, it is refused in a read-only session.
    """
    if not only_reads:
        refuse_read_only()
    from pipeline.bootstrap.command import CommandContainer

    woken = WakeUps()
    container = CommandContainer(state.settings, woken.collect)
    try:
        yield container
    finally:
        container.close()
        woken.send(_wake_workers)


def _wake_workers(message: WakeUp) -> None:
    # The queue is imported only if there is work for it.
    from workers.tasks import wake_workers

    wake_workers(message)


def require_files(settings: Settings, action: str) -> None:
    """Raise Conflict if the store is on a server; the action, such as "take a snapshot", works with files only."""
    if settings.store_place:
        raise Conflict(
            f"Cannot {action}: the store is at {settings.store_place}, and this command works with files only. "
            "Use the tools of that server."
        )


@contextmanager
def nothing_runs(settings: Settings, action: str) -> Iterator[None]:
    """Keep every server from starting during an action, such as "encrypt"; raise Conflict if one is running."""
    from config.process import Role
    from web.stack.processes import list_running, supervisor_role

    refuse_read_only()
    settings.paths.ensure()
    running = list_running(settings)
    if running:
        names = ", ".join(f"{process.name} (pid {process.pid})" for process in running)
        raise Conflict(f"Cannot {action} while Reverie is running. Stop it with `reverie down`: {names}.")
    with ExitStack() as stack:
        for role in (supervisor_role(settings), *(Role(settings.paths.root, name) for name in ("web", "scheduler"))):
            role.take()
            stack.callback(role.release)
        yield
