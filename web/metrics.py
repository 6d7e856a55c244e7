"""Metrics of one front: request counts and times, and every workspace's queue at the moment of asking."""

import time
from collections.abc import Iterable

from flask import Flask, Response, current_app, g, request
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pipeline.bootstrap.front import Front
from pipeline.errors import NotFound
from pipeline.services.operations import count_queue

# Who only looks how the stack fares does not use it: a monitor must not keep it from its rest.
LOOKS = frozenset(
    {
        "/healthz",
        "/metrics",
        "/v1/workspaces",
        "/v1/queue",
        "/v1/jobs",
        "/v1/errors",
        # What an open page asks by itself.
        "/w/<workspace>/workers/now",
        "/w/<workspace>/timeline/events",
        "/w/<workspace>/timeline/rows",
    }
)

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class QueueCollector(Collector):
    """Count pending and dead work by workspace and stage."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Read every workspace's work table."""
        labels = ["workspace", "stage"]
        pending = GaugeMetricFamily("reverie_work_pending", "Work items that wait or run.", labels=labels)
        dead = GaugeMetricFamily("reverie_work_dead", "Work items that failed for good.", labels=labels)
        for workspace in self._front.settings.paths.workspace_ids():
            try:
                queue = count_queue(self._front.workspace(workspace), self._front.operations)
            except NotFound:
                # Deleted between the listing and now.
                continue
            for family, counts in ((pending, queue.pending), (dead, queue.dead)):
                for stage, count in counts.items():
                    family.add_metric([workspace, stage], count)
        return (pending, dead)


def register_metrics(app: Flask, front: Front) -> None:
    """Measure every request of the app."""
    registry = CollectorRegistry()
    registry.register(QueueCollector(front))
    seconds = Histogram(
        "reverie_request_seconds",
        "Time to answer, by endpoint.",
        ["endpoint"],
        registry=registry,
        buckets=BUCKETS,
    )
    requests = Counter("reverie_requests", "Requests answered.", ["endpoint", "status"], registry=registry)
    app.extensions["metrics"] = registry
    app.extensions["request_seconds"] = seconds

    @app.before_request
    def start() -> None:
        g.started = time.perf_counter()

    @app.after_request
    def measure(response: Response) -> Response:
        # A path that no route has would let callers grow the label set without bound.
        endpoint = request.url_rule.rule if request.url_rule is not None else "unknown"
        seconds.labels(endpoint).observe(time.perf_counter() - g.started)
        requests.labels(endpoint, response.status_code).inc()
        if _is_use(endpoint, response):
            front.requested = time.monotonic()
        return response


def _is_use(endpoint: str, response: Response) -> bool:
    """Tell whether a request was for the memory itself, of somebody who may ask."""
    return response.status_code not in (401, 403) and not (request.method == "GET" and endpoint in LOOKS)


def registry_of() -> CollectorRegistry:
    """Return the registry of the running app."""
    registry: CollectorRegistry = current_app.extensions["metrics"]
    return registry


def request_seconds() -> Histogram:
    """Return how long the running app took to answer, by endpoint."""
    seconds: Histogram = current_app.extensions["request_seconds"]
    return seconds
