"""Commands that work on the home's files themselves: they need no server, and wake the workers where there are any."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.errors import Conflict
from web.cli.command import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from config.settings import Settings
    from pipeline.bootstrap.command import CommandContainer
    from pipeline.enums import Stage


@contextmanager
def open_home(state: State) -> Iterator["CommandContainer"]:
    """Give a command the home; afterwards tell the workers what it left to do."""
    from pipeline.bootstrap.command import CommandContainer

    woken: set[tuple[str, str]] = set()

    def collect(workspace_id: str, wake_ups: "Iterable[Stage | None]") -> None:
        woken.update((workspace_id, stage or "") for stage in wake_ups)

    container = CommandContainer(state.settings, collect)
    try:
        yield container
    finally:
        container.close()
        if woken:
            # The queue is loaded by who has something for it.
            from workers.notifier import WakeUp
            from workers.tasks import wake_workers

            for workspace_id, stage in sorted(woken):
                wake_workers(WakeUp(workspace_id, stage))


def require_files(settings: "Settings", what: str) -> None:
    """Raise Conflict where the store is on a server: `what` is done with a home's files."""
    if settings.store_place:
        raise Conflict(f"{what} where a home keeps its files; its store is {settings.store_place}")


@contextmanager
def nothing_runs(settings: "Settings", what: str) -> Iterator[None]:
    """Keep everybody from starting the stack meanwhile; raise Conflict, which names `what` waits, while it runs."""
    from config.process import Role
    from web.cli.processes import list_running, supervisor_role

    settings.paths.ensure()
    found = list_running(settings)
    if found:
        names = ", ".join(f"{process.name} (pid {process.pid})" for process in found)
        raise Conflict(f"{what} while nothing runs: `reverie down` stops {names}")
    taken = []
    try:
        for role in (supervisor_role(settings), *(Role(settings.paths.root, name) for name in ("web", "scheduler"))):
            role.take()
            taken.append(role)
        yield
    finally:
        for role in taken:
            role.release()
