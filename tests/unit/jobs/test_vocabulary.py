"""A workspace's own words: what stands everywhere, what belongs together, and of nobody's own memories."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.jobs import vocabulary as module
from pipeline.jobs.vocabulary import LEAST_MEMORIES, LEAST_PMI, LEAST_TOGETHER, bridges, stop_words, vocabulary
from pipeline.records import Scope, ScopeKind
from pipeline.store import vocabulary as store
from pipeline.store.vocabulary import Bridge, StopWord
from pipeline.write.revise import purge
from tests.fakes.house import scratch_database
from tests.fakes.nights import Killed, after, night_of, write

DAY = 100
ADA = Scope(ScopeKind.AGENT, "ada")
OLD = [StopWord("before", 0.5)], [Bridge("a", "b", 2.5)]


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(module, "PAGE", 7)


def words(number):
    """Words that stand in no other memory."""
    return f"alpha{number}x beta{number}x gamma{number}x"


def fill(database, count=60, **fields):
    """Reverie stands everywhere; a heron is told of right after each otter, the two never in one memory."""
    ids = []
    for number in range(count):
        session = f"s{number}"
        ids.append(write(database, number, f"Reverie otter {words(number)}", session_id=session, **fields))
        ids.append(write(database, number + 0.1, f"Reverie heron {words(-number)}", session_id=session, **fields))
        ids.append(write(database, number + 0.2, f"Reverie {words(number + 1000)}", **fields))
    return ids


def learned(database):
    with database.read() as db:
        return store.stop_words(db), store.bridges(db)


def remember(database, known):
    with database.write() as db:
        store.replace(db, *known)


def test_what_stands_everywhere_is_learned(database, monkeypatch):
    monkeypatch.setattr(module, "STOP_SHARE", 0.5)
    fill(database)
    report = vocabulary(night_of(database, DAY))
    # Among so many windows with a heron, one with an otter is no wonder.
    assert learned(database) == ([StopWord("reveri", 1.0)], [])
    assert report.counts == {"memories": 180, "stop_words": 1, "bridges": 0}


def test_a_bridge_says_how_much_two_words_have_in_common(database):
    fill(database, 10)
    for number in range(200):
        write(database, number, f"Something else {words(number + 5000)}")
    vocabulary(night_of(database, DAY))
    [bridge] = [pair for pair in learned(database)[1] if {"heron", "otter"} <= set(pair)]
    # 230 windows; 10 hold an otter, 20 a heron, 10 both.
    assert bridge == Bridge("heron", "otter", round(float(np.log2(10 * 230 / (10 * 20))), 3))


def test_what_is_owned_teaches_nothing(database):
    fill(database, 20, scope=ADA)
    report = vocabulary(night_of(database, DAY))
    assert report.counts["memories"] == 0
    assert learned(database) == ([], [])


def test_a_small_workspace_has_no_stop_words():
    assert stop_words(Counter(reverie=LEAST_MEMORIES - 1), LEAST_MEMORIES - 1) == []
    assert stop_words(Counter(reverie=LEAST_MEMORIES), LEAST_MEMORIES) == [StopWord("reverie", 1.0)]


def test_only_the_newest_memories_are_looked_at(database, monkeypatch, small_pieces):
    fill(database, 10)
    monkeypatch.setattr(module, "NEWEST", 12)
    assert vocabulary(night_of(database, DAY)).counts["memories"] == 12


def test_a_second_night_learns_the_same_and_forgets_what_was(database):
    fill(database, 10)
    remember(database, OLD)
    vocabulary(night_of(database, DAY))
    once = learned(database)
    vocabulary(night_of(database, DAY + 1))
    assert learned(database) == once
    assert not set(OLD[1]) & set(once[1])


@pytest.mark.parametrize("calls", [0, 1, 3, 5, 7])
def test_a_paused_run_leaves_what_was_and_comes_to_the_same_end(database, small_pieces, calls):
    fill(database, 10)
    vocabulary(night_of(database, DAY))
    undisturbed = learned(database)
    remember(database, OLD)
    assert vocabulary(night_of(database, DAY, pausing=after(calls))).more
    assert learned(database) == OLD
    assert not vocabulary(night_of(database, DAY)).more
    assert learned(database) == undisturbed


def test_a_killed_run_leaves_what_was(database, monkeypatch):
    fill(database, 10)
    remember(database, OLD)

    def killed(db, *_found):
        store.purge(db)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(module.store, "replace", killed)
        with pytest.raises(Killed):
            vocabulary(night_of(database, DAY))
    assert learned(database) == OLD


def test_what_is_purged_meanwhile_teaches_nothing(database, monkeypatch):
    ids = fill(database, 10)
    found = module.bridges

    def purged_meanwhile(*args):
        purge(database, ids[0])
        return found(*args)

    with monkeypatch.context() as patch:
        patch.setattr(module, "bridges", purged_meanwhile)
        assert vocabulary(night_of(database, DAY)).more
    assert learned(database) == ([], [])
    assert vocabulary(night_of(database, DAY)).counts["memories"] == 29


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=120))
def test_bridges_are_pairs_that_stand_together_more_than_chance(windows):
    names = ["f", "a", "e", "b", "d", "c"]
    together = np.zeros((6, 6), np.uint32)
    for held in windows:
        places = sorted(set(held))
        together[np.ix_(places, places)] += 1
    pairs = [(one.word, one.other) for one in bridges(names, together, len(windows))]
    expected = {
        tuple(sorted((names[i], names[j])))
        for i in range(6)
        for j in range(i)
        if (both := sum({i, j} <= set(w) for w in windows)) >= LEAST_TOGETHER
        and np.log2(both * len(windows) / sum(i in w for w in windows) / sum(j in w for w in windows)) >= LEAST_PMI
    }
    assert set(pairs) == expected
    assert len(pairs) == len(expected)


def test_of_too_many_bridges_those_stay_that_tell_most(monkeypatch):
    monkeypatch.setattr(module, "MOST_BRIDGES", 1)
    together = np.diag([20, 20, 5, 5]).astype(np.uint32)
    for first, second, count in ((0, 1, 20), (2, 3, 5)):
        together[first, second] = together[second, first] = count
    assert [(one.word, one.other) for one in bridges(["a", "b", "c", "d"], together, 1000)] == [("a", "b")]
