"""Read what the newest memories state before a query meets them, so that no answer waits for it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from pipeline.recall.announced_changes import announces_change
from pipeline.recall.channels import ErrorSink
from pipeline.records.recall import Step
from pipeline.store import memories
from pipeline.store.database import Database
from pipeline.text.similarity.stated_values import MAX_CACHED_TEXTS, find_stated_values

# Of the cache, so that one workspace does not push out what queries have met in another.
MOST_TEXTS = MAX_CACHED_TEXTS // 2
PAGE = 200
# A text takes a fraction of a millisecond. Between two texts, other threads have the interpreter to themselves.
PAUSE_S = 0.002


class ReadAhead:
    """A thread that reads the texts of workspaces, of each once, one workspace after the other."""

    def __init__(self) -> None:
        self._added: set[str] = set()
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")

    def add(self, workspace_id: str, database: Database, on_error: ErrorSink) -> None:
        """Read the texts of a workspace, unless that was done before."""
        if workspace_id not in self._added:
            self._added.add(workspace_id)
            self._threads.submit(self._read, database, on_error)

    def close(self) -> None:
        """Stop the thread."""
        self._stopping.set()
        self._threads.shutdown(cancel_futures=True)

    def _read(self, database: Database, on_error: ErrorSink) -> None:
        try:
            for text in _list_newest(database):
                if self._stopping.wait(PAUSE_S):
                    return
                find_stated_values(text)
                announces_change(text)
        except Exception as error:  # noqa: BLE001 - reported; queries read these texts themselves
            on_error(Step.CURRENCY, error)


def _list_newest(database: Database) -> Iterator[str]:
    before: int | None = None
    for _ in range(0, MOST_TEXTS, PAGE):
        with database.read() as db:
            texts = memories.list_newest_texts(db, PAGE, before)
        yield from texts.values()
        if not texts:
            return
        before = min(texts)
