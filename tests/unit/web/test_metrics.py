"""Quantiles of bucketed counts: what Prometheus would tell, and never beyond the bucket that they lie in."""

import math
from itertools import accumulate

import pytest
from hypothesis import given, strategies as st
from prometheus_client import CollectorRegistry, Histogram

from web.http.metrics import BUCKETS, Latency, latencies, quantile

BOUNDS = (*BUCKETS, math.inf)


def make_buckets(counts):
    return list(zip(BOUNDS, accumulate(counts), strict=True))


def test_values_lie_evenly_within_a_bucket():
    buckets = [(1.0, 0), (2.0, 10), (4.0, 20), (math.inf, 20)]
    assert quantile(buckets, 0.5) == pytest.approx(2.0)
    assert quantile(buckets, 0.25) == pytest.approx(1.5)
    assert quantile(buckets, 0.95) == pytest.approx(3.8)
    assert quantile([(1.0, 4), (math.inf, 4)], 0.5) == pytest.approx(0.5)


def test_quantile_beyond_the_bounds_is_the_last_bound():
    assert quantile([(1.0, 1), (2.0, 1), (math.inf, 10)], 0.5) == 2.0


@given(
    st.lists(st.integers(0, 50), min_size=len(BOUNDS), max_size=len(BOUNDS)).filter(any),
    st.floats(0.01, 1),
)
def test_a_quantile_stays_in_its_bucket_and_grows_with_the_share(counts, share):
    buckets = make_buckets(counts)
    found = quantile(buckets, share)
    rank = share * buckets[-1][1]
    place = next(i for i, (_, count) in enumerate(buckets) if count >= rank and counts[i])
    assert (0.0, *BOUNDS)[place] <= found <= (BOUNDS[place] if place < len(BUCKETS) else BUCKETS[-1])
    assert quantile(buckets, share / 2) <= found


def test_endpoints_that_answered_are_listed_the_most_asked_for_first():
    histogram = Histogram("seconds", "x", ["endpoint", "method"], registry=CollectorRegistry(), buckets=BUCKETS)
    histogram.labels("/silent", "GET")
    histogram.labels("/b", "GET").observe(0.003)
    for method in ("GET", "POST", "GET"):
        histogram.labels("/a", method).observe(0.02)
    assert latencies(histogram, "endpoint") == [
        Latency("/a", 3, pytest.approx(0.0175), pytest.approx(0.02425)),
        Latency("/b", 1, pytest.approx(0.00375), pytest.approx(0.004875)),
    ]


def test_the_failures_of_a_tool_are_a_share_of_its_calls():
    histogram = Histogram("seconds", "x", ["tool", "outcome"], registry=CollectorRegistry(), buckets=BUCKETS)
    for outcome, count in (("told", 3), ("failed", 1)):
        for _ in range(count):
            histogram.labels("recall", outcome).observe(0.02)
    histogram.labels("remember", "told").observe(0.003)
    recall, remember = latencies(histogram, "tool")
    assert (recall.name, recall.count, recall.failed, recall.error_rate) == ("recall", 4, 1, 0.25)
    assert recall.p50_s == pytest.approx(0.0175)
    assert (remember.name, remember.count, remember.error_rate) == ("remember", 1, 0)
