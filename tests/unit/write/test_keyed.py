"""Keyed facts in time, held against a list of what was told when."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.errors import InvalidField, NotFound
from pipeline.kernel.records import Draft, FactKey, Outcome, Scope, Source
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import facts
from pipeline.write import revise
from pipeline.write.fact_placement import fact_key, fact_text, safe_value
from pipeline.write.facts import end_fact, set_fact
from tests.fakes.in_process import scratch_database
from tests.fakes.properties import opens_stores

KEY = FactKey("staging", "port")
END = None
ALWAYS = "9999"
DOOR = WritePolicy(review=True)
INSTANTS = range(1, 13)

instants = st.sampled_from(INSTANTS)
values = st.sampled_from(["a", "b", "c", 1, 1.0, True])
steps = st.lists(st.tuples(instants, values | st.just(END)), max_size=14)


def moment(instant):
    """Some lie in the past and some in the future of any clock that runs this."""
    return f"{1900 + 20 * instant:04d}-01-01T00:00:00.000Z"


class Oracle:
    """Remember everything that was told; at each moment that holds which was told last of the time up to then."""

    def __init__(self):
        self.stated = []

    def at(self, instant):
        known = [(begins, order, value) for order, (begins, value) in enumerate(self.stated) if begins <= instant]
        return max(known, key=lambda one: one[:2])[2] if known else END

    def set_value(self, instant, value):
        later = sorted((begins, order) for order, (begins, _) in enumerate(self.stated) if begins > instant)
        if value is END and later and self.stated[later[0][1]][1] is END:
            # Said to end earlier than was said before: that is taken back.
            del self.stated[later[0][1]]
        self.stated.append((instant, value))


def same(one, other):
    return type(one) is type(other) and one == other


def set_value(database, instant, value, source=Source.USER):
    if value is END:
        return end_fact(database, KEY, Scope(), moment(instant)).fact
    return set_fact(database, KEY, value, Draft("", source=source, occurred_at=moment(instant)), DOOR)


def at(database, instant):
    with database.read() as db:
        held = facts.find_valid(db, KEY, Scope(), moment(instant))
    return END if held is None else held.details["value"]


def everywhere(database):
    return [at(database, instant) for instant in range(len(INSTANTS) + 2)]


def intervals(database):
    with database.read() as db:
        found = facts.history(db, KEY, Scope())
    return [(fact.valid_from, fact.valid_to or ALWAYS, fact.details["value"]) for fact in found]


def play(database, script):
    """Tell everything; what holds at no moment cannot be ended."""
    for instant, value in script:
        if value is END and at(database, instant) is END:
            with pytest.raises(NotFound):
                set_value(database, instant, END)
        else:
            set_value(database, instant, value)


@opens_stores
@given(steps)
def test_fact_value_at_each_time_equals_the_reference_model(script):
    oracle, said = Oracle(), set()
    with scratch_database() as database:
        for instant, value in script:
            if value is END and (instant in said or oracle.at(instant) is END):
                continue
            said.add(instant)
            set_value(database, instant, value)
            oracle.set_value(instant, value)
        for instant, held in enumerate(everywhere(database)):
            assert same(held, oracle.at(instant)), instant


@opens_stores
@given(steps)
def test_the_values_of_a_key_never_overlap(script):
    with scratch_database() as database:
        play(database, script)
        found = intervals(database)
    assert all(begins <= ends for begins, ends, _ in found)
    lasting = sorted((begins, ends) for begins, ends, _ in found if begins < ends)
    assert all(ends <= begins for (_, ends), (begins, _) in pairwise(lasting))


@opens_stores
@given(steps)
def test_each_value_that_was_taken_is_in_the_history(script):
    with scratch_database() as database:
        play(database, script)
        kept = [value for _, _, value in intervals(database)]
    told = [value for _, value in script if value is not END]
    assert len(kept) <= len(told)
    assert all(any(same(value, one) for one in kept) for value in told)


@opens_stores
@given(steps, instants, values)
def test_late_older_value_does_not_change_the_current_value(script, instant, late):
    with scratch_database() as database:
        play(database, script)
        turns = [turn for begins, ends, _ in intervals(database) for turn in (begins, ends)]
        newest = max((turn for turn in turns if turn != ALWAYS), default="")
        if moment(instant) < newest:
            before = [held for when, held in enumerate(everywhere(database)) if moment(when) >= newest]
            set_value(database, instant, late)
            after = [held for when, held in enumerate(everywhere(database)) if moment(when) >= newest]
            assert all(map(same, before, after))


def test_value_ended_at_its_start_is_never_valid_but_recorded():
    with scratch_database() as database:
        set_value(database, 3, "a")
        set_value(database, 3, END)
        set_value(database, 1, "b")
        assert [at(database, instant) for instant in (1, 2, 3, 4)] == ["b", "b", END, END]
        assert [value for _, _, value in intervals(database)] == ["b", "a"]


@opens_stores
@given(st.permutations([(1, "a"), (3, "a"), (5, "b"), (7, "a"), (9, "c")]))
def test_the_order_of_arrival_does_not_matter(script):
    with scratch_database() as database:
        play(database, script)
        assert everywhere(database)[:11] == [END, "a", "a", "a", "a", "b", "b", "a", "a", "c", "c"]


@opens_stores
@given(steps, st.data())
def test_archiving_a_value_and_bringing_it_back_changes_no_answer(script, data):
    with scratch_database() as database:
        play(database, script)
        before = everywhere(database)
        with database.read() as db:
            ids = [fact.id for fact in facts.history(db, KEY, Scope())]
        if ids:
            chosen = data.draw(st.sampled_from(ids))
            revise.archive(database, chosen)
            revise.restore(database, chosen)
        assert all(map(same, everywhere(database), before))


def test_repeated_value_outlives_a_late_older_value():
    with scratch_database() as database:
        set_value(database, 1, "a")
        assert set_value(database, 5, "a").outcome is Outcome.MERGED
        set_value(database, 3, "b")
        assert [at(database, instant) for instant in (2, 3, 4, 5, 6)] == ["a", "b", "b", "a", "a"]


def test_value_valid_again_can_be_repeated_and_split_again():
    with scratch_database() as database:
        for instant, value in [(1, "a"), (5, "a"), (9, "a"), (3, "b"), (7, "c")]:
            set_value(database, instant, value)
        assert [at(database, instant) for instant in (1, 3, 5, 7, 9)] == ["a", "b", "a", "c", "a"]


def test_value_valid_again_keeps_its_source():
    with scratch_database() as database:
        for instant, value in [(1, "a"), (5, "a"), (3, "b")]:
            set_value(database, instant, value, Source.AGENT)
        with database.read() as db:
            first, _, again = facts.history(db, KEY, Scope())
    assert (again.source, again.trust, again.content) == (first.source, first.trust, first.content)
    assert again.occurred_at == again.valid_from


def test_repetition_by_an_import_does_not_end_a_users_value():
    with scratch_database() as database:
        set_value(database, 1, "a")
        set_value(database, 5, "a", Source.IMPORT)
        set_value(database, 3, "b")
        assert at(database, 6) == "b"


def test_true_is_another_value_than_one():
    with scratch_database() as database:
        set_value(database, 1, 1)
        assert set_value(database, 2, True).outcome is Outcome.CREATED
        assert at(database, 2) is True


def test_value_confirmed_by_the_user_is_not_ended_by_an_import():
    with scratch_database() as database:
        set_value(database, 1, "a", Source.IMPORT)
        set_value(database, 1, "a")
        assert set_value(database, 2, "b", Source.IMPORT).outcome is Outcome.CANDIDATE
        assert at(database, 3) == "a"


@pytest.mark.parametrize("source", [Source.IMPORT, Source.SYNC, Source.AMBIENT])
def test_imported_value_may_be_ended_by_another_import(source):
    with scratch_database() as database:
        set_value(database, 1, "8080 behind the gateway proxy", source)
        assert set_value(database, 2, "9090 behind the billing proxy", source).outcome is Outcome.CREATED


@pytest.mark.parametrize("name", ["", " ", "--", "\u200b", "?!"])
@pytest.mark.parametrize("field", ["subject", "attribute"])
def test_name_without_letters_and_digits_is_rejected(field, name):
    with pytest.raises(InvalidField) as caught:
        fact_key(**{"subject": "x", "attribute": "y", field: name}, loc="details.")
    assert [error.loc for error in caught.value.errors] == [f"details.{field}"]


def test_a_name_may_have_two_hundred_characters_and_no_more():
    assert fact_key("s" * 200, "a").subject == "s" * 200
    with pytest.raises(InvalidField):
        fact_key("s" * 201, "a")


@pytest.mark.parametrize("value", ["plain", "", "1", 7, -2.5, True, False, 1e300])
def test_harmless_value_is_unchanged(value):
    assert same(safe_value(KEY, value), value)


@pytest.mark.parametrize("value", ["correct7horse9battery", 83749234987])
def test_secret_value_of_a_keyed_fact_is_redacted(value):
    key = fact_key("db", "password")
    assert str(value) not in fact_text(key, value)
    assert safe_value(key, value) == "[REDACTED:password]"


@given(st.text(max_size=40) | st.integers() | st.floats(allow_nan=False, allow_infinity=False), st.data())
def test_the_value_that_is_kept_says_no_more_than_the_text(value, data):
    key = fact_key("db", data.draw(st.sampled_from(["password", "port", "api_key", "token"])))
    kept = safe_value(key, value)
    assert str(kept) in fact_text(key, value)
    assert same(safe_value(key, kept), kept)
