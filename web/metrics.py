"""Metrics of one web server: request counts and times, every workspace's queue, and how long each endpoint takes."""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flask import Flask, Response, current_app, g, request
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pipeline.bootstrap.web import WebContainer
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

ENDPOINT = "endpoint"
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class QueueCollector(Collector):
    """Count pending and dead work by workspace and stage."""

    def __init__(self, container: WebContainer) -> None:
        self._container = container

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Read every workspace's work table."""
        labels = ["workspace", "stage"]
        pending = GaugeMetricFamily("reverie_work_pending", "Work items that wait or run.", labels=labels)
        dead = GaugeMetricFamily("reverie_work_dead", "Work items that failed for good.", labels=labels)
        for workspace in self._container.settings.paths.workspace_ids():
            try:
                queue = count_queue(self._container.workspace(workspace), self._container.operations)
            except NotFound:
                # Deleted between the listing and now.
                continue
            for family, counts in ((pending, queue.pending), (dead, queue.dead)):
                for stage, count in counts.items():
                    family.add_metric([workspace, stage], count)
        return (pending, dead)


class Metrics:
    """What one web server counts, whichever of its apps answers."""

    def __init__(self, container: WebContainer) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(QueueCollector(container))
        self.seconds = Histogram(
            "reverie_request_seconds",
            "Time to answer, by endpoint.",
            [ENDPOINT],
            registry=self.registry,
            buckets=BUCKETS,
        )
        self.requests = Counter("reverie_requests", "Requests answered.", [ENDPOINT, "status"], registry=self.registry)


def register_metrics(app: Flask, container: WebContainer, metrics: Metrics) -> None:
    """Measure every request of the app."""
    app.extensions["metrics"] = metrics

    @app.before_request
    def start() -> None:
        g.started = time.perf_counter()

    @app.after_request
    def measure(response: Response) -> Response:
        # A path that no route has would let callers grow the label set without bound.
        endpoint = request.url_rule.rule if request.url_rule is not None else "unknown"
        metrics.seconds.labels(endpoint).observe(time.perf_counter() - g.started)
        metrics.requests.labels(endpoint, response.status_code).inc()
        if _is_use(endpoint, response):
            container.requested = time.monotonic()
        return response


def _is_use(endpoint: str, response: Response) -> bool:
    """Tell whether a request was for the memory itself, of somebody who may ask."""
    return response.status_code not in (401, 403) and not (request.method == "GET" and endpoint in LOOKS)


def registry_of() -> CollectorRegistry:
    """Return the registry of the running app."""
    return _metrics().registry


def request_seconds() -> Histogram:
    """Return how long the running app took to answer, by endpoint."""
    return _metrics().seconds


def _metrics() -> Metrics:
    metrics: Metrics = current_app.extensions["metrics"]
    return metrics


@dataclass(frozen=True, slots=True)
class Latency:
    """How often an endpoint answered since the server started, and its median and 95th percentile in seconds.

    Where that many answers took longer than the last bucket's bound, the bound stands for all of them.
    """

    endpoint: str
    count: int
    p50_s: float
    p95_s: float


def latencies(histogram: Histogram) -> list[Latency]:
    """List the endpoints that answered anything, the most asked for first."""
    buckets: dict[str, list[tuple[float, float]]] = {}
    for endpoint, bound, count in _list_buckets(histogram.collect()):
        buckets.setdefault(endpoint, []).append((bound, count))
    found = []
    for endpoint, counted in buckets.items():
        ordered = sorted(counted)
        if total := int(ordered[-1][1]):
            found.append(Latency(endpoint, total, quantile(ordered, 0.5), quantile(ordered, 0.95)))
    return sorted(found, key=lambda one: (-one.count, one.endpoint))


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """Estimate a quantile as Prometheus' `histogram_quantile` does.

    `buckets` are (upper bound, cumulated count) in rising order, the last without a bound. Within a bucket the values
    are taken to lie evenly.
    """
    rank = share * buckets[-1][1]
    for (below, count_below), (bound, count) in pairwise([(0.0, 0.0), *buckets]):
        if count >= rank and count > count_below:
            if math.isinf(bound):
                return below
            return below + (bound - below) * (rank - count_below) / (count - count_below)
    return math.nan


def _list_buckets(metrics: Iterable[Metric]) -> Iterable[tuple[str, float, float]]:
    for metric in metrics:
        for sample in metric.samples:
            if sample.name.endswith("_bucket"):
                yield sample.labels[ENDPOINT], float(sample.labels["le"]), sample.value
