import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from pipeline.store import changes
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


def test_what_was_done_since_a_moment_is_counted_and_listed_the_last_first(monkeypatch):
    def at(wall_ms, op, *memory_ids):
        monkeypatch.setattr(changes.time, "time_ns", lambda: wall_ms * 1_000_000)
        with database.write() as db:
            changes.append(db, op, memory_ids)

    with scratch_database() as database:
        at(START_MS - 1, changes.CREATE, "before")
        at(START_MS, changes.CREATE, "a", "b")
        at(START_MS + 1500, changes.FADE, "a", "b")
        at(START_MS + 2000, changes.EDIT, "a")
        since = datetime.fromtimestamp(START_MS / 1000, UTC)
        with database.read() as db:
            assert changes.tally_since(db, since) == {changes.CREATE: 2, changes.EDIT: 1}
            assert changes.tally_since(db, since + timedelta(days=1)) == {}
            found = changes.list_latest_changes(db, since, [changes.CREATE, changes.EDIT, changes.FADE], 3)
            assert [(one.op, one.memory_id) for _, one in found] == [("edit", "a"), ("fade", "b"), ("fade", "a")]
            assert found[0][0] == since + timedelta(seconds=2)
            [(at_first, first), _] = changes.list_latest_changes(db, since, [changes.CREATE], 9)
            assert (at_first, first.memory_id) == (since, "b")


def test_the_changes_since_a_time_before_the_first_and_after_the_last_change(monkeypatch):
    with scratch_database() as database:
        monkeypatch.setattr(changes.time, "time_ns", lambda: START_MS * 1_000_000)
        with database.write() as db:
            changes.append(db, changes.CREATE, ["a", "b"])
        written_at = datetime.fromtimestamp(START_MS / 1000, UTC)
        with database.read() as db:
            for late_ms, tally in ((-1000, {"create": 2}), (0, {"create": 2}), (1000, {})):
                assert changes.tally_since(db, written_at + timedelta(milliseconds=late_ms)) == tally
