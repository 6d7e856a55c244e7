"""The journal keeps what was done in order and in bounds; what was told is known by session, agent and version."""

import pytest

from pipeline.kernel.store import agent_sessions
from pipeline.kernel.store.agent_sessions import Action, ActionType
from tests.fakes.in_process import scratch_database

SEQS = [1, 2, 3]


@pytest.fixture
def db():
    with scratch_database() as database, database.write() as connection:
        yield connection


def action(number, session="s1", agent=None, *, ok=True):
    at = f"2026-01-01T00:00:{number:02d}.000Z"
    return Action(at, session, agent, "Bash", ActionType.COMMAND, f"make {number}", ok)


def test_actions_come_back_in_order_and_only_a_sessions_own(db):
    for number in range(5):
        agent_sessions.add_action(
            db, action(number, "s1" if number != 2 else "s2", "a1" if number == 4 else None, ok=number != 3)
        )
    assert agent_sessions.list_actions(db, "s1", "", 10) == [
        action(0),
        action(1),
        action(3, ok=False),
        action(4, agent="a1"),
    ]
    assert [one.target for one in agent_sessions.list_actions(db, "s1", action(1).at, 2)] == ["make 3", "make 4"]
    assert agent_sessions.list_actions(db, "nobody", "", 10) == []


def test_a_turn_begins_and_ends(db):
    assert agent_sessions.find_turn_start(db, "s1") is None
    agent_sessions.begin_turn(db, "s1", "/p", action(1).at)
    agent_sessions.begin_turn(db, "s1", "/p", action(2).at)
    assert agent_sessions.find_turn_start(db, "s1") == action(2).at
    agent_sessions.end_turn(db, "s1", action(3).at)
    assert agent_sessions.find_turn_start(db, "s1") == action(3).at
    agent_sessions.end_turn(db, "unseen", action(4).at)
    assert agent_sessions.find_turn_start(db, "unseen") == action(4).at


def test_seen_versions_are_separate_per_agent_and_cleared_per_session(db):
    agent_sessions.record_seen(db, "s1", "", [(1, "a"), (2, "b")])
    agent_sessions.record_seen(db, "s1", "helper", [(3, "c")])
    agent_sessions.record_seen(db, "s1", "", [(2, "b2")])
    agent_sessions.record_seen(db, "s2", "", [(1, "a")])
    assert agent_sessions.list_seen_versions(db, "s1", "", SEQS) == {1: "a", 2: "b2"}
    assert agent_sessions.list_seen_versions(db, "s1", "helper", SEQS) == {3: "c"}
    assert agent_sessions.list_seen_versions(db, "s1", "", [2, 3]) == {2: "b2"}
    db.execute("DELETE FROM seen WHERE memory_seq = 1")
    assert agent_sessions.list_seen_versions(db, "s1", "", SEQS) == {2: "b2"}
    agent_sessions.clear_seen(db, "s1")
    assert (
        agent_sessions.list_seen_versions(db, "s1", "", SEQS)
        == agent_sessions.list_seen_versions(db, "s1", "helper", SEQS)
        == {}
    )


def test_seen_versions_of_old_sessions_are_deleted_but_sessions_are_kept(db):
    for session, number in (("old", 1), ("new", 5)):
        agent_sessions.begin_turn(db, session, "/p", action(number).at)
        agent_sessions.record_seen(db, session, "", [(1, "a")])
        agent_sessions.add_action(db, action(number, session))
    agent_sessions.forget_rested_sessions(db, action(5).at)
    assert agent_sessions.find_turn_start(db, "old") is not None
    assert agent_sessions.list_seen_versions(db, "old", "", SEQS) == {}
    assert len(agent_sessions.list_actions(db, "old", "", 10)) == 1
    assert agent_sessions.list_seen_versions(db, "new", "", SEQS) == {1: "a"}


@pytest.mark.parametrize("since", ["2026-01-01T00:00:00.000Z", action(2).at, action(4).at, "2027"])
def test_the_sessions_since_a_time_are_those_of_the_list(db, since):
    for number in range(4):
        agent_sessions.add_action(db, action(number, f"s{number % 2}"))
    agent_sessions.begin_turn(db, "s5", "/p", action(4).at)
    listed = [one for one in agent_sessions.list_sessions(db, 50, 0) if one.last_at >= since]
    assert agent_sessions.list_sessions_since(db, since, 50) == listed
