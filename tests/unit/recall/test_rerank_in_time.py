from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.errors import EncoderUnavailable
from pipeline.kernel.records.recall import ChannelReport, ChannelState, Query, Step
from pipeline.recall import reranking
from pipeline.recall.deadline import OPTIONAL_SHARE, Deadline, StepCosts
from pipeline.recall.first_pass import RankedPool
from pipeline.recall.rank import rank
from pipeline.recall.reranking import PRIOR_MS, OutOfTime, rerank_in_time
from tests.fakes.evidence import evidence

POOL = RankedPool(None, None, rank(evidence([1, 2])))
RERANKED = RankedPool(None, None, rank(evidence([1, 2], information=[40, 0], vocabulary_coverage=1)))


class Attempt:
    """Rerank once with a fake that takes its time, on a clock that only moves then."""

    def __init__(self, took_ms=0.0, budget_ms=250, costs=None, outcome=RERANKED):
        self.costs, self.begun, self.errors, self._ms = costs or StepCosts(), False, [], 0.0

        def run(*_given):
            self.begun = True
            self._ms += took_ms
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        context = SimpleNamespace(
            costs=self.costs, reranker=object, on_error=lambda name, error: self.errors.append((name, error))
        )
        deadline = Deadline(budget_ms, lambda: self._ms / 1000)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reranking, "_rerank", run)
            self.ranked, reports = rerank_in_time(context, None, Query("why"), deadline, POOL)
        self.report = reports[Step.RERANKER]


def test_rerank_within_the_budget_replaces_the_ranking():
    attempt = Attempt(3)
    assert (attempt.ranked, attempt.report) == (RERANKED, ChannelReport(ChannelState.OK, 3.0))


def test_rerank_over_the_budget_is_late_and_not_started():
    attempt = Attempt(budget_ms=PRIOR_MS / OPTIONAL_SHARE - 1)
    assert (attempt.ranked, attempt.begun, attempt.report) == (POOL, False, ChannelReport(ChannelState.LATE, 0.0))


def test_a_measured_cost_replaces_the_first_estimate():
    costs = StepCosts()
    for _ in range(20):
        Attempt(60, costs=costs)
    assert costs.estimate_ms(Step.RERANKER, PRIOR_MS) == pytest.approx(60, rel=0.1)
    slow = Attempt(costs=costs, budget_ms=75)
    assert (slow.begun, slow.report.state) == (False, ChannelState.LATE)


def test_one_slow_run_does_not_rule_it_out_forever():
    costs = StepCosts()
    costs.record(Step.RERANKER, 5_000)
    ran = [Attempt(5, costs=costs).begun for _ in range(200)]
    assert 10 < ran.index(True) < 150
    assert all(ran[150:])


def test_rerank_stopped_at_the_deadline_keeps_the_ranking():
    attempt = Attempt(250, outcome=OutOfTime())
    assert (attempt.ranked, attempt.report) == (POOL, ChannelReport(ChannelState.LATE, 250.0))
    assert attempt.costs.estimate_ms(Step.RERANKER, 0) > 250


@pytest.mark.parametrize(("error", "is_reported"), [(EncoderUnavailable("loading"), False), (KeyError("seq"), True)])
def test_failed_rerank_is_cold_and_its_time_is_not_recorded(error, is_reported):
    attempt = Attempt(1, outcome=error)
    assert (attempt.ranked, attempt.report.state) == (POOL, ChannelState.COLD)
    assert attempt.errors == ([(Step.RERANKER, error)] if is_reported else [])
    assert attempt.costs.estimate_ms(Step.RERANKER, 7) == 7


runs = st.lists(st.floats(0.1, 400), min_size=1, max_size=12)


@given(st.floats(1, 1000), runs)
def test_it_does_not_begin_unless_its_estimate_fits_the_time_left(budget_ms, took_ms):
    costs = StepCosts()
    for took in took_ms:
        estimate = costs.estimate_ms(Step.RERANKER, PRIOR_MS)
        if Attempt(took, budget_ms, costs).begun:
            assert estimate <= OPTIONAL_SHARE * budget_ms + 1e-6


@given(runs, st.floats(1, 400))
def test_cost_estimate_covers_and_converges_to_a_steady_step(first, steady):
    costs = StepCosts()
    for took in [*first, *[steady] * 60]:
        costs.record(Step.NAMED, took)
    assert steady * 0.9 <= costs.estimate_ms(Step.NAMED, 0) or max(first) < steady
    for _ in range(200):
        costs.record(Step.NAMED, steady)
    assert costs.estimate_ms(Step.NAMED, 0) == pytest.approx(steady, rel=0.01, abs=0.01)
