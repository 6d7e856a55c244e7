"""Metrics of one web server by Prometheus' conventions: requests, recalls, hooks, queues, the process."""

import math
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import pairwise
from typing import cast

from flask import Flask, Response, current_app, g, request
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pipeline.bootstrap.web import WebContainer
from pipeline.features.maintenance.operations import QueueCounts, count_queue
from pipeline.kernel.errors import NotFound, StorageUnreachable, StoreUnavailable
from web.version import VERSION

# Requests that only check the stack do not count as use: a monitor must not keep an idle stack running.
LOOKS = frozenset(
    {
        "/healthz",
        "/metrics",
        "/v1/workspaces",
        "/v1/queue",
        "/v1/jobs",
        "/v1/errors",
        # Requests that an open page repeats automatically.
        "/w/<workspace>/workers/now",
        "/w/<workspace>/timeline/events",
        "/w/<workspace>/timeline/rows",
    }
)

ENDPOINT = "endpoint"
TOOL = "tool"
# The outcome of a call that ended with an error.
FAILED = "failed"
# All other methods share one label: clients could create labels without bound.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class HomeCollector(Collector):
    """Read the queue and the snapshots of every workspace, and how recalls were answered."""

    def __init__(self, container: WebContainer) -> None:
        self._container = container

    def collect(self) -> Iterable[Metric]:
        """Read every workspace; one that cannot be read is reported as down, without other metrics."""
        families = _WorkspaceFamilies()
        for name in self._container.databases.ids():
            try:
                queue = count_queue(self._container.workspace(name), self._container.operations)
                families.add(name, queue, self._measure_snapshot_age(name))
            except NotFound:
                # Deleted after the listing.
                continue
            except StoreUnavailable:
                families.up.add_metric([name], 0)
        recalls = CounterMetricFamily("reverie_recalls", "Recalls answered, complete or degraded.", labels=["outcome"])
        for outcome, count in self._container.contexts.answered.items():
            recalls.add_metric([outcome], count)
        build = GaugeMetricFamily("reverie_build_info", "The version that runs.", labels=["version", "python"])
        build.add_metric([VERSION, platform.python_version()], 1)
        return (*families.all(), recalls, build)

    def _measure_snapshot_age(self, name: str) -> float | None:
        try:
            return self._container.snapshots.measure_age_s(name)
        except StorageUnreachable:
            # Omit an unknown age. The store itself can be read, and its other metrics are correct.
            return None


class _WorkspaceFamilies:
    """The metrics of workspaces."""

    def __init__(self) -> None:
        def gauge(name: str, says: str, *more: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"reverie_{name}", says, labels=["workspace", *more])

        self.up = gauge("workspace_up", "Whether a workspace's store can be read.")
        self._pending = gauge("work_pending", "Work items that are pending or running.", "stage")
        self._dead = gauge("work_dead", "Work items that failed permanently.", "stage")
        self._oldest = gauge("work_oldest_age_seconds", "Age of the oldest pending work item.")
        self._snapshot = gauge("snapshot_age_seconds", "Age of the newest snapshot of a store.")

    def add(self, name: str, queue: QueueCounts, snapshot_age_s: float | None) -> None:
        """Add the metrics of a workspace."""
        self.up.add_metric([name], 1)
        for family, counts in ((self._pending, queue.pending), (self._dead, queue.dead)):
            for stage, count in counts.items():
                family.add_metric([name, stage], count)
        self._oldest.add_metric([name], queue.oldest_pending_s or 0)
        if snapshot_age_s is not None:
            self._snapshot.add_metric([name], snapshot_age_s)

    def all(self) -> tuple[GaugeMetricFamily, ...]:
        """Return the metrics, for a scrape."""
        return self.up, self._pending, self._dead, self._oldest, self._snapshot


