"""When a day began and the nightly jobs were due, by clocks that change."""

from datetime import UTC, datetime

import pytest

from pipeline.kernel.feature import NIGHTLY
from pipeline.kernel.times import local_day_start


def at(day: str, hour: int) -> datetime:
    return datetime.fromisoformat(f"{day}T{hour:02}:30:00").replace(tzinfo=UTC)


@pytest.mark.usefixtures("central_europe")
@pytest.mark.parametrize(
    ("now", "midnight", "nightly"),
    [
        (at("2026-01-15", 12), "2026-01-14T23:00", "2026-01-15T02:00"),
        (at("2026-07-15", 12), "2026-07-14T22:00", "2026-07-15T01:00"),
        # Clocks go forward at two and back at three.
        (at("2026-03-29", 12), "2026-03-28T23:00", "2026-03-29T01:00"),
        (at("2026-03-29", 0), "2026-03-28T23:00", "2026-03-28T02:00"),
        (at("2026-10-25", 12), "2026-10-24T22:00", "2026-10-25T02:00"),
        (at("2026-10-25", 1), "2026-10-24T22:00", "2026-10-24T01:00"),
    ],
)
def test_day_and_nightly_starts_follow_local_time_across_clock_changes(now, midnight, nightly):
    assert local_day_start(now.astimezone().date()) == datetime.fromisoformat(f"{midnight}+00:00")
    assert NIGHTLY.last_before(now) == datetime.fromisoformat(f"{nightly}+00:00")
