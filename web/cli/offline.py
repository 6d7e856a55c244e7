"""Commands that work on the home's files themselves: they need no server, and wake the workers where there are any."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from web.cli.command import State

if TYPE_CHECKING:
    from collections.abc import Iterable

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
