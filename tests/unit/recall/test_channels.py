import threading
import time

import pytest

from pipeline.kernel.errors import EncoderUnavailable, IndexUnavailable, StoreBusy
from pipeline.kernel.records.recall import Channel, ChannelState
from pipeline.recall.channels import THREADS_PER_CHANNEL, ChannelPool

LONG = 60.0


@pytest.fixture
def pool():
    pool = ChannelPool()
    yield pool
    pool.close()


@pytest.fixture
def hanging():
    """A search that hangs until the test is over."""
    release = threading.Event()
    yield lambda: release.wait(LONG)
    release.set()


def run(pool, budget_s=LONG, **searches):
    errors = []
    found = pool.run(
        {Channel(name): search for name, search in searches.items()},
        time.perf_counter() + budget_s,
        lambda channel, error: errors.append((channel, error)),
    )
    return {channel: (item.report.state, item.scores) for channel, item in found.items()}, errors


def test_every_channel_that_answers_in_time_is_ok(pool):
    found, errors = run(pool, lexical=lambda: 1, dense=lambda: 2)
    assert found == {Channel.LEXICAL: (ChannelState.OK, 1), Channel.DENSE: (ChannelState.OK, 2)}
    assert errors == []


def test_one_that_hangs_is_late_and_the_other_answers(pool, hanging):
    done = threading.Event()
    found, errors = run(pool, 0.05, dense=hanging, lexical=lambda: done.set() or 1)
    assert done.wait(LONG)
    assert found[Channel.DENSE] == (ChannelState.LATE, None)
    assert errors == []
    found, _ = run(pool, lexical=lambda: 1)
    assert found[Channel.LEXICAL] == (ChannelState.OK, 1)


def test_channels_do_not_share_threads(pool, hanging):
    for _ in range(THREADS_PER_CHANNEL + 2):
        found, _ = run(pool, 0.001, dense=hanging)
        assert found[Channel.DENSE][0] is ChannelState.LATE
    found, _ = run(pool, lexical=lambda: 1)
    assert found[Channel.LEXICAL] == (ChannelState.OK, 1)


def test_expired_deadline_returns_immediately(pool, hanging):
    found, _ = run(pool, -1.0, lexical=hanging, dense=hanging)
    assert {state for state, _ in found.values()} == {ChannelState.LATE}


def raising(error):
    def search():
        raise error

    return search


@pytest.mark.parametrize("error", [IndexUnavailable("cut"), StoreBusy("held"), ValueError("odd"), KeyError("x")])
def test_a_broken_index_is_cold_and_reported(pool, error):
    found, errors = run(pool, lexical=raising(error), dense=lambda: 2)
    assert found == {Channel.LEXICAL: (ChannelState.COLD, None), Channel.DENSE: (ChannelState.OK, 2)}
    assert errors == [(Channel.LEXICAL, error)]


def test_an_encoder_that_is_not_there_yet_is_cold_and_no_error(pool):
    found, errors = run(pool, dense=raising(EncoderUnavailable("loading")))
    assert found[Channel.DENSE] == (ChannelState.COLD, None)
    assert errors == []
