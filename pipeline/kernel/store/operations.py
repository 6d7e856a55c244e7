"""The operations journal of a data directory: background errors and running workers. It may be deleted."""

import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.lru import LruCache
from pipeline.kernel.store.database import HomeTables
from pipeline.kernel.store.rows import DELETE, Table

KEPT_ERRORS = 2000
KEPT_CHARS = 4000
# Maximum number of errors that a process remembers to log once; the oldest may be logged again.
MAX_LOGGED_ONCE = 256


@dataclass(frozen=True, slots=True)
class LoggedError:
    """A background error, and the time of its repair."""

    seq: int
    at: float
    workspace: str | None
    component: str
    message: str
    repaired_at: float | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process and its last report."""

    owner: str
    started_at: float
    seen_at: float


class Operations:
    """Record and read background errors and workers."""

    def __init__(self, tables: HomeTables, redact: Callable[[str], str]) -> None:
        self.tables = tables
        self.redact = redact
        self._logged: LruCache[tuple[str, str], float] = LruCache(MAX_LOGGED_ONCE)

    def record_error(self, component: str, message: str, *, workspace: str | None = None) -> None:
        """Log an error, redacted and shortened; if that fails, print it, except in an encrypted data directory."""
        text = self.redact(message)[:KEPT_CHARS]
        try:
            with self.tables.write() as db:
                db.execute(
                    "INSERT INTO error (at, workspace, component, message) VALUES (?, ?, ?, ?)",
                    (time.time(), workspace, component, text),
                )
                db.execute("DELETE FROM error WHERE seq <= (SELECT max(seq) FROM error) - ?", (KEPT_ERRORS,))
        except (sqlite3.Error, StoreUnavailable, OSError) as error:
            shown = "an error" if self.tables.is_encrypted else text
            print(f"{component}: {shown} (not logged: {error})", file=sys.stderr)  # noqa: T201 - the last resort

    def record_error_once(self, component: str, message: str) -> None:
        """Log an error that this process has not logged lately, because its cause repeats it."""
        self._logged.get((component, message), lambda _at: True, lambda: self._record_now(component, message))

    def _record_now(self, component: str, message: str) -> float:
        self.record_error(component, message)
        return time.time()

    def mark_repaired(self, components: Sequence[str], *, workspace: str | None, before: float) -> None:
        """Mark errors of a workspace (or of none) before a time as repaired."""
        names = ", ".join("?" * len(components))
        broken = f"workspace IS NOT DISTINCT FROM ? AND component IN ({names}) AND at < ? AND repaired_at IS NULL"
        values = (workspace, *components, before)
        with self.tables.write() as db:
            # Usually there is nothing to mark, and then no lock is needed.
            if db.execute(f"SELECT 1 FROM error WHERE {broken} LIMIT 1", values).fetchone():  # noqa: S608 - constant but for its places
                db.execute(f"UPDATE error SET repaired_at = ? WHERE {broken}", (time.time(), *values))  # noqa: S608 - ditto

    def errors(
        self, *, workspace: str | None, limit: int, before: int | None = None, open_only: bool = False
    ) -> list[LoggedError]:
        """List a workspace's errors and general errors, newest first; all, or only unrepaired ones."""
        return self.tables.list_rows(
            LoggedError,
            "SELECT seq, at, workspace, component, message, repaired_at FROM error "
            "WHERE (workspace IS NULL OR workspace = ?) AND seq < ? AND (repaired_at IS NULL OR ? = 0) "
            "ORDER BY seq DESC LIMIT ?",
            (workspace, 2**62 if before is None else before, open_only, limit),
        )

    def errors_since(self, workspace: str, at: float) -> int:
        """Count a workspace's errors and general errors since a time."""
        counted = "SELECT count(*) FROM error WHERE (workspace IS NULL OR workspace = ?) AND at >= ?"
        return self.tables.find_row(int, counted, (workspace, at)) or 0

    def report_worker(self, owner: str) -> None:
        """Record that a worker is alive."""
        now = time.time()
        self.tables.run(
            "INSERT INTO worker VALUES (?, ?, ?) ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at",
            (owner, now, now),
        )

    def forget_worker(self, owner: str) -> None:
        """Record that a worker is gone."""
        self.tables.run("DELETE FROM worker WHERE owner = ?", (owner,))

    def workers(self) -> list[Worker]:
        """List the workers that reported and are not recorded as gone."""
        return self.tables.list_rows(Worker, "SELECT owner, started_at, seen_at FROM worker ORDER BY started_at")


TABLES = (
    Table("error", text=("message",), quoting={"message": DELETE}, has_workspace=True),
    Table("worker", ("owner",)),
)
