"""Goals that are not finished: what is due first, then what matters most, and only what a viewer may see."""

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import Draft, Kind, Revision, Scope, ScopeKind, Viewer
from pipeline.kernel.store import goals
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database
from tests.fakes.properties import opens_stores

EVERY = 1000
NOBODY = Viewer()
DUE = st.none() | st.sampled_from(["2026-03-01T00:00:00.000Z", "2025-12-31T00:00:00.000Z", "2026-04-01T10:00:00.000Z"])
GOAL = st.tuples(st.sampled_from(["open", "in_progress", "done", "dropped", None]), DUE, st.sampled_from([0.2, 0.7]))


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def set_goal(database, text, status=None, due_at=None, importance=0.5, **fields):
    details = {name: value for name, value in (("status", status), ("due_at", due_at)) if value is not None}
    return accept(database, Draft(text, kind=Kind.GOAL, details=details, importance=importance, **fields)).id


def list_unfinished(database, viewer=NOBODY, limit=EVERY):
    with database.read() as db:
        return [goal.content for goal in goals.list_unfinished(db, viewer, limit)]


@opens_stores
@given(st.lists(GOAL, max_size=12), st.integers(1, 15))
def test_the_first_are_those_that_are_due_first_and_matter_most(given_goals, limit):
    with scratch_database() as database:
        for number, (status, due, importance) in enumerate(given_goals):
            set_goal(database, f"Ship the part with number {number}", status, due, importance)
        wanted = [
            (due is None, due or "", -importance, -number)
            for number, (status, due, importance) in enumerate(given_goals)
            if status not in ("done", "dropped")
        ]
        expected = [f"Ship the part with number {-key[3]}" for key in sorted(wanted)]
        assert list_unfinished(database, limit=limit) == expected[:limit]


def test_edited_restored_and_purged_goals_update_the_unfinished_list(database):
    first, second = (set_goal(database, f"Ship {part}", importance=0.5) for part in ("one", "two"))
    gone = set_goal(database, "Ship three")
    mine = set_goal(database, "Ship four", scope=Scope(ScopeKind.AGENT, "a1"))
    accept(database, Draft("Ship five"))
    revise.archive(database, gone)
    revise.edit(database, first, Revision(importance=0.9))
    assert list_unfinished(database) == ["Ship one", "Ship two"]
    revise.edit(database, second, Revision(details={"due_at": "2026-03-01T00:00:00.000Z"}))
    assert list_unfinished(database, Viewer(agent="a1")) == ["Ship two", "Ship one", "Ship four"]
    revise.edit(database, first, Revision(details={"status": "done"}))
    revise.restore(database, gone)
    revise.purge(database, mine)
    assert list_unfinished(database, Viewer(agent="a1")) == ["Ship two", "Ship three"]


@pytest.mark.files
def test_goals_that_are_done_are_not_looked_through(database):
    """Only what is told is read, however many goals there are and were."""
    asked = []
    with database.read() as db:
        db.set_trace_callback(asked.append)
        goals.list_unfinished(db, Viewer(session="s"), 5)
        db.set_trace_callback(None)
        [statement] = asked
        steps = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert [step for step in steps if "memory_unfinished_goal" in step]
    # The five that are found are put in order; nothing else is.
    assert len([step for step in steps if "TEMP B-TREE FOR ORDER BY" in step]) == 1
