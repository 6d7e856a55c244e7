"""A memory whose move is killed between two commits is in one workspace, once a worker has looked."""

import contextlib

import pytest

from pipeline.bootstrap.command import CommandContainer
from pipeline.kernel.records import Filter
from pipeline.kernel.store import memories
from pipeline.write.move import finish_moves
from tests.fakes.in_process import fast_settings
from tests.support.killed import run_until_killed

pytestmark = pytest.mark.timeout(300)

KILLED = """
import sys, threading
from pathlib import Path
from pipeline.bootstrap.command import CommandContainer
from pipeline.kernel.records import Draft
from pipeline.features.memories import usecases as memories
from pipeline.write import move
from tests.fakes.in_process import fast_settings

home, place = Path(sys.argv[1]), sys.argv[2]
workspace = CommandContainer(fast_settings(home)).workspace("default")
moved = memories.write_memory(workspace, Draft("The port is 8123")).id

def hang(*given, **named):
    print("here", flush=True)
    threading.Event().wait()

setattr(move, place, hang)
memories.move(workspace, workspace.sibling("work"), moved)
"""


@pytest.fixture
def look(tmp_path):
    """Return what is active in some workspaces after a worker looked at the first, as a process would see it."""

    def run(*names):
        with contextlib.closing(CommandContainer(fast_settings(tmp_path / "home"))) as container:
            finish_moves(container.workspace(names[0]))
            return [list_texts(container.workspace(name)) for name in names]

    return run


def list_texts(workspace):
    if not workspace.exists:
        return []
    with workspace.database.read() as db:
        return sorted(one.content for one in memories.page(db, Filter(), 10, None) if one.archived_at is None)


PORT = "The port is 8123"


@pytest.mark.parametrize("place", ["take_in", "archive_moved_memory"])
def test_a_memory_that_was_being_moved_is_in_one_workspace(tmp_path, look, place):
    run_until_killed(KILLED, str(tmp_path / "home"), place)
    assert look("default", "work") == [[], [PORT]]
    assert look("default", "work") == [[], [PORT]]
