"""Run the channels side by side under one deadline; who is late is reported late and left out."""

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline.errors import EncoderUnavailable
from pipeline.records.recall import Channel, ChannelReport, ChannelState
from pipeline.times import elapsed_ms

# Encoders that run side by side fight for caches: on two cores, eight clients get twice as many answers from one
# thread a channel as from four.
THREADS_PER_CHANNEL = max(1, (os.cpu_count() or 1) // 2)

ErrorSink = Callable[[Channel, Exception], None]


@dataclass(frozen=True, slots=True)
class ChannelResult:
    """A channel's report and, where it answered in time, its scores."""

    report: ChannelReport
    scores: Any = None


class ChannelPool:
    """Keep threads for each channel, so that one that hangs cannot hold up another."""

    def __init__(self) -> None:
        self._pools = {
            channel: ThreadPoolExecutor(THREADS_PER_CHANNEL, thread_name_prefix=channel)
            for channel in (Channel.LEXICAL, Channel.DENSE)
        }

    def run(
        self, searches: Mapping[Channel, Callable[[], Any]], deadline: float, on_error: ErrorSink
    ) -> dict[Channel, ChannelResult]:
        """Run searches until the deadline (time.perf_counter seconds); errors of an index go to the sink."""
        started = {channel: self._pools[channel].submit(_time_search, search) for channel, search in searches.items()}
        return {channel: _await(channel, future, deadline, on_error) for channel, future in started.items()}

    def close(self) -> None:
        """End the threads without waiting for a search that hangs."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)


def _await(
    channel: Channel, future: "Future[tuple[float, Any]]", deadline: float, on_error: ErrorSink
) -> ChannelResult:
    began = time.perf_counter()
    try:
        took, scores = future.result(timeout=max(0.0, deadline - began))
    except TimeoutError:
        # A search that has not begun need not begin; one that runs ends by itself and warms the next.
        if not future.cancel():
            future.add_done_callback(partial(_report_late, channel, on_error))
        return ChannelResult(ChannelReport(ChannelState.LATE, elapsed_ms(began)))
    except EncoderUnavailable:
        return ChannelResult(ChannelReport(ChannelState.COLD, elapsed_ms(began)))
    except Exception as error:  # noqa: BLE001 - whatever an index raises costs its channel, never the answer
        on_error(channel, error)
        return ChannelResult(ChannelReport(ChannelState.COLD, elapsed_ms(began)))
    return ChannelResult(ChannelReport(ChannelState.OK, took), scores)


def _report_late(channel: Channel, on_error: ErrorSink, future: "Future[tuple[float, Any]]") -> None:
    """Tell of a search that failed after its answer had gone without it."""
    error = future.exception()
    if isinstance(error, Exception) and not isinstance(error, EncoderUnavailable):
        on_error(channel, error)


def _time_search(search: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    scores = search()
    return elapsed_ms(began), scores
