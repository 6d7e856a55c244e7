"""A batch for two stores that fails is in neither, or is completed by sending it again; moves do not race."""

import contextlib
import itertools
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.features.memories import usecases as memories
from pipeline.features.purge.usecases import finish_purges
from pipeline.kernel.errors import Conflict, InvalidField, NotFound, StoreFull, StoreUnavailable
from pipeline.kernel.records import PERSONAL, Draft, EdgeDraft, EdgeKind, Filter, Outcome, Revision
from pipeline.kernel.store import memories as stored, unfinished_moves
from pipeline.write import accept, move
from pipeline.write.move import finish_moves

OURS = "The port of billing is 8123"
MINE = "I prefer tabs over spaces"
LONG_S = 30


@pytest.fixture
def here(container):
    return container.workspace("default")


@pytest.fixture
def purge(container):
    def run(workspace, memory_id):
        memories.purge(workspace, container.feedback, memory_id)
        finish_purges(workspace)

    return run


def texts(workspace):
    """List what is active in a workspace."""
    if not workspace.exists:
        return []
    with workspace.database.read() as db:
        return sorted(one.content for one in stored.page(db, Filter(), 100, None) if one.archived_at is None)


def list_unfinished(workspace):
    with workspace.database.read() as db:
        return unfinished_moves.list_ids(db)


def write_batch(workspace, *more):
    return memories.write_memories(workspace, [Draft(OURS), Draft(MINE, scope=PERSONAL), *more])


class Killed(BaseException):
    """What no code of ours catches, as if the process ended there."""


def fail_at(monkeypatch, module, name, number, error):
    """Let the call of a function that has a number raise an error instead."""
    real, count = getattr(module, name), itertools.count()

    def run(*arguments, **named):
        if next(count) == number:
            raise error
        return real(*arguments, **named)

    monkeypatch.setattr(module, name, run)


ERRORS = [sqlite3.IntegrityError("UNIQUE"), StoreFull("the disk is full"), Killed()]


# A batch


def test_a_batch_arrives_in_both_stores(here):
    receipts = write_batch(here, Draft("Third"))
    assert [one.outcome for one in receipts] == [Outcome.CREATED] * 3
    assert (texts(here), texts(here.person)) == (sorted([OURS, "Third"]), [MINE])


