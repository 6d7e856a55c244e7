"""Writers that store one text after the other beside each other, whatever happens to what stores it."""

import threading
from collections import Counter
from contextlib import contextmanager

from pipeline.kernel.store import memories
from tests.support.stack import wait_until

WRITERS = 4


class Writer(threading.Thread):
    """Store one text after the other; what was not acknowledged is sent again."""

    def __init__(self, number, store):
        super().__init__()
        self.name, self._store = f"writer {number}", store
        self.acknowledged, self.refused, self.failure = {}, 0, None
        self.ends = threading.Event()

    def run(self):
        try:
            while not self.ends.is_set():
                text = f"{self.name} notes number {len(self.acknowledged)}"
                memory_id = self._store(text)
                if memory_id is not None:
                    self.acknowledged[text] = memory_id
                    continue
                self.refused += 1
                self.ends.wait(0.05)
        except BaseException as error:
            self.failure = error
            raise


class Writers(list):
    """Several of them, of whom none may fail."""

    def get_on(self):
        before = [len(writer.acknowledged) for writer in self]
        wait_until(
            "every writer is heard",
            lambda: all(len(writer.acknowledged) > known + 3 for writer, known in zip(self, before, strict=True)),
        )

    def are_refused(self):
        before = [writer.refused for writer in self]
        wait_until(
            "every writer is refused",
            lambda: all(writer.refused > known for writer, known in zip(self, before, strict=True)),
        )

    def stop(self):
        for writer in self:
            writer.ends.set()
        for writer in self:
            writer.join()

    @classmethod
    @contextmanager
    def writing(cls, store):
        writers = cls(Writer(number, store) for number in range(WRITERS))
        for writer in writers:
            writer.start()
        try:
            yield writers
        finally:
            writers.stop()
        assert [writer.failure for writer in writers] == [None] * WRITERS

    def check(self, stored):
        """Hold that everything that was acknowledged is stored, and nothing twice."""
        acknowledged = {memory_id: text for writer in self for text, memory_id in writer.acknowledged.items()}
        assert {one: stored.get(one) for one in acknowledged} == acknowledged
        assert [text for text, times in Counter(stored.values()).items() if times > 1] == []


def fetch_all(database):
    with database.read() as db:
        return {memory.id: memory.content for memory in memories.by_seqs(db, memories.all_seqs(db)).values()}
