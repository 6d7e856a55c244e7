"""The index follows the store: new, changed and deleted rules and actions, from several threads."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.features.acts import act_index
from pipeline.features.acts.act_index import ActIndex
from pipeline.kernel.records import Draft, Kind
from pipeline.kernel.store import agent_sessions
from pipeline.write.accept import accept
from pipeline.write.tool_actions import Outcome, describe_action
from tests.fakes.in_process import scratch_database

AT = "2026-03-02T08:00:00.000Z"


def write_rule(database, text):
    accept(database, Draft(text, kind=Kind.LESSON))


def fail(database, command, at=AT):
    outcome = Outcome(ok=False, exit_code=1, output="Exit code 1\nboom: no such table")
    action = describe_action("s", None, at, "Bash", {"command": command}, outcome, "/app")
    with database.write() as db:
        agent_sessions.add_action(db, action)


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


@pytest.fixture
def index(database):
    index = ActIndex()
    write_rule(database, "never run make wipe")
    index.refresh(database, with_rules=True)
    return index


def test_rules_are_found_by_their_rarest_words_first(database, index, monkeypatch):
    write_rule(database, "run make docs after a change of docs")
    write_rule(database, "never push to main")
    index.refresh(database, with_rules=True)
    monkeypatch.setattr(act_index, "MOST_CANDIDATES", 1)
    assert [text for _, text in index.find(["wipe", "make"])] == ["never run make wipe"]


def test_rules_are_not_read_where_they_are_not_shown(database):
    index = ActIndex()
    write_rule(database, "never run make wipe")
    index.refresh(database, with_rules=False)
    assert index.find(["wipe"]) == []


def test_many_changes_wait_for_the_background(database, index, monkeypatch):
    monkeypatch.setattr(act_index, "PAGE", 1)
    write_rule(database, "never push to main")
    write_rule(database, "never tag by hand")
    assert not index.refresh(database, with_rules=True, patience_s=1)
    assert index.refresh(database, with_rules=True)
    assert len(index.find([])) == 3


def test_index_is_read_and_refreshed_by_many_threads(database, index):
    def work(number):
        write_rule(database, f"never run job{number}")
        index.refresh(database, with_rules=True)
        return index.find(["never", "run"])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(24)))
    index.refresh(database, with_rules=True)
    assert len(index.find([])) == 25


def test_history_is_read_again_after_its_last_action_was_deleted(database, index):
    fail(database, "make load")
    index.refresh(database, with_rules=False)
    with database.write() as db:
        db.execute("DELETE FROM action")
    # The number of the deleted action is used again.
    fail(database, "make seed", "2026-03-02T09:00:00.000Z")
    index.refresh(database, with_rules=False)
    assert list(index.history._failures) == ["make seed"]
