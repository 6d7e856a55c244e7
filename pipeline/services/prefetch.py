"""Prefetch the answers to likely questions while a web server is idle.

It runs the same queries as callers through the regular search, which fills the regular cache. Cache keys contain
everything that an answer depends on, so a write makes older answers unreachable at once. The next idle time computes
them again.
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto

from config.settings import Settings
from pipeline.context.briefing import hook_recall_budget_ms, message_query
from pipeline.errors import NotFound
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.search import cache_key, search
from pipeline.records import Viewer
from pipeline.records.recall import Query
from pipeline.store import predictions
from pipeline.store.operations import Operations
from pipeline.workspace import Workspace

MOST_WORKSPACES = 8


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Times in seconds: `idle_s` without a request before a web server counts as idle, `apart_s` at least between two
    looks at a workspace, `look_s` between looks if nothing changes, `patience_s` at most between retries.
    """

    idle_s: float = 2.0
    apart_s: float = 10.0
    look_s: float = 60.0
    patience_s: float = 600.0


class LookResult(Enum):
    """The result of a look at a workspace."""

    AT_REST = auto()
    PREFETCHED = auto()
    INTERRUPTED = auto()
    UNSETTLED = auto()
    GONE = auto()


def queries_of(texts: Sequence[str], settings: Settings) -> Iterator[Query]:
    """Return the queries that callers send for these questions: of recall, then of hooks."""
    for text in texts:
        budgets = dict.fromkeys((settings.recall_budget_ms, hook_recall_budget_ms(settings)))
        yield Query(text, budget_ms=settings.recall_budget_ms)
        yield from (message_query(text, Viewer(), budget) for budget in budgets)


class AnswerPrefetcher:
    """Compute the likely answers of recently used workspaces.

    A separate thread sleeps until the web server has been idle for a while. It stops between two searches when a
    request arrives. If nothing has changed, a look is a single read.
    """

    def __init__(
        self,
        workspace_of: Callable[[str], Workspace],
        contexts: SearchContexts,
        operations: Operations,
        rhythm: Rhythm | None = None,
    ) -> None:
        self._workspace_of = workspace_of
        self._contexts = contexts
        self._operations = operations
        self._rhythm = rhythm or Rhythm()
        self._changed = threading.Condition()
        self._due: OrderedDict[str, float] = OrderedDict()
        self._looked: dict[str, float] = {}
        self._waits: dict[str, float] = {}
        self._prefetched: dict[str, Hashable] = {}
        self._requests = 0
        self._last_request = -math.inf
        self._sleeps_until = -math.inf
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="prefetcher", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def notify_activity(self, workspace_id: str) -> None:
        """Report a request to a workspace, which interrupts prefetching."""
        with self._changed:
            now = time.monotonic()
            self._requests += 1
            self._last_request = now
            soon = max(now + self._rhythm.idle_s, self._looked.get(workspace_id, -math.inf) + self._rhythm.apart_s)
            self._due[workspace_id] = min(soon, self._due.get(workspace_id, math.inf))
            self._due.move_to_end(workspace_id)
            if len(self._due) > MOST_WORKSPACES:
                self._forget(next(iter(self._due)))
            # Requests do not wake the thread each time: it computes its waiting time when it wakes.
            if self._sleeps_until > soon:
                self._changed.notify()

    def close(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def look(self, workspace_id: str) -> LookResult:
        """Compute the missing likely answers of a workspace until a request comes."""
        requests = self._requests
        try:
            workspace = self._workspace_of(workspace_id)
            context = self._contexts.get(workspace)
            with context.database.read() as db:
                likely = [prediction.query for prediction in predictions.list_predictions(db)]
                state = cache_key(db, datetime.now(UTC)), tuple(likely)
        except NotFound:
            return LookResult.GONE
        if self._prefetched.get(workspace_id) == state:
            return LookResult.AT_REST
        for query in queries_of(likely, workspace.settings):
            if self._stopped or self._requests != requests:
                return LookResult.INTERRUPTED
            answer = search(context, query)
            if answer.degraded or not answer.settled:
                return LookResult.UNSETTLED
        self._prefetched[workspace_id] = state
        return LookResult.PREFETCHED

    def _run(self) -> None:
        while (workspace_id := self._next()) is not None:
            try:
                result = self.look(workspace_id)
            except Exception as error:  # noqa: BLE001 - a failure in one workspace must not stop the others
                self._operations.record_error("prefetch", f"{type(error).__name__}: {error}", workspace=workspace_id)
                result = LookResult.UNSETTLED
            self._schedule(workspace_id, result)

    def _next(self) -> str | None:
        """Wait until a workspace is due and no request is running; return None when stopped."""
        with self._changed:
            while not self._stopped:
                due = min(self._due, key=self._due.__getitem__, default=None)
                begins = math.inf if due is None else max(self._due[due], self._last_request + self._rhythm.idle_s)
                now = time.monotonic()
                if due is not None and begins <= now:
                    return due
                self._sleeps_until = begins
                self._changed.wait(None if due is None else begins - now)
                self._sleeps_until = -math.inf
        return None

    def _schedule(self, workspace_id: str, result: LookResult) -> None:
        with self._changed:
            if result is LookResult.GONE or workspace_id not in self._due:
                # Requests for other workspaces removed it.
                self._forget(workspace_id)
                return
            wait = self._rhythm.apart_s
            if result is LookResult.AT_REST:
                wait = self._rhythm.look_s
            elif result is LookResult.UNSETTLED:
                # A worker is still building the missing index, or it is broken.
                wait = min(2 * self._waits.get(workspace_id, wait / 2), self._rhythm.patience_s)
            self._waits[workspace_id] = wait if result is LookResult.UNSETTLED else self._rhythm.apart_s / 2
            self._looked[workspace_id] = time.monotonic()
            self._due[workspace_id] = self._looked[workspace_id] + wait

    def _forget(self, workspace_id: str) -> None:
        for known in (self._due, self._looked, self._waits, self._prefetched):
            known.pop(workspace_id, None)
