import dataclasses

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.recall.rank import (
    ANSWER_GAIN,
    ANSWER_TOKENS,
    FEATURES,
    TWO_TURNS_SHARE,
    Evidence,
    neighbor_positions,
    rank,
    take_at,
)
from tests.fakes.evidence import evidence, in_session

WEIGHTS = {feature.name: feature.weight for feature in FEATURES}

share = st.floats(0, 1, width=32)


@st.composite
def pools(draw):
    count = draw(st.integers(0, 10))
    seqs = sorted(draw(st.sets(st.integers(1, 60), min_size=count, max_size=count)))
    neighbours = st.lists(st.sampled_from([0, *seqs, 61, 99]), min_size=count, max_size=count)

    def column(values):
        return draw(st.lists(values, min_size=count, max_size=count))

    return evidence(
        seqs,
        sessions=column(st.integers(1, 3)),
        before=draw(neighbours),
        after=draw(neighbours),
        lexical=column(st.floats(0, 30, width=32)),
        ceiling=draw(st.floats(0, 30)),
        dense=column(st.floats(-1, 1, width=32)),
        context=column(st.floats(-1, 1, width=32)),
        lengths=column(st.floats(0, 2000, width=32)),
        importance=column(share),
        days=column(st.floats(2_400_000, 2_500_000, width=32)),
        **{name: column(st.booleans()) for name in ("asks", "by_assistant", "in_time_range", "speaks", "turns")},
        literal=column(share),
        answers_user=column(st.booleans()),
        outlines=column(st.booleans()),
    )


@given(pools())
def test_the_parts_add_up_to_the_score(pool):
    ranking = rank(pool)
    assert set(ranking.parts) == set(WEIGHTS)
    assert np.isfinite(ranking.score).all()
    total = sum(values.astype(np.float64) for values in ranking.parts.values())
    assert ranking.score == pytest.approx(total, abs=1e-5)


@given(pools())
def test_best_first_and_newer_first_among_equals(pool):
    ranking = rank(pool)
    placed = [(-float(ranking.score[place]), -int(pool.seqs[place])) for place in ranking.order]
    assert placed == sorted(placed)
    assert sorted(ranking.order.tolist()) == list(range(len(pool.seqs)))


@given(pools(), st.floats(0, 10_000))
def test_time_that_passes_changes_no_order(pool, days):
    # Quarter days, which float32 holds exactly at this size.
    later = dataclasses.replace(pool, days=pool.days + np.float32(round(days * 4) / 4))
    assert rank(later).score == pytest.approx(rank(pool).score, abs=1e-3)


def pair(**said):
    return evidence([1, 2], ceiling=10.0, **said)


@given(st.tuples(share, share))
def test_importance_lifts_no_memory_over_the_only_one_with_the_words(importance):
    assert rank(pair(lexical=[8, 0], importance=importance)).order.tolist() == [0, 1]


def test_the_more_important_of_equals_comes_first():
    assert rank(pair(lexical=[8, 8], importance=[1, 0])).order.tolist() == [0, 1]


@given(share, share)
def test_nearest_vector_does_not_outrank_the_only_lexical_match(low, high):
    pool = pair(lexical=[4, 0], dense=[0.0, 0.1], context=[0.0, 0.1], importance=[low, high])
    assert rank(pool).order.tolist() == [0, 1]


def turns(count, **said):
    return evidence(ceiling=10.0, **in_session(range(1, count + 1)), **said)


def test_the_turns_next_to_a_match_are_lifted():
    ranking = rank(turns(5, lexical=[0, 0, 9, 0, 0]))
    share = WEIGHTS["adjacent_turn"] * float(ranking.pool.own[2])
    further = TWO_TURNS_SHARE * share
    assert ranking.parts["adjacent_turn"].tolist() == pytest.approx([further, share, 0, share, further])


def test_the_turn_after_a_matching_question_is_lifted_more_than_the_one_before_it():
    ranking = rank(turns(3, lexical=[0, 9, 0], asks=[False, True, False]))
    share = WEIGHTS["adjacent_turn"] * float(ranking.pool.own[1])
    assert ranking.parts["adjacent_turn"].tolist() == pytest.approx([share, 0, (1 + ANSWER_GAIN) * share])
    assert ranking.score[2] > ranking.score[0]


def test_the_answer_of_an_assistant_is_lifted_like_any_neighbor():
    ranking = rank(turns(3, lexical=[0, 9, 0], asks=[False, True, False], by_assistant=[False, False, True]))
    share = WEIGHTS["adjacent_turn"] * float(ranking.pool.own[1])
    assert ranking.parts["adjacent_turn"].tolist() == pytest.approx([share, 0, share])


