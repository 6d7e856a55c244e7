import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.recall.query import Channel
from pipeline.recall.rank import ChannelScores, Pool, channel_scores, rank

CHANNELS = (Channel.LEXICAL, Channel.DENSE)


@st.composite
def pools(draw):
    count = draw(st.integers(0, 12))
    seqs = draw(st.lists(st.integers(1, 99), min_size=count, max_size=count, unique=True))

    def floats(low, high):
        return np.array(draw(st.lists(st.floats(low, high), min_size=count, max_size=count)), np.float64)

    sessions = draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count))
    positions = draw(st.permutations(range(count)))
    channels = {}
    for channel in draw(st.sets(st.sampled_from(CHANNELS))):
        raw = floats(0, 1)
        top = sorted(zip(seqs, raw.tolist(), strict=True), key=lambda pair: -pair[1])[: draw(st.integers(0, count))]
        channels[channel] = channel_scores(top, 0.0, 0.5, np.array(seqs, np.int64), raw)
    return Pool(
        np.array(seqs, np.int64),
        np.array(sessions, np.int64),
        np.array(positions, np.int64),
        floats(0, 1),
        floats(0, 20_000),
        channels,
        floats(0, 1),
    )


def shuffled(pool, order):
    places = np.array(order, np.int64)
    channels = {c: ChannelScores(s.raw[places], s.ranks[places], s.floor, s.ceiling) for c, s in pool.channels.items()}
    parts = (pool.seqs, pool.sessions, pool.positions, pool.importance, pool.days)
    return Pool(*(part[places] for part in parts), channels, pool.coverage[places])


@given(pools())
def test_the_explained_parts_add_up_to_the_score(pool):
    ranking = rank(pool)
    for place in range(len(pool.seqs)):
        signals = ranking.signals(place)
        parts = [signals.neighbours, signals.session, signals.importance, signals.recency]
        parts += [channel.contribution for channel in signals.channels.values()]
        assert sum(parts) == pytest.approx(float(ranking.score[place]), abs=1e-9)
        assert all(np.isfinite(parts))


@given(pools(), st.randoms())
def test_the_order_depends_on_the_memories_and_not_on_how_they_came(pool, random):
    order = list(range(len(pool.seqs)))
    random.shuffle(order)
    other = shuffled(pool, order)
    one, two = rank(pool), rank(other)
    assert pool.seqs[one.order].tolist() == other.seqs[two.order].tolist()
    assert one.score[one.order].tolist() == two.score[two.order].tolist()


@given(pools())
def test_best_first_and_newer_first_among_equals(pool):
    ranking = rank(pool)
    placed = [(-float(ranking.score[place]), -int(pool.seqs[place])) for place in ranking.order]
    assert placed == sorted(placed)
    assert sorted(ranking.order.tolist()) == list(range(len(pool.seqs)))


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 20_000), st.sets(st.sampled_from(CHANNELS), min_size=1))
def test_no_importance_and_no_recency_lifts_what_matches_nothing_over_the_best_match(low, high, age, channels):
    seqs = np.array([1, 2], np.int64)
    scores = {c: channel_scores([(1, 0.9)], 0.0, 0.5, seqs, np.array([0.9, 0.0])) for c in channels}
    apart = np.array([-1, -1], np.int64)
    pool = Pool(seqs, apart, np.zeros(2, np.int64), np.array([low, high]), np.array([0.0, age]), scores, np.zeros(2))
    assert rank(pool).order.tolist() == [0, 1]


def two_matches_and_a_neighbour(distance):
    """Memories 1 (match) and 2 in one session, 3 (no match) alone."""
    seqs = np.array([1, 2, 3], np.int64)
    raw = np.array([1.0, 0.0, 0.0])
    scores = {Channel.LEXICAL: channel_scores([(1, 1.0)], 0.0, 0.5, seqs, raw)}
    sessions, positions = np.array([0, 0, -1], np.int64), np.array([5, 5 + distance, 0], np.int64)
    return Pool(seqs, sessions, positions, np.full(3, 0.5), np.zeros(3), scores, np.zeros(3))


def test_what_stands_beside_a_match_is_lifted_the_more_the_nearer():
    lifts = [float(rank(two_matches_and_a_neighbour(d)).neighbours[1]) for d in (1, 2, 3, -1)]
    assert lifts[0] > lifts[1] > lifts[2] == 0
    assert lifts[3] == lifts[0]


def test_a_session_is_lifted_by_its_best_and_nothing_else_is():
    session = rank(two_matches_and_a_neighbour(50)).session.tolist()
    assert session[0] == session[1] > 0
    assert session[2] == 0


def test_an_empty_pool_has_an_empty_ranking():
    empty = np.zeros(0)
    none = np.zeros(0, np.int64)
    assert rank(Pool(none, none, none, empty, empty, {}, empty)).order.tolist() == []


def test_the_nearest_of_strangers_does_not_outweigh_the_only_memory_with_the_very_words():
    seqs = np.array([1, 2], np.int64)
    scores = {
        Channel.LEXICAL: channel_scores([(1, 4.0)], 0.0, 2.0, seqs, np.array([4.0, 0.0])),
        Channel.DENSE: channel_scores([(2, 0.2), (1, 0.1)], 0.1, 0.6, seqs, np.array([0.1, 0.2])),
    }
    apart = np.array([-1, -1], np.int64)
    pool = Pool(seqs, apart, np.zeros(2, np.int64), np.array([0.0, 1.0]), np.zeros(2), scores, np.zeros(2))
    assert rank(pool).order.tolist() == [0, 1]
