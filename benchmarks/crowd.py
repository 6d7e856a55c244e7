"""Several clients at once, each a process of its own, so that no interpreter lock stands between them."""

import itertools
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier, Event
from typing import Any, Self

from benchmarks.corpus import memories
from benchmarks.figures import Latency, latency
from benchmarks.wire import Answer, Wire, post

START_S = 60.0
END_S = 600.0
# A batch every quarter of a second is more than two workers digest.
STREAM_BATCH = 50
STREAM_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class Crowd:
    """What several clients saw."""

    latency: Latency
    per_second: float
    failed: list[str]
    degraded: int


@dataclass(frozen=True, slots=True)
class Share:
    """What one client saw, its moments on the clock that all processes share."""

    began: float
    ended: float
    answers: list[Answer]


def crowd(port: int, requests: Sequence[Sequence[bytes]]) -> Crowd:
    """Let each client send its own requests, all starting at one moment."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(requests))
    with context.Pool(len(requests), _join, (barrier,)) as pool:
        shares: list[Share] = pool.starmap_async(_client, [(port, own) for own in requests], 1).get(END_S)
    answers = [answer for share in shares for answer in share.answers]
    seconds = max(share.ended for share in shares) - min(share.began for share in shares)
    return Crowd(
        latency([answer.took_ms for answer in answers]),
        round(len(answers) / seconds, 1),
        [f"{answer.status} {answer.body[:200]!r}" for answer in answers if not 200 <= answer.status < 300],
        count_degraded(answers),
    )


def count_degraded(answers: Sequence[Answer]) -> int:
    """Count the answers of which a channel was late or cold: they came fast, but they are not whole."""
    return sum(answer.json().get("degraded", False) for answer in answers if answer.status == 200)


_barrier: list[Barrier] = []


def _join(barrier: Barrier) -> None:
    _barrier.append(barrier)


def _client(port: int, requests: Sequence[bytes]) -> Share:
    with Wire(port) as wire:
        _barrier[0].wait(START_S)
        began = time.perf_counter()
        answers = wire.ask_all(requests)
        return Share(began, time.perf_counter(), answers)


class Stream:
    """Write batches of new memories from a process of its own for as long as the block lasts."""

    def __init__(self, port: int, token: str, seed: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._inbox, outbox = context.Pipe(duplex=False)
        self._process = context.Process(target=_write, args=(port, token, seed, self._stop, outbox), daemon=True)
        self.written = 0

    def __enter__(self) -> Self:
        self._process.start()
        # The first batch is on its way when this returns.
        self._inbox.recv()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self.written = self._inbox.recv()
        self._process.join()


def _write(port: int, token: str, seed: int, stop: Event, outbox: Any) -> None:
    corpus = memories(10_000_000, seed)
    written = 0
    with Wire(port) as wire:
        while not stop.wait(STREAM_EVERY_S if written else 0):
            items = list(itertools.islice(corpus, STREAM_BATCH))
            answer = wire.ask(post("/v1/memories/batch", {"items": items}, token))
            if answer.status != 200:
                raise ConnectionError(f"a batch was refused: {answer.status} {answer.body[:200]!r}")
            if not written:
                outbox.send(0)
            written += len(items)
    outbox.send(written)
