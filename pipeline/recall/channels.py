"""Run the channels in parallel under one deadline; a late channel is reported and left out."""

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline.kernel.errors import EncoderUnavailable
from pipeline.kernel.records.recall import Channel, ChannelReport, ChannelState, Step
from pipeline.kernel.times import elapsed_ms

# Parallel encoders compete for caches: on two cores, eight clients get twice as many answers with one thread per
# channel as with four.
THREADS_PER_CHANNEL = max(1, (os.cpu_count() or 1) // 2)

ErrorSink = Callable[[Channel | Step, Exception], None]


@dataclass(frozen=True, slots=True)
class ChannelResult:
    """A channel's report and, if it answered in time, its scores."""

    report: ChannelReport
    scores: Any = None


class ChannelPool:
    """Threads for each channel, so that a hanging channel does not block another."""

    def __init__(self) -> None:
        self._pools = {
            channel: ThreadPoolExecutor(THREADS_PER_CHANNEL, thread_name_prefix=channel)
            for channel in (Channel.LEXICAL, Channel.DENSE)
        }

    def run(
        self, searches: Mapping[Channel, Callable[[], Any]], deadline: float, on_error: ErrorSink
    ) -> dict[Channel, ChannelResult]:
        """Run searches until the deadline (time.perf_counter seconds); report index errors to `on_error`."""
        started = {channel: self._pools[channel].submit(_time_search, search) for channel, search in searches.items()}
        return {channel: _await(channel, future, deadline, on_error) for channel, future in started.items()}

    def close(self) -> None:
        """Stop the threads without waiting for a hanging search."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)


def _await(
    channel: Channel, future: "Future[tuple[float, Any]]", deadline: float, on_error: ErrorSink
) -> ChannelResult:
    began = time.perf_counter()
    try:
        took, scores = future.result(timeout=max(0.0, deadline - began))
    except TimeoutError:
        # Cancel searches that have not started; a running one finishes and warms the caches.
        if not future.cancel():
            future.add_done_callback(partial(_report_late, channel, on_error))
        return ChannelResult(ChannelReport(ChannelState.LATE, elapsed_ms(began)))
    except EncoderUnavailable:
        return ChannelResult(ChannelReport(ChannelState.COLD, elapsed_ms(began)))
    except Exception as error:  # noqa: BLE001 - an index error costs its channel, never the answer
        on_error(channel, error)
        return ChannelResult(ChannelReport(ChannelState.COLD, elapsed_ms(began)))
    return ChannelResult(ChannelReport(ChannelState.OK, took), scores)


def _report_late(channel: Channel, on_error: ErrorSink, future: "Future[tuple[float, Any]]") -> None:
    """Report a search that failed after the answer was sent without it."""
    error = future.exception()
    if isinstance(error, Exception) and not isinstance(error, EncoderUnavailable):
        on_error(channel, error)


def _time_search(search: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    scores = search()
    return elapsed_ms(began), scores
