"""How long each endpoint takes to answer, estimated from the buckets that the metrics count."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from prometheus_client import Histogram
from prometheus_client.metrics_core import Metric

LABEL = "endpoint"


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
    for endpoint, bound, count in _cumulated(histogram.collect()):
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


def _cumulated(metrics: Iterable[Metric]) -> Iterable[tuple[str, float, float]]:
    for metric in metrics:
        for sample in metric.samples:
            if sample.name.endswith("_bucket"):
                yield sample.labels[LABEL], float(sample.labels["le"]), sample.value
