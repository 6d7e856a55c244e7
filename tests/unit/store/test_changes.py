import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.store import changes
from tests.fakes.house import scratch_database

START_MS = 1_800_000_000_000


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(-10_000, 10_000), st.integers(1, 5)), min_size=1, max_size=20))
def test_stamps_grow_strictly_also_when_the_wall_clock_goes_back(ticks):
    with scratch_database() as database, pytest.MonkeyPatch.context() as patch:
        wall = START_MS
        for step, count in ticks:
            wall += step
            patch.setattr(changes.time, "time_ns", lambda now=wall: now * 1_000_000)
            with database.write() as db:
                first = changes.append(db, changes.EDIT, [f"memory-{n}" for n in range(count)])
                last = changes.generation(db)
            assert last == first + count - 1
        with database.read() as db:
            stamps = [row[0] for row in db.execute("SELECT hlc FROM change ORDER BY seq")]
    assert len(stamps) == sum(count for _, count in ticks)
    assert all(a < b for a, b in itertools.pairwise(stamps))


def test_a_stamp_keeps_pace_with_the_wall_clock(monkeypatch):
    with scratch_database() as database:
        for wall in (START_MS, START_MS + 5):
            monkeypatch.setattr(changes.time, "time_ns", lambda now=wall: now * 1_000_000)
            with database.write() as db:
                changes.append(db, changes.CREATE, ["m"])
                stamp = db.execute("SELECT hlc FROM change ORDER BY seq DESC LIMIT 1").fetchone()[0]
            assert stamp.startswith(f"{wall:014d}-000000-")


def test_an_empty_log_has_generation_nought():
    with scratch_database() as database, database.read() as db:
        assert changes.generation(db) == 0
