"""The hybrid logical clock that stamps operations (Kulkarni et al., "Logical Physical Clocks", 2014).

A stamp is `<physical ms>-<counter>-<node>` in fixed width, so that text order is clock order. The clock never goes
back: a sent stamp is later than all stamps sent or received before, even if the wall clock goes back.
"""

import re
import time
from sqlite3 import Connection

from pipeline.kernel.errors import ClockAhead
from pipeline.kernel.store import meta

# Two machines may each be wrong by a day. A machine with a clock further ahead would win every conflict until then.
MAX_DRIFT_MS = 2 * 24 * 3600 * 1000
_MAX_COUNTER = 999_999
_STAMP = re.compile(r"(\d{14})-(\d{6})-([0-9a-f]{8,16})")


def wall_ms() -> int:
    """Return the wall clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def parse(stamp: str) -> tuple[int, int, str]:
    """Parse a stamp to (physical ms, counter, node); raise ValueError for other text."""
    match = _STAMP.fullmatch(stamp)
    if match is None:
        raise ValueError("not a stamp of a hybrid logical clock")
    return int(match[1]), int(match[2]), match[3]


def stamp(physical_ms: int, node: str) -> str:
    """Return the first stamp of a node at a time."""
    return f"{physical_ms:014d}-000000-{node}"


def with_node(stamp: str, node: str) -> str:
    """Return the same time with another node."""
    return f"{stamp[:22]}{node}"


def send(db: Connection, count: int, now_ms: int) -> list[str]:
    """Return the next stamps, each later than all stamps before."""
    physical, counter = max((now_ms, -1), _last(db))
    node, stamps = meta.get(db, meta.NODE), []
    for _ in range(count):
        physical, counter = (physical, counter + 1) if counter < _MAX_COUNTER else (physical + 1, 0)
        stamps.append(f"{physical:014d}-{counter:06d}-{node}")
    if stamps:
        meta.put(db, meta.CLOCK, stamps[-1][:21])
    return stamps


def receive(db: Connection, stamp: str) -> None:
    """Make all future stamps later than a stamp from another machine."""
    physical, counter, _ = parse(stamp)
    if (physical, counter) > _last(db):
        meta.put(db, meta.CLOCK, stamp[:21])


def check_drift(stamp: str, now_ms: int) -> None:
    """Raise ClockAhead for a stamp further in the future than the allowed clock difference."""
    ahead_ms = parse(stamp)[0] - now_ms
    if ahead_ms > MAX_DRIFT_MS:
        raise ClockAhead(f"its clock is {ahead_ms / 3_600_000:.0f} hours ahead of ours")


def _last(db: Connection) -> tuple[int, int]:
    known = meta.get(db, meta.CLOCK)
    return (0, -1) if known is None else (int(known[:14]), int(known[15:]))
