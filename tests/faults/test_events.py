"""Kill the web server while it writes and streams events: a reader that continues gets each write exactly once."""

import contextlib
import http.client
import random
import threading
from collections import Counter

import pytest

from config.paths import CurrentToken, HomePaths
from pipeline.kernel.errors import AnswerLost, ReverieError
from tests.support.stack import Stack, wait_until
from web.features.changes.commands import EventFeed as Feed
from web.http.client import Client

pytestmark = pytest.mark.timeout(300)

ROUNDS = 3
WRITERS = 3
SEED = 20_271


class Writer(threading.Thread):
    """Write until told to stop; keep the ids of acknowledged memories."""

    def __init__(self, stack: Stack, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._client = stack.client()
        self._number = number
        self._halt = stop
        self.acknowledged: list[str] = []

    def run(self) -> None:
        with contextlib.closing(self._client):
            for number in range(100_000):
                if self._halt.is_set():
                    return
                body = {"content": f"Writer {self._number} noted number {number} about the harbour"}
                try:
                    reply = self._client.call("POST", "/v1/memories", body)
                except (OSError, http.client.HTTPException):
                    self._halt.wait(0.05)
                    continue
                if reply.status == 201 and reply.body["outcome"] == "created":
                    self.acknowledged.append(reply.body["id"])


class Reader(threading.Thread):
    """Read events until told to stop, and continue after every broken connection."""

    def __init__(self, client: Client, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.feed = Feed(client, "0", type="written")
        self._halt = stop
        self.seen: list[str] = []
        self.reset = 0

    def run(self) -> None:
        while not self._halt.is_set():
            with contextlib.suppress(ReverieError, AnswerLost):
                for event in self.feed.read():
                    self.reset += event["type"] == "reset"
                    self.seen.append(event.get("memory_id", ""))
            self._halt.wait(0.05)


def test_a_reader_gets_each_acknowledged_write_exactly_once(make_stack):
    stack = make_stack()
    stack.start("web")
    rng, stop, stop_reading = random.Random(SEED), threading.Event(), threading.Event()
    with Client(f"http://127.0.0.1:{stack.port}", CurrentToken(HomePaths(stack.home).token_file)) as client:
        writers = [Writer(stack, number, stop) for number in range(WRITERS)]
        reader = Reader(client, stop_reading)
        for thread in (*writers, reader):
            thread.start()
        for _ in range(ROUNDS):
            before = len(reader.seen)
            wait_until("the reader gets events", lambda before=before: len(reader.seen) > before + rng.randint(1, 20))
            stack.kill("web")
            stack.start("web")
        stop.set()
        for writer in writers:
            writer.join(60)
        acknowledged = {memory_id for writer in writers for memory_id in writer.acknowledged}
        wait_until("the reader has everything", lambda: acknowledged <= set(reader.seen))
        stop_reading.set()
        stack.kill("web")
        reader.join(60)
    assert len(acknowledged) > ROUNDS
    assert not reader.reset
    assert {memory_id: times for memory_id, times in Counter(reader.seen).items() if times > 1} == {}
