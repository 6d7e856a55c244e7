import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.store import changes
from tests.fakes.in_process import scratch_database
from tests.fakes.properties import opens_stores

START_MS = 1_800_000_000_000


@opens_stores
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


def test_changes_of_a_time_are_listed_the_last_first(monkeypatch):
    def at(wall_ms, op, *memory_ids):
        monkeypatch.setattr(changes.time, "time_ns", lambda: wall_ms * 1_000_000)
        with database.write() as db:
            changes.append(db, op, memory_ids)

    since = datetime.fromtimestamp(START_MS / 1000, UTC)
    ops = [changes.CREATE, changes.EDIT]

    def read(first, last, limit=9):
        with database.read() as db:
            return [(each.op, each.memory_id) for _, each in changes.list_between(db, first, last, ops, [], limit)]

    with scratch_database() as database:
        assert read(since, since + timedelta(days=1)) == []
        at(START_MS - 1, changes.CREATE, "before")
        at(START_MS, changes.CREATE, "a", "b")
        at(START_MS + 1500, changes.FADE, "a", "b")
        at(START_MS + 2000, changes.EDIT, "a")
        assert read(since, since + timedelta(seconds=3)) == [("edit", "a"), ("create", "b"), ("create", "a")]
        assert read(since, since + timedelta(seconds=3), limit=1) == [("edit", "a")]
        # The end is exclusive.
        assert read(since, since + timedelta(seconds=2)) == [("create", "b"), ("create", "a")]
        assert read(since - timedelta(days=1), since) == [("create", "before")]
        assert read(since + timedelta(days=1), since + timedelta(days=2)) == []
        with database.read() as db:
            ((written_at, _),) = changes.list_between(db, since, since + timedelta(days=1), [changes.EDIT], [], 9)
        assert written_at == since + timedelta(seconds=2)