@pytest.mark.parametrize("scope", [PERSONAL, None])
def test_edge_to_an_unknown_memory_rejects_the_batch_in_both_stores(here, scope):
    edge = EdgeDraft(EdgeKind.SUPERSEDES, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    lost = Draft("Fourth", edges=(edge,), **({"scope": scope} if scope else {}))
    with pytest.raises(InvalidField, match=r"items\.2\.edges\.0\.to"):
        write_batch(here, lost)
    assert (texts(here), texts(here.person)) == ([], [])


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("number", [0, 1])
def test_a_batch_that_fails_before_a_commit_is_in_neither(here, monkeypatch, number, error):
    with monkeypatch.context() as broken:
        fail_at(broken, accept, "write_one", number, error)
        with contextlib.suppress(sqlite3.Error, StoreUnavailable, Killed):
            write_batch(here)
    assert (texts(here), texts(here.person)) == ([], [])


def break_commit(monkeypatch, database, error):
    """Let the next transaction of a store do everything but commit."""
    real = database.write

    @contextlib.contextmanager
    def write():
        with real() as db:
            yield db
            raise error

    monkeypatch.setattr(database, "write", write)


@pytest.mark.parametrize("error", [StoreFull("the disk is full"), Killed()], ids=["full", "killed"])
def test_batch_interrupted_between_two_commits_is_completed_on_retry(here, monkeypatch, error):
    memories.write_memory(here, Draft("I like trains", scope=PERSONAL))
    with monkeypatch.context() as broken:
        break_commit(broken, here.person.database, error)
        with pytest.raises((StoreUnavailable, Killed)):
            write_batch(here)
    assert (texts(here), texts(here.person)) == ([OURS], ["I like trains"])
    assert [one.outcome for one in write_batch(here)] == [Outcome.MERGED, Outcome.CREATED]
    assert (texts(here), texts(here.person)) == ([OURS], ["I like trains", MINE])


@pytest.mark.files
def test_locked_personal_store_rejects_the_batch_in_both_stores(home, container):
    home = container.workspace("default")
    memories.write_memory(home, Draft("I like trains", scope=PERSONAL))
    with home.person.database.write() as db:
        # The next write has the same connection.
        db.execute("PRAGMA busy_timeout=20")
    with contextlib.closing(sqlite3.connect(home.person.database.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable):
            write_batch(home)
        other.execute("ROLLBACK")
    assert (texts(home), texts(home.person)) == ([], ["I like trains"])


# Moves


@pytest.fixture
def targets(container):
    return [container.workspace(name) for name in ("work", "shop")]


def run_together(*acts):
    """Run acts in threads that start at the same moment; return what each returned or raised."""
    barrier = threading.Barrier(len(acts))

    def run(act):
        barrier.wait(LONG_S)
        try:
            return act()
        except (Conflict, NotFound) as error:
            return error

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def places(text, *workspaces):
    return [workspace.id for workspace in workspaces if text in texts(workspace)]


@pytest.mark.parametrize("round_number", range(2))
def test_two_moves_at_once_leave_one_copy(here, targets, round_number):
    memory_id = memories.write_memory(here, Draft(f"{OURS}, {round_number}")).id
    results = run_together(*(lambda target=target: memories.move(here, target, memory_id) for target in targets))
    assert sorted(isinstance(one, Conflict) for one in results) == [False, True]
    assert len(places(f"{OURS}, {round_number}", here, *targets)) == 1


@pytest.mark.parametrize("round_number", range(2))
def test_a_move_and_a_purge_at_once_leave_no_copy(here, targets, purge, round_number):
    text = f"{OURS}, {round_number}"
    memory_id = memories.write_memory(here, Draft(text)).id
    _, purged = run_together(lambda: memories.move(here, targets[0], memory_id), lambda: purge(here, memory_id))
    if purged is None:
        assert places(text, here, *targets) == []
    else:
        # The purge met the move on its way, and says so.
        assert isinstance(purged, Conflict)
        purge(here, memory_id)
        assert places(text, here, *targets) == []


def interrupt_move(here, target, memory_id, monkeypatch, step):
    with monkeypatch.context() as broken:
        fail_at(broken, move, step, 0, Killed())
        with pytest.raises(Killed):
            memories.move(here, target, memory_id)


@pytest.fixture(params=["take_in", "archive_moved_memory"])
def interrupted(request, here, targets, monkeypatch):
    """A memory whose move to the first target was killed before, or after, it arrived there."""
    memory_id = memories.write_memory(here, Draft(OURS)).id
    interrupt_move(here, targets[0], memory_id, monkeypatch, request.param)
    return memory_id


def test_an_interrupted_move_is_finished_by_a_worker(here, targets, interrupted):
    assert texts(here) == [OURS]
    assert finish_moves(here) == 1
    assert places(OURS, here, *targets) == ["work"]
    assert finish_moves(here) == 0
    entry = memories.read_record(here, interrupted).history[-1]
    assert (entry.event, entry.detail) == ("moved", {"to": "work", "as": interrupted})


def test_an_interrupted_move_is_finished_by_the_next_attempt(here, targets, interrupted):
    memories.move(here, targets[0], interrupted)
    assert places(OURS, here, *targets) == ["work"]
    assert list_unfinished(here) == []


def test_another_target_gets_no_copy_of_an_interrupted_move(here, targets, interrupted):
    with pytest.raises(Conflict, match="work"):
        memories.move(here, targets[1], interrupted)
    assert places(OURS, here, *targets) == ["work"]


def test_a_purge_finishes_an_interrupted_move_and_follows_it(here, targets, purge, interrupted):
    purge(here, interrupted)
    assert places(OURS, here, *targets) == []
    assert finish_moves(here) == 0


def test_nothing_else_changes_a_memory_that_is_being_moved(here, interrupted):
    for change in (
        lambda: memories.edit(here, interrupted, Revision(content="The port is 9")),
        lambda: memories.archive(here, interrupted),
    ):
        with pytest.raises(Conflict, match="being moved"):
            change()


def test_memory_purged_at_the_target_is_not_moved_again(here, targets, purge, monkeypatch):
    memory_id = memories.write_memory(here, Draft(OURS)).id
    interrupt_move(here, targets[0], memory_id, monkeypatch, "archive_moved_memory")
    purge(targets[0], memory_id)
    finish_moves(here)
    assert places(OURS, here, *targets) == []


def test_a_move_that_is_refused_leaves_the_memory_as_it_was(here, targets, monkeypatch):
    memory_id = memories.write_memory(here, Draft(OURS)).id
    with monkeypatch.context() as broken:
        fail_at(broken, move, "take_in", 0, Conflict("nothing is stored there"))
        with pytest.raises(Conflict):
            memories.move(here, targets[0], memory_id)
    assert list_unfinished(here) == []
    memories.edit(here, memory_id, Revision(content="The port is 9"))
    assert texts(here) == ["The port is 9"]
