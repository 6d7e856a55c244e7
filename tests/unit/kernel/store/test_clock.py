import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.errors import ClockAhead
from pipeline.kernel.store import clock
from tests.fakes.in_process import scratch_database
from tests.fakes.properties import opens_stores

moments = st.integers(0, 10**13)


@opens_stores
@given(st.lists(st.tuples(moments, st.integers(1, 5), st.none() | moments), min_size=1, max_size=12))
def test_hybrid_clock_never_goes_back(steps):
    with scratch_database() as database, database.write() as db:
        seen = []
        for now, count, heard in steps:
            if heard is not None:
                stamp = f"{heard:014d}-000007-{'ab' * 4}"
                clock.receive(db, stamp)
                seen.append(stamp)
            stamps = clock.send(db, count, now)
            assert len(stamps) == count
            assert sorted(set(stamps)) == stamps
            assert all(stamps[0][:21] > earlier[:21] for earlier in seen)
            seen += stamps


def test_a_full_counter_is_carried_over():
    with scratch_database() as database, database.write() as db:
        clock.receive(db, f"{500:014d}-999999-{'ab' * 4}")
        assert clock.parse(clock.send(db, 1, 0)[0])[:2] == (501, 0)


def test_stamp_too_far_ahead_is_rejected():
    now = 10**12
    clock.check_drift(f"{now + clock.MAX_DRIFT_MS:014d}-000000-{'ab' * 4}", now)
    with pytest.raises(ClockAhead, match="48 hours ahead"):
        clock.check_drift(f"{now + clock.MAX_DRIFT_MS + 1000:014d}-000000-{'ab' * 4}", now)


@pytest.mark.parametrize("text", ["", "1-2-3", "x" * 38, f"{1:014d}-{1:06d}-UPPER123", f"{1:014d}-{1:06d}-ab"])
def test_invalid_clock_stamp_is_rejected(text):
    with pytest.raises(ValueError, match="hybrid logical clock"):
        clock.parse(text)
