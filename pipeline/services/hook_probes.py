"""What the server received and stored in a probe of hooks."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pipeline.errors import ReverieError
from pipeline.store import journal
from pipeline.store.hook_runs import HookRun
from pipeline.store.host_activity import HostActivity, Sign
from pipeline.workspace import Workspace

# A probe consists of a few events.
MOST_RUNS = 50


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The events of a probe in order, the number of stored memories, and whether a turn of the host was stored."""

    runs: Sequence[HookRun]
    memories: int
    is_turn_stored: bool


class _RolledBack(Exception):
    """End a transaction without a change."""


def report_probe(
    newest_runs: Sequence[HookRun], workspaces: Iterable[Workspace], activity: HostActivity, host: str
) -> ProbeReport:
    """Return what arrived in the scratch stores of a probe."""
    memories = 0
    for workspace in workspaces:
        with workspace.database.read() as db:
            memories += journal.count_memories(db).active
    return ProbeReport(newest_runs[::-1], memories, activity.read(host, Sign.TURN_TAKEN) is not None)


def find_write_problem(workspace: Workspace) -> str | None:
    """Return why nothing can be written to a workspace; a transaction is started and rolled back."""
    if not workspace.exists:
        return None
    try:
        with suppress(_RolledBack), workspace.database.write():
            _roll_back()
    except ReverieError as error:
        return str(error)
    return None


def _roll_back() -> None:
    raise _RolledBack