@given(st.floats(1, 100), st.floats(1, 100))
def test_a_turn_loses_by_each_token_that_it_is_too_short(first, second):
    ranking = rank(pair(lexical=[8, 8], lengths=[first, second], turns=[True, True]))
    change = [WEIGHTS["length"] * np.log(max(ANSWER_TOKENS / tokens, 1)) for tokens in (first, second)]
    assert ranking.score[0] - ranking.score[1] == pytest.approx(change[0] - change[1], abs=1e-5)


def test_a_short_memory_that_is_no_turn_loses_nothing():
    ranking = rank(pair(lexical=[8, 8], lengths=[3, 300]))
    assert ranking.parts["length"].tolist() == [0, 0]


def test_a_neighbor_that_is_not_in_the_pool_lifts_no_memory():
    pool = evidence([5, 9], lexical=[9, 9], ceiling=10.0, before=[4, 7], after=[6, 99])
    assert rank(pool).parts["adjacent_turn"].tolist() == [0, 0]


def test_a_session_is_lifted_by_its_best_and_no_other_is():
    pool = evidence([1, 2, 3], lexical=[9, 0, 0], ceiling=10.0, sessions=[4, 4, 7])
    session = rank(pool).parts["session"].tolist()
    assert session[0] == session[1] > 0
    assert session[2] == 0


@given(share)
def test_a_memory_without_a_session_is_not_punished_for_it(words):
    """Its session is itself, so that only what others in a session say can come on top."""
    alone = evidence([1, 2], sessions=[1, 2], lexical=[words, words], ceiling=1.0)
    ranking = rank(alone)
    assert ranking.score[0] == ranking.score[1]
    assert ranking.parts["session"][0] == pytest.approx(WEIGHTS["session"] * ranking.pool.own[0], abs=1e-6)
    together = rank(evidence([1, 2], sessions=[1, 1], lexical=[words, words], ceiling=1.0))
    assert together.score.tolist() == ranking.score.tolist()


FLAGS = ("in_time_range", "answers_user", "literal", "speaks")


@pytest.mark.parametrize("flag", FLAGS)
def test_positive_evidence_ranks_a_memory_before_its_equal(flag):
    assert rank(pair(lexical=[8, 8], **{flag: [True, False]})).order.tolist() == [0, 1]


@given(pools().filter(lambda pool: len(pool.seqs) > 0), st.data())
def test_the_only_holder_of_a_literal_comes_first(pool, data):
    place = data.draw(st.integers(0, len(pool.seqs) - 1))
    grades = np.zeros(len(pool.seqs), np.float32)
    grades[place] = 1
    # The fact that answers a question about the user may come before it.
    pool = dataclasses.replace(pool, literal=grades, answers_user=np.zeros(len(pool.seqs), np.bool_))
    assert rank(pool).order[0] == place


def test_an_empty_pool_has_an_empty_ranking():
    ranking = rank(evidence([]))
    assert ranking.order.tolist() == ranking.score.tolist() == []
    assert isinstance(ranking.evidence, Evidence)


def test_neighbor_position_is_found_or_minus_one():
    seqs = np.array([3, 5, 8])
    assert neighbor_positions(seqs, np.array([8, 0, 4, 5, 99])).tolist() == [2, -1, -1, 1, -1]
    assert neighbor_positions(seqs[:0], np.array([8])).tolist() == []


@given(st.lists(st.floats(0, 1, width=32)), st.data())
def test_values_are_taken_by_position_and_are_0_for_none(values, data):
    positions = data.draw(st.lists(st.integers(-1, len(values) - 1)))
    taken = take_at(np.array(values, np.float32), np.array(positions, np.int64))
    assert taken.tolist() == [values[position] if position >= 0 else 0 for position in positions]


@given(pools(), st.data())
def test_newest_of_equally_complete_statements_ranks_first(pool, data):
    states = data.draw(st.lists(st.booleans(), min_size=len(pool.seqs), max_size=len(pool.seqs)))
    ranking = rank(dataclasses.replace(pool, states=np.array(states, np.bool_)))
    told = [place for place in ranking.order.tolist() if states[place]]
    assert told == sorted(told, key=lambda place: (-pool.days[place], -pool.seqs[place]))
    before = rank(pool)
    for place, moved in enumerate(states):
        if not moved:
            assert ranking.score[place] == before.score[place]
    assert (ranking.score >= before.score - 1e-5).all()
    assert ranking.score.max(initial=0.0) == pytest.approx(before.score.max(initial=0.0), abs=1e-3)
