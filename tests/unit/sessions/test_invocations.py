"""The command that works here comes first."""

from pipeline.sessions.invocations import find_invocations
from tests.fakes.in_process import scratch_database
from tests.fakes.past_sessions import load_projects, store_sessions

# Measured: 31 of 33.
LEAST_RIGHT = 0.9


def test_the_command_that_works_here_comes_first():
    results = []
    for project in load_projects("invocations"):
        with scratch_database() as database, database.write() as db:
            store_sessions(db, project["sessions"])
            for question in project["questions"]:
                found = [invocation.command for invocation in find_invocations(db, question["about"], None, 3)]
                results.append((found or [None])[0] == question["command"])
    assert len(results) >= 20
    assert sum(results) / len(results) >= LEAST_RIGHT


def test_a_command_that_has_failed_since_is_left_out():
    works = {"run": "make check"}
    fails = {"run": "make check", "fails": "make: *** No rule to make target 'check'.  Stop."}
    with scratch_database() as database, database.write() as db:
        store_sessions(db, [{"id": "s1", "date": "2026-01-01", "did": [works, works]}])
        assert [found.successes for found in find_invocations(db, "check", None, 3)] == [2]
        store_sessions(db, [{"id": "s2", "date": "2026-01-02", "did": [fails, fails]}])
        assert find_invocations(db, "check", None, 3) == []