class Metrics:
    """The metrics of one web server, shared by its apps."""

    def __init__(self, container: WebContainer) -> None:
        self.registry = CollectorRegistry()
        self._series: dict[tuple[str, str, int, str], tuple[tuple[Histogram, ...], tuple[Counter, ...]]] = {}
        self.registry.register(HomeCollector(container))
        ProcessCollector(registry=self.registry)
        self.seconds = self._time(
            "reverie_http_request_duration_seconds", "Time to answer a request.", ENDPOINT, "method"
        )
        self.requests = self._count("reverie_http_requests", "Requests answered.", ENDPOINT, "method", "status")
        self.caller_seconds = self._time(
            "reverie_caller_request_duration_seconds", "Time to answer a request, by the class of its token.", "caller"
        )
        self.callers = self._count(
            "reverie_caller_requests", "Requests by the class of their token and by outcome.", "caller", "outcome"
        )
        self.limit_hits = self._count("reverie_limit_hits", "Requests rejected by a limit of their token.", "limit")
        self.mcp_calls = self._time(
            "reverie_mcp_call_duration_seconds", "Time of a call of an MCP tool, by tool and outcome.", TOOL, "outcome"
        )
        self.hooks = self._count(
            "reverie_hook_events", "Hook events and tool calls answered.", "event", "host", "outcome"
        )

    def count_request(self, endpoint: str, method: str, status: int, caller: str, took_s: float) -> None:
        """Count and measure a request."""
        key = endpoint, method, status, caller
        series = self._series.get(key)
        if series is None:
            # Looking a series up by its labels takes longer than counting in it.
            series = self._series[key] = (
                (self.seconds.labels(endpoint, method), self.caller_seconds.labels(caller)),
                (self.requests.labels(endpoint, method, status), self.callers.labels(caller, _outcome(status))),
            )
        for histogram in series[0]:
            histogram.observe(took_s)
        for counter in series[1]:
            counter.inc()

    def _time(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(name, text, labels, registry=self.registry, buckets=BUCKETS)

    def _count(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)


def register_metrics(app: Flask, container: WebContainer, metrics: Metrics) -> None:
    """Measure every request of the app."""
    app.extensions["metrics"] = metrics

    @app.before_request
    def start() -> None:
        g.started = time.perf_counter()

    @app.after_request
    def measure(response: Response) -> Response:
        # Clients choose paths freely: a label for each unknown path would let them create labels without bound.
        endpoint = request.url_rule.rule if request.url_rule is not None else "unknown"
        method = request.method if request.method in METHODS else "other"
        count_request(container, endpoint, method, response.status_code, time.perf_counter() - g.started)
        return response


def count_request(container: WebContainer, endpoint: str, method: str, status: int, took_s: float) -> None:
    """Count and measure the current request."""
    caller = g.caller.token_class if "caller" in g else "none"
    _metrics().count_request(endpoint, method, status, caller, took_s)
    # A permitted request uses the memory, unlike a monitor that only checks the stack.
    if status not in (401, 403) and not (method == "GET" and endpoint in LOOKS):
        container.requested = time.monotonic()


def _outcome(status: int) -> str:
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return "refused"
        case HTTPStatus.TOO_MANY_REQUESTS:
            return "limited"
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return "failed"
    return "answered"


def count_limit_hit(limit: str) -> None:
    """Count a request that a limit rejected."""
    _metrics().limit_hits.labels(limit).inc()


def count_hook_event(event: str, host: str, outcome: str) -> None:
    """Count an event of a hook or a call of a tool by its name, its host and its outcome."""
    _metrics().hooks.labels(event, host, outcome).inc()


def count_mcp_call(tool: str, outcome: str, took_s: float) -> None:
    """Count and measure a call of a tool."""
    _metrics().mcp_calls.labels(tool, outcome).observe(took_s)


def registry_of() -> CollectorRegistry:
    """Return the registry of the running app."""
    return _metrics().registry


def measure_endpoints() -> list["Latency"]:
    """Return the answer times of the running app's endpoints."""
    return latencies(_metrics().seconds, ENDPOINT)


def measure_tools() -> list["Latency"]:
    """Return the times and failures of the MCP tools that agents called."""
    return latencies(_metrics().mcp_calls, TOOL)


def _metrics() -> Metrics:
    return cast(Metrics, current_app.extensions["metrics"])


@dataclass(frozen=True, slots=True)
class Latency:
    """Number of answers since the server started, their median and 95th percentile in seconds, and the failures.

    `name` is an endpoint or a tool. A time above the last bucket's bound is reported as that bound.
    """

    name: str
    count: int
    p50_s: float
    p95_s: float
    failed: int = 0

    @property
    def error_rate(self) -> float:
        """Return the share of answers that failed."""
        return self.failed / self.count


def latencies(histogram: Histogram, label: str) -> list[Latency]:
    """List the values of a label with at least one answer, most used first."""
    buckets: dict[str, dict[float, float]] = {}
    failed: dict[str, float] = {}
    for labels, bound, count in _list_buckets(histogram.collect()):
        # All methods of an endpoint together.
        name = labels[label]
        counts = buckets.setdefault(name, {})
        counts[bound] = counts.get(bound, 0.0) + count
        if labels.get("outcome") == FAILED and math.isinf(bound):
            failed[name] = failed.get(name, 0.0) + count
    measured = []
    for name, counted in buckets.items():
        ordered = sorted(counted.items())
        if total := int(ordered[-1][1]):
            p50_s, p95_s = quantile(ordered, 0.5), quantile(ordered, 0.95)
            measured.append(Latency(name, total, p50_s, p95_s, int(failed.get(name, 0))))
    return sorted(measured, key=lambda latency: (-latency.count, latency.name))


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


def _list_buckets(metrics: Iterable[Metric]) -> Iterable[tuple[dict[str, str], float, float]]:
    for metric in metrics:
        for sample in metric.samples:
            if sample.name.endswith("_bucket"):
                yield sample.labels, float(sample.labels["le"]), sample.value
