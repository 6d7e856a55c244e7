"""Limit the processor time of reading an export."""

import time

from pipeline.ingest.fields import Readings
from pipeline.ingest.json_values import build_source_error

# An export of many small entries is read within a tenth of it.
_LEAST_SECONDS = 20
_SECONDS_PER_MEGABYTE = 30


def limit_time(readings: Readings, name: str, packed: int) -> Readings:
    """Yield the readings of a part; raise InvalidField if reading them takes more time than any export of its size.

    The time of the caller between two readings does not count.
    """
    seconds = _LEAST_SECONDS + _SECONDS_PER_MEGABYTE * packed / 1e6
    spent, began = 0.0, time.thread_time()
    for reading in readings:
        spent += time.thread_time() - began
        if spent > seconds:
            raise build_source_error(f"{name} takes more than {seconds:.0f} s to read, so it is no export")
        yield reading
        began = time.thread_time()
