import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.kernel.records.recall import Answer, Channel, ChannelReport, ChannelState
from pipeline.recall.answer_cache import KEPT, AnswerCache

LONG = 60.0


def answer(state=ChannelState.OK, *, settled=True):
    return Answer((), {Channel.LEXICAL: ChannelReport(state, 1.0)}, 1.0, settled)


class Computation:
    """Something to compute that notes how often it was asked for, and can be held up."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.calls = 0
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self):
        self.calls += 1
        self.begun.set()
        assert self.go_on.wait(LONG)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.fixture
def cache():
    return AnswerCache()


def test_an_answer_is_computed_once(cache):
    compute = Computation(answer())
    assert cache.get("key", compute, LONG) is cache.get("key", compute, LONG) is compute.outcome
    assert compute.calls == 1


def test_another_key_is_another_answer(cache):
    """A key names the state of the workspace: what was true before a write is out of reach after it."""
    before, after = Computation(answer()), Computation(answer())
    assert cache.get((1, "port"), before, LONG) is before.outcome
    assert cache.get((2, "port"), after, LONG) is after.outcome


@pytest.mark.parametrize(
    "outcome",
    [
        answer(ChannelState.LATE),
        answer(ChannelState.COLD),
        answer(settled=False),
    ],
)
def test_incomplete_answer_is_not_cached(cache, outcome):
    compute = Computation(outcome)
    for _ in range(2):
        assert cache.get("key", compute, LONG) is outcome
    assert compute.calls == 2


def test_answers_with_a_disabled_channel_are_cached(cache):
    compute = Computation(answer(ChannelState.OFF))
    for _ in range(2):
        cache.get("key", compute, LONG)
    assert compute.calls == 1


def test_concurrent_equal_queries_share_a_computation(cache):
    compute = Computation(answer())
    compute.go_on.clear()
    others = Computation(answer())
    waiting = threading.Barrier(5)

    def wait():
        waiting.wait(LONG)
        return cache.get("key", others, LONG)

    with ThreadPoolExecutor(5) as pool:
        first = pool.submit(cache.get, "key", compute, LONG)
        assert compute.begun.wait(LONG)
        rest = [pool.submit(wait) for _ in range(4)]
        waiting.wait(LONG)
        # Nobody who asks something else is held up meanwhile.
        assert cache.get("other", Computation(answer()), LONG) is not None
        compute.go_on.set()
        assert {id(future.result(LONG)) for future in [first, *rest]} == {id(compute.outcome)}
    assert (compute.calls, others.calls) == (1, 0)


def test_query_waiting_too_long_computes_separately(cache):
    slow, own = Computation(answer()), Computation(answer())
    slow.go_on.clear()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(cache.get, "key", slow, LONG)
        assert slow.begun.wait(LONG)
        assert cache.get("key", own, 0.001) is own.outcome
        slow.go_on.set()


def test_a_failure_is_its_own_askers_alone(cache):
    failing, own = Computation(ValueError("odd")), Computation(answer())
    failing.go_on.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get, "key", failing, LONG)
        assert failing.begun.wait(LONG)
        second = pool.submit(cache.get, "key", own, LONG)
        failing.go_on.set()
        assert second.result(LONG) is own.outcome
        with pytest.raises(ValueError, match="odd"):
            first.result(LONG)
    third = Computation(answer())
    cache.get("key", third, LONG)
    cache.get("key", third, LONG)
    assert third.calls <= 1


def test_a_failure_leaves_the_key_free(cache):
    with pytest.raises(KeyError):
        cache.get("key", Computation(KeyError("x")), LONG)
    assert cache.get("key", Computation(answer()), LONG) is not None


def test_least_recently_used_answer_is_evicted_first(cache):
    computations = {key: Computation(answer()) for key in range(KEPT + 1)}
    for key in range(KEPT):
        cache.get(key, computations[key], LONG)
    cache.get(0, computations[0], LONG)
    cache.get(KEPT, computations[KEPT], LONG)
    for key in (0, KEPT, 1):
        cache.get(key, computations[key], LONG)
    assert [computations[key].calls for key in (0, KEPT, 1)] == [1, 1, 2]
