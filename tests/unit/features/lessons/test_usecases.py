import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import Draft, Kind
from pipeline.kernel.store import impressions, memories
from pipeline.kernel.store.impressions import Impression, Tally
from pipeline.prompt.render import ENOUGH, Usefulness, usefulness, wilson_interval, with_records
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database

shares = st.integers(0, 500).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))
counts = st.integers(0, 200)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_the_interval_is_the_published_one(successes, trials, low, high):
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_nothing_known_may_be_anything():
    assert wilson_interval(0, 0) == (0.0, 1.0)


@given(shares)
def test_wilson_interval_contains_the_share_within_bounds(counted):
    successes, trials = counted
    low, high = wilson_interval(successes, trials)
    assert 0.0 <= low < high <= 1.0
    if trials:
        assert low - 1e-12 <= successes / trials <= high + 1e-12


@given(shares)
def test_failures_are_successes_seen_from_the_other_side(counted):
    successes, trials = counted
    low, high = wilson_interval(successes, trials)
    assert wilson_interval(trials - successes, trials) == pytest.approx((1 - high, 1 - low))


@given(shares.filter(lambda counted: counted[1]))
def test_more_of_the_same_narrows_the_interval(counted):
    successes, trials = counted
    low, high = wilson_interval(successes, trials)
    lower, higher = wilson_interval(4 * successes, 4 * trials)
    assert higher - lower < high - low


@given(counts, counts, counts)
def test_fewer_than_five_answers_decide_nothing(shown, followed, ignored):
    verdict = usefulness(Tally(shown, followed, ignored))
    if followed + ignored < ENOUGH:
        assert verdict is Usefulness.UNPROVEN
    if verdict is Usefulness.USEFUL:
        assert followed > ignored
    if verdict is Usefulness.DEAD:
        assert ignored > followed


@given(counts, counts)
def test_following_once_more_never_speaks_against_a_lesson(followed, ignored):
    order = [Usefulness.DEAD, Usefulness.UNPROVEN, Usefulness.USEFUL]
    before, after = (usefulness(Tally(0, count, ignored)) for count in (followed, followed + 1))
    # The fifth answer is the first that counts: it may let four ignored ones speak.
    if followed + ignored + 1 > ENOUGH:
        assert order.index(after) >= order.index(before)


@pytest.mark.parametrize(
    ("followed", "ignored", "verdict"),
    [
        (5, 0, Usefulness.USEFUL),
        (0, 5, Usefulness.DEAD),
        (4, 0, Usefulness.UNPROVEN),
        (0, 4, Usefulness.UNPROVEN),
        (3, 3, Usefulness.UNPROVEN),
        (59, 41, Usefulness.UNPROVEN),
        (60, 40, Usefulness.USEFUL),
    ],
)
def test_a_record_is_judged(followed, ignored, verdict):
    assert usefulness(Tally(100, followed, ignored)) is verdict


def test_a_showing_without_an_answer_counts_as_shown_only():
    with scratch_database() as database:
        lesson_id = accept(database, Draft("Run the linter before pushing", kind=Kind.LESSON)).id
        other_id = accept(database, Draft("Never deploy on a Friday", kind=Kind.LESSON)).id
        with database.write() as db:
            lesson, other = memories.get(db, lesson_id), memories.get(db, other_id)
            impressions.add(db, [Impression(str(n), lesson.seq, "s1", "2026-01-01T00:00:00.000Z") for n in range(7)])
            for n in range(6):
                impressions.answer(db, str(n), None, "2026-01-01T00:00:00.000Z", followed=n > 0)
        with database.read() as db:
            found = with_records(db, [other, lesson])
    assert [one.memory.id for one in found] == [other_id, lesson_id]
    assert found[0].tally == Tally(0, 0, 0)
    assert (found[0].low, found[0].high) == (0.0, 1.0)
    assert found[1].tally == Tally(7, 5, 1)
    assert (found[1].low, found[1].high) == wilson_interval(5, 6)
