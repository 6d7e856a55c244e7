"""Killed between the commits of two stores, a batch is in both and a memory is in one, once a worker has looked."""

import contextlib

import pytest

from pipeline.bootstrap.command import CommandContainer
from pipeline.records import Filter
from pipeline.store import memories
from pipeline.write.two_stores import finish_unfinished
from tests.fakes.in_process import fast_settings
from tests.support.killed import run_until_killed

pytestmark = pytest.mark.timeout(300)

KILLED = """
import sys, threading
from pathlib import Path
from pipeline.bootstrap.command import CommandContainer
from pipeline.records import PERSONAL, Draft
from pipeline.services import memories
from pipeline.write import two_stores
from pipeline.store import oplog, unfinished_writes
from tests.fakes.in_process import fast_settings

home, act, place, number = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
workspace = CommandContainer(fast_settings(home)).workspace("default")
moved = memories.write_memory(workspace, Draft("The port is 8123")).id
module = {"record": oplog, "drop": unfinished_writes}.get(place, two_stores)
real, calls = getattr(module, place), iter(range(number))

def hang(*given, **named):
    if next(calls, None) is not None:
        return real(*given, **named)
    print("here", flush=True)
    threading.Event().wait()

setattr(module, place, hang)
if act == "move":
    memories.move(workspace, workspace.sibling("work"), moved)
else:
    memories.write_memories(workspace, [Draft("We ship on Tuesdays"), Draft("I like tabs", scope=PERSONAL)])
"""


@pytest.fixture
def look(tmp_path):
    """Return what is active in some workspaces after a worker looked at the first, as a process would see it."""

    def run(*names):
        with contextlib.closing(CommandContainer(fast_settings(tmp_path / "home"))) as container:
            finish_unfinished(container.workspace(names[0]))
            return [list_texts(container.workspace(name)) for name in names]

    return run


def list_texts(workspace):
    if not workspace.exists:
        return []
    with workspace.database.read() as db:
        return sorted(one.content for one in memories.page(db, Filter(), 10, None) if one.archived_at is None)


PORT, SHIP, TABS = "The port is 8123", "We ship on Tuesdays", "I like tabs"


# Before the first commit, between both, and before the batch is marked as finished.
@pytest.mark.parametrize(("place", "number", "arrives"), [("record", 0, False), ("record", 1, True), ("drop", 0, True)])
def test_a_batch_is_in_both_stores_or_in_neither(tmp_path, look, place, number, arrives):
    run_until_killed(KILLED, str(tmp_path / "home"), "batch", place, str(number))
    expected = ([PORT, SHIP], [TABS]) if arrives else ([PORT], [])
    assert look("default", "me") == list(expected)
    assert look("default", "me") == list(expected)


@pytest.mark.parametrize("place", ["take_in", "archive_moved_memory"])
def test_a_memory_that_was_being_moved_is_in_one_workspace(tmp_path, look, place):
    run_until_killed(KILLED, str(tmp_path / "home"), "move", place, "0")
    assert look("default", "work") == [[], [PORT]]
    assert look("default", "work") == [[], [PORT]]
