"""Undoing what was said of facts: afterwards every moment holds what it held before."""

import itertools

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import Draft, FactKey, Outcome, Scope, Source
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import facts, memories
from pipeline.write.facts import end_fact, reopen_fact, set_fact, take_back_fact
from tests.fakes.in_process import scratch_database
from tests.fakes.properties import opens_stores

KEY = FactKey("staging", "port")
DOOR = WritePolicy()
INSTANTS = range(1, 9)
END = None

instants = st.sampled_from(INSTANTS)
values = st.sampled_from(["a", "b", 1, True])
steps = st.lists(st.tuples(instants, values | st.just(END)), max_size=8)


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def moment(instant):
    return f"{1900 + 20 * instant:04d}-01-01T00:00:00.000Z"


def set_value(database, instant, value):
    if value is END:
        return end_fact(database, KEY, Scope(), moment(instant)).fact
    return set_fact(database, KEY, value, Draft("", source=Source.USER, occurred_at=moment(instant)), DOOR)


def play(database, script):
    for instant, value in script:
        try:
            set_value(database, instant, value)
        except NotFound:
            assert value is END


def everywhere(database):
    with database.read() as db:
        found = [facts.find_valid(db, KEY, Scope(), moment(instant)) for instant in range(len(INSTANTS) + 2)]
    return [None if fact is None else repr(fact.details["value"]) for fact in found]


def overlaps(database):
    with database.read() as db:
        history = [fact for fact in facts.history(db, KEY, Scope()) if fact.valid_from != fact.valid_to]
    return [
        (one.valid_to, other.valid_from)
        for one, other in itertools.pairwise(history)
        if one.valid_to is None or one.valid_to > other.valid_from
    ]


@opens_stores
@given(steps, instants, values)
def test_retracted_value_restores_every_time(script, instant, value):
    with scratch_database() as database:
        play(database, script)
        before = everywhere(database)
        receipt = set_value(database, instant, value)
        if receipt.outcome is Outcome.CREATED:
            assert take_back_fact(database, receipt.id).archived_at is not None
        assert everywhere(database) == before
        assert overlaps(database) == []


@opens_stores
@given(steps, instants)
def test_retracted_end_restores_every_time(script, instant):
    with scratch_database() as database:
        play(database, script)
        with database.read() as db:
            holder = facts.find_valid(db, KEY, Scope(), moment(instant))
        if holder is None:
            return
        before = everywhere(database)
        end_fact(database, KEY, Scope(), moment(instant))
        reopen_fact(database, holder.id, holder.valid_to)
        assert everywhere(database) == before
        assert overlaps(database) == []


@opens_stores
@given(steps, instants, values, instants, values)
def test_retracted_fact_keeps_values_set_later(script, instant, value, later, then):
    with scratch_database() as database:
        play(database, script)
        receipt = set_value(database, instant, value)
        since = set_value(database, later, then)
        at_later = everywhere(database)[later]
        if receipt.outcome is Outcome.CREATED and later != instant and since.duplicate_of != receipt.id:
            take_back_fact(database, receipt.id)
            assert everywhere(database)[later] == at_later
            assert overlaps(database) == []


def test_a_reopened_value_ends_where_the_next_begins(database):
    first = set_value(database, 1, "a").id
    set_value(database, 3, END)
    set_value(database, 5, "b")
    assert reopen_fact(database, first, None).valid_to == moment(5)


def test_a_value_is_not_reopened_to_end_earlier(database):
    first = set_value(database, 1, "a").id
    set_value(database, 5, END)
    with pytest.raises(Conflict):
        reopen_fact(database, first, moment(3))


def test_retracted_fact_is_not_found_and_cannot_be_retracted_again(database):
    taken = set_value(database, 1, "a").id
    take_back_fact(database, taken)
    with database.read() as db:
        assert db.execute("SELECT count(*) FROM tail").fetchone() == (0,)
        memory = memories.get(db, taken)
        assert memory is not None
        assert memory.archived_at is not None
    with pytest.raises(NotFound):
        take_back_fact(database, taken)
    with pytest.raises(NotFound):
        reopen_fact(database, taken, None)


def test_fact_confirmed_for_a_later_time_cannot_be_retracted(database):
    taken = set_value(database, 1, "a").id
    assert set_value(database, 3, "a").duplicate_of == taken
    with pytest.raises(Conflict):
        take_back_fact(database, taken)


def test_a_memory_that_is_no_fact_cannot_be_taken_back(database):
    with pytest.raises(NotFound):
        take_back_fact(database, "01J00000000000000000000000")
