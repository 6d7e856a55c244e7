"""Write the access log: entries for writes at once, entries for reads within a second."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pipeline.kernel.errors import ReverieError
from pipeline.kernel.records import Page, page_of
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.people import AccessEntry, AccessQuery, People
from pipeline.kernel.times import utc_text

# Id of the data directory's owner in the log; no person has such an id.
OWNER = "(owner)"

KEPT = timedelta(days=90)
WRITTEN_WITHIN_S = 1.0
# Maximum number of pending entries before they are written.
MOST_HELD = 500
# Maximum number of entries to keep while the log cannot be written. The error log reports how many older ones are lost.
MOST_KEPT = 10_000
PRUNED_EVERY = timedelta(hours=1)


class AccessLog:
    """Log requests without delaying readers."""

    def __init__(self, people: People, operations: Operations) -> None:
        self._people = people
        self._operations = operations
        self._lock = threading.Lock()
        self._held: list[AccessEntry] = []
        # Locked while entries are written; entries that arrive then are in the next batch.
        self._writing = threading.Lock()
        self._noted = threading.Event()
        self._stopped = threading.Event()
        self._timer: threading.Thread | None = None
        self._pruned_at = datetime.min.replace(tzinfo=UTC)

    def note(self, entry: AccessEntry) -> None:
        """Log a request; it is written within a second."""
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
        """Log a request; return after it and all earlier ones are written."""
        with self._lock:
            self._held.append(entry)
        self.flush()

    def flush(self) -> None:
        """Write the pending entries; keep them if writing fails."""
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
        """List logged requests, the latest first."""
        self.flush()
        entries = self._people.list_accesses(query, limit + 1, before)
        return page_of(entries, limit, lambda entry: entry.seq)

    def close(self) -> None:
        """Write the pending entries and stop the thread."""
        self._stopped.set()
        self._noted.set()
        if self._timer is not None:
            self._timer.join()
        self.flush()

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
