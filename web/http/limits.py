"""Limits of people's tokens: requests and bytes per minute, and pending work in the workspace that they write to.

The owner's token has no limits. With a Redis queue, all web servers count together in Redis; while Redis is
unreachable, each counts alone.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flask import Flask, current_app, g, request

from config.settings import Settings
from pipeline.features.maintenance.operations import count_waiting
from pipeline.kernel.errors import LimitReached
from pipeline.kernel.records.people import Caller
from pipeline.kernel.workspace import Workspace
from web.http.metrics import count_limit_hit

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.strategies import RateLimiter

EXTENSION = "limits"
REQUESTS, BYTES, QUEUE = "requests", "bytes", "queue"
# How long to avoid Redis after a failure, and how long a request waits for it.
REST_S = 10.0
REDIS_TIMEOUT_S = 0.25
# The count of pending work in a workspace is reused for this long.
COUNTED_FOR_S = 2.0
# Retry after this time if too much work is pending: the workers have then finished some of it.
QUEUE_RETRY_S = 10

OnProblem = Callable[[str], None]


class Limits:
    """Count the requests of each token, and reject those above its limits."""

    def __init__(self, settings: Settings, on_problem: OnProblem, now: Callable[[], float] = time.monotonic) -> None:
        # Loaded for the first request of a person: most data directories have only an owner.
        from limits import RateLimitItemPerMinute
        from limits.storage import MemoryStorage
        from limits.strategies import SlidingWindowCounterRateLimiter

        most = {REQUESTS: settings.limit_requests, BYTES: settings.limit_bytes}
        self._items = {name: RateLimitItemPerMinute(amount, namespace=name) for name, amount in most.items() if amount}
        self._most_waiting = settings.limit_queue
        self._own: RateLimiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._shared = _open_shared(settings.queue_url) if settings.queue_url else None
        self._shared_rests_until = 0.0
        self._on_problem = on_problem
        self._now = now
        self._waiting: dict[str, tuple[float, int]] = {}

    def take(self, caller: Caller, size: int) -> None:
        """Count a request of `size` bytes; raise LimitReached if it exceeds a limit."""
        key = caller.token_id or f"browser of {caller.person_id}"
        for name, cost in ((REQUESTS, 1), (BYTES, size)):
            item = self._items.get(name)
            if item is not None and cost and (wait_s := self._count(item, key, cost)) is not None:
                says = f"This token may send {item.amount} {name} a minute. Try again later."
                raise LimitReached(says, name, max(1, math.ceil(wait_s)))

    def check_queue(self, workspace: Workspace) -> None:
        """Raise LimitReached if too much work is pending in a workspace."""
        if not self._most_waiting:
            return
        counted_at, waiting = self._waiting.get(workspace.id, (-COUNTED_FOR_S, 0))
        if self._now() - counted_at >= COUNTED_FOR_S:
            waiting = count_waiting(workspace)
            self._waiting[workspace.id] = self._now(), waiting
        if waiting >= self._most_waiting:
            says = f"{waiting} work items are already pending in {workspace.id}. Try again later."
            raise LimitReached(says, QUEUE, QUEUE_RETRY_S)

    def _count(self, item: "RateLimitItem", key: str, cost: int) -> float | None:
        """Count; return the seconds after which to try again, None within the limit."""
        from limits.errors import StorageError

        if self._shared is not None and self._now() >= self._shared_rests_until:
            try:
                return _hit(self._shared, item, key, cost)
            except StorageError as error:
                self._shared_rests_until = self._now() + REST_S
                self._on_problem(f"Redis is unreachable; this server counts limits alone until it is back: {error}")
        return _hit(self._own, item, key, cost)


def _open_shared(url: str) -> "RateLimiter":
    from limits.storage import RedisStorage
    from limits.strategies import SlidingWindowCounterRateLimiter
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    # The default client would retry for seconds while a request waits.
    options: Any = {"socket_timeout": REDIS_TIMEOUT_S, "socket_connect_timeout": REDIS_TIMEOUT_S}
    options["retry"] = Retry(NoBackoff(), 0)
    return SlidingWindowCounterRateLimiter(RedisStorage(url, wrap_exceptions=True, key_prefix="reverie", **options))


def _hit(limiter: "RateLimiter", item: "RateLimitItem", key: str, cost: int) -> float | None:
    if limiter.hit(item, key, cost=cost):
        return None
    # A cost above the limit of a full minute is never accepted.
    return limiter.get_window_stats(item, key).reset_time - time.time()


def register_limits(app: Flask, settings: Settings, on_problem: OnProblem) -> None:
    """Apply the limits to every request with a person's token."""
    making = threading.Lock()

    def find() -> Limits:
        with making:
            limits: Limits = app.extensions.get(EXTENSION) or app.extensions.setdefault(
                EXTENSION, Limits(settings, on_problem)
            )
        return limits

    @app.before_request
    def count() -> None:
        if g.caller.person is not None:
            with _counted():
                find().take(g.caller, request.content_length or 0)


def check_queue(workspace: Workspace) -> None:
    """Raise LimitReached if a person writes to a workspace with too much pending work."""
    limits: Limits | None = current_app.extensions.get(EXTENSION)
    if limits is not None and g.caller.person is not None:
        with _counted():
            limits.check_queue(workspace)


@contextmanager
def _counted() -> Iterator[None]:
    try:
        yield
    except LimitReached as reached:
        count_limit_hit(reached.limit)
        raise
