"""The access log as it is written: what people write at once, what they read within a second."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from ulid import ULID

from pipeline.errors import ReverieError
from pipeline.records import Page, page_of
from pipeline.store.access_log import AccessEntry, AccessQuery
from pipeline.store.operations import Operations
from pipeline.store.people import People
from pipeline.times import utc_now, utc_text

# As whom the owner of the data directory is noted; no person has such an id.
OWNER = "(owner)"

KEPT = timedelta(days=90)
WRITTEN_WITHIN_S = 1.0
# Maximum number of entries that wait to be written.
MOST_HELD = 500
# While the log cannot be written, so many are kept for when it can be; the error log tells of older ones that are lost.
MOST_KEPT = 10_000
PRUNED_EVERY = timedelta(hours=1)


def note_command(people: People, command: str, workspace_id: str | None = None) -> None:
    """Note a command of the owner that changed who may enter the data directory, and return once it is written."""
    people.add_accesses([AccessEntry(utc_now(), str(ULID()), OWNER, None, workspace_id, command, HTTPStatus.OK)])


class AccessLog:
    """Note what people ask, without keeping a reader waiting; `people` has a connection of this log's own."""

    def __init__(self, people: People, operations: Operations) -> None:
        self._people = people
        self._operations = operations
        self._lock = threading.Lock()
        self._held: list[AccessEntry] = []
        # Held while entries are written: whoever comes meanwhile finds theirs among the next.
        self._writing = threading.Lock()
        self._noted = threading.Event()
        self._stopped = threading.Event()
        self._timer: threading.Thread | None = None
        self._pruned_at = datetime.min.replace(tzinfo=UTC)

    def note(self, entry: AccessEntry) -> None:
        """Note a request; it is written within a second."""
        with self._lock:
            self._held.append(entry)
            is_much = len(self._held) >= MOST_HELD
            if self._timer is None:
                self._timer = threading.Thread(target=self._write_now_and_then, name="access-log", daemon=True)
                self._timer.start()
        if is_much:
            self.flush()
        else:
            self._noted.set()

    def write(self, entry: AccessEntry) -> None:
        """Note a request and return once it is written, with all that was noted before."""
        with self._lock:
            self._held.append(entry)
        self.flush()

    def flush(self) -> None:
        """Write what was noted; what cannot be written is kept for the next time."""
        with self._writing:
            with self._lock:
                taken, self._held = self._held, []
            if not taken:
                return
            try:
                self._people.add_accesses(taken)
                self._prune()
            except ReverieError as error:
                self._put_back(taken, error)

    def page(self, query: AccessQuery, limit: int, before: int | None) -> Page[AccessEntry]:
        """List what people asked, the latest first."""
        self.flush()
        entries = self._people.list_accesses(query, limit + 1, before)
        return page_of(entries, limit, lambda entry: entry.seq)

    def close(self) -> None:
        """Write what is left and end the thread."""
        self._stopped.set()
        self._noted.set()
        if self._timer is not None:
            self._timer.join()
        self.flush()
        self._people.close()

    def _write_now_and_then(self) -> None:
        while not self._stopped.is_set():
            self._noted.wait()
            self._stopped.wait(WRITTEN_WITHIN_S)
            self._noted.clear()
            self.flush()

    def _prune(self) -> None:
        now = datetime.now(UTC)
        if now - self._pruned_at >= PRUNED_EVERY:
            self._people.prune_accesses(utc_text(now - KEPT))
            self._pruned_at = now

    def _put_back(self, taken: Sequence[AccessEntry], error: ReverieError) -> None:
        with self._lock:
            held = [*taken, *self._held]
            self._held = held[-MOST_KEPT:]
        lost = len(held) - len(self._held)
        says = f"{lost} entries are lost: " if lost else ""
        self._operations.record_error("access-log", f"{says}{error}")
