"""What the overview counts, against a count of every row."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import FactKey, Kind, Scope, ScopeKind, Source
from pipeline.kernel.store import agent_sessions, journal, memories
from pipeline.write import revise
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import set_fact, text_of, write
from tests.fakes.properties import opens_stores

KINDS = (Kind.FACT, Kind.LESSON, Kind.GOAL)
LONG_AFTER = text_of(10_000)


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


memory = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "session_id": st.sampled_from([None, "s1", "s2"]),
        "state": st.sampled_from(["active", "archived", "candidate"]),
        "day": st.integers(0, 20),
    }
)


@opens_stores
@given(st.lists(memory, max_size=12))
def test_counts_are_those_of_a_look_at_every_memory(drawn):
    with scratch_database() as database:
        for number, one in enumerate(drawn):
            fields = {"kind": one["kind"], "session_id": one["session_id"]}
            made = write(database, one["day"], f"Text number {number}", **fields)
            if one["state"] == "archived":
                revise.archive(database, made)
            elif one["state"] == "candidate":
                with database.write() as db:
                    seq = memories.get(db, made).seq
                    memories.update(db, seq, {"candidate": 1}, LONG_AFTER)
        with database.read() as db:
            known = journal.count_known(db)
        states = Counter(one["state"] for one in drawn)
        assert known.kinds == Counter(one["kind"] for one in drawn if one["state"] == "active")
        assert list(known.kinds.values()) == sorted(known.kinds.values(), reverse=True)
        assert (known.active, known.archived, known.candidates) == tuple(
            states[state] for state in ("active", "archived", "candidate")
        )
        assert known.sessions == len({one["session_id"] for one in drawn} - {None})


def test_current_facts_are_counted_once_per_key(database):
    port = FactKey("the server", "port")
    set_fact(database, 1, port, "8000")
    set_fact(database, 5, port, "9000")
    set_fact(database, 5, port, "7000", scope=Scope(ScopeKind.SESSION, "s1"))
    set_fact(database, 6, FactKey("the server", "host"), "localhost")
    with database.read() as db:
        counted = [journal.count_current_facts(db, text_of(day)) for day in (0, 2, 5, 7)]
    assert counted == [0, 1, 2, 3]


def test_agent_writers_are_detected_in_the_latest_memories(database):
    def is_noticed(latest=2):
        with database.read() as db:
            return journal.has_agent_writers(db, latest)

    assert not is_noticed()
    write(database, 1, "By a person", source=Source.USER)
    assert not is_noticed()
    write(database, 1, "By an agent", kind=Kind.LESSON, source=Source.AGENT)
    assert is_noticed()
    for number in range(2):
        write(database, 2, f"By a person, number {number}", source=Source.IMPORT)
    assert not is_noticed()
    assert is_noticed(latest=3)


def test_incognito_sessions_are_listed_from_the_latest_on(database):
    with database.write() as db:
        for number in range(5):
            agent_sessions.begin_incognito(db, f"s{number}", text_of(number % 3))
    with database.read() as db:
        whole = agent_sessions.page_incognito(db)
        pages, below = [], None
        while page := agent_sessions.page_incognito(db, 2, below):
            pages += page
            below = page[-1].place
    assert pages == whole
    assert [one.since for one in whole] == sorted((one.since for one in whole), reverse=True)
    assert {one.session_id for one in whole} == {f"s{number}" for number in range(5)}
