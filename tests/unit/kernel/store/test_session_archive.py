"""The archive of sessions stays within its budget: what agents said goes first, the words of the person last."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.job_runs import JobRun
from pipeline.kernel.store import agent_sessions, session_archive, turns
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.kernel.store.session_archive import ArchivedSession
from pipeline.kernel.store.turns import Message, Role
from pipeline.kernel.times import parse
from pipeline.sessions.job import MEGABYTE, sessions
from tests.fakes.in_process import scratch_database
from tests.fakes.properties import opens_stores

AT = "2026-01-01T00:00:{:02d}.000Z"
PERSON, AGENT, ACTION = "person", "agent", "action"
ROWS = st.lists(
    st.tuples(st.sampled_from([PERSON, AGENT, ACTION]), st.integers(0, 59), st.integers(1, 40)), max_size=30
)


@pytest.fixture
def db():
    with scratch_database() as database, database.write() as connection:
        yield connection


def fill(db, rows):
    for kind, second, size in rows:
        if kind == ACTION:
            target = "x" * size
            action = Action(AT.format(second), "s", None, "Bash", ActionType.COMMAND, target, True)
            agent_sessions.add_action(db, action)
        else:
            role = Role.USER if kind == PERSON else Role.ASSISTANT
            turns.add(db, [Message("s", role, "x" * size, AT.format(second))])


def stored(db):
    said = db.execute("SELECT role, at, length(content) FROM turn")
    done = db.execute("SELECT 'action', at, length(target) FROM action")
    names = {"user": PERSON, "assistant": AGENT, "action": ACTION}
    return Counter((names[kind], int(at[17:19]), size) for kind, at, size in [*said.fetchall(), *done.fetchall()])


@opens_stores
@given(rows=ROWS, excess=st.integers(1, 600), most_rows=st.integers(1, 7))
def test_session_archive_deletes_older_and_less_important_rows_first(rows, excess, most_rows):
    order = {AGENT: 0, ACTION: 1, PERSON: 2}
    with scratch_database() as database, database.write() as db:
        fill(db, rows)
        before, left = stored(db), excess
        assert session_archive.measure_sessions(db) == sum(size for _, _, size in rows)
        while left > 0 and (freed := session_archive.trim_sessions(db, left, most_rows)):
            left -= freed
        after = stored(db)
        deleted = before - after
    ranked = sorted((order[kind], second) for kind, second, _ in deleted.elements())
    kept = sorted((order[kind], second) for kind, second, _ in after.elements())
    assert not (ranked and kept) or ranked[-1] <= kept[0]
    freed = sum(size for _, _, size in deleted.elements())
    # Not more than needed, by one row at most, and all of it if there is not enough.
    assert freed >= excess or not after
    if deleted:
        largest = max(size for _, _, size in deleted)
        assert freed < excess + largest


def test_the_job_frees_a_tenth_of_the_budget(monkeypatch):
    monkeypatch.setattr("pipeline.sessions.job.MEGABYTE", 100)
    with scratch_database() as database:
        with database.write() as db:
            fill(db, [(AGENT, second, 10) for second in range(8)] + [(PERSON, 0, 25)])
        run = JobRun(database, parse(AT.format(59)))
        assert sessions(run, 1).counts == {"freed": 20}
        with database.read() as db:
            assert session_archive.measure_sessions(db) == 85
            assert (PERSON, 0, 25) in stored(db)
        assert sessions(JobRun(database, parse(AT.format(59))), 1).counts == {}


def test_megabytes_are_millions():
    assert MEGABYTE == 10**6


def test_a_session_is_completed_by_later_parts(db):
    session_archive.put_session(db, ArchivedSession("s", "cursor", "/p", None, None, AT.format(5), AT.format(6)))
    session_archive.put_session(db, ArchivedSession("s", "cursor", "/q", "main", "Fix it", AT.format(3), AT.format(4)))
    session_archive.put_session(db, ArchivedSession("s", "cursor", "/q", None, "Other", AT.format(4), AT.format(9)))
    row = db.execute("SELECT agent, cwd, branch, name, started_at, turn_at, ended_at FROM agent_session").fetchone()
    assert tuple(row) == ("cursor", "/p", "main", "Fix it", AT.format(3), AT.format(9), AT.format(9))


def test_messages_of_an_earlier_version_get_their_hash(db):
    db.execute("INSERT INTO turn (session_id, role, content, at) VALUES ('s', 'user', 'hello', ?)", (AT.format(1),))
    assert session_archive.list_session_texts(db, "s") == [(turns.hash_text("user", "hello"), AT.format(1))]
    assert turns.find_copies(db, [turns.hash_text("user", "hello")]) == {
        (turns.hash_text("user", "hello"), AT.format(1))
    }
