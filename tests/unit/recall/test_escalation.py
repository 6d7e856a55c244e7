from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from pipeline.errors import EncoderUnavailable
from pipeline.recall.deadline import OPTIONAL_SHARE, Deadline, StepCosts
from pipeline.recall.escalation import Attempt, EscalationStep, OutOfTime, escalate
from pipeline.recall.first_pass import RankedPool
from pipeline.recall.rank import rank
from pipeline.records.recall import ChannelReport, ChannelState, Query, Step
from tests.fakes.evidence import evidence

DOUBTFUL = RankedPool(None, None, rank(evidence([1, 2])))
CONVINCING = RankedPool(None, None, rank(evidence([1, 2], information=[40, 0], vocabulary_coverage=1)))


class Clock:
    """A clock that only moves when a step takes time."""

    def __init__(self):
        self.ms = 0.0

    def __call__(self):
        return self.ms / 1000


class Escalation:
    """An attempt at a query with fake steps, and what they did."""

    def __init__(self, ranked=DOUBTFUL, budget_ms=250, costs=None):
        self.clock, self.begun, self.errors = Clock(), [], []
        self.costs = costs or StepCosts()
        context = SimpleNamespace(costs=self.costs, on_error=lambda name, error: self.errors.append((name, error)))
        self.attempt = Attempt(context, None, Query("why"), Deadline(budget_ms, self.clock), ranked)

    def step(self, name, took_ms=0.0, prior_ms=0.0, outcome=None, **fields):
        def run(attempt):
            self.begun.append((name, self.clock.ms))
            self.clock.ms += took_ms
            if isinstance(outcome, Exception):
                raise outcome
            return outcome or attempt.ranked

        return EscalationStep(name, fields.pop("applies", lambda _attempt: True), run, prior_ms, **fields)

    def run(self, *steps):
        return escalate(self.attempt, steps)

    @property
    def names(self):
        return [name for name, _ in self.begun]


def test_steps_run_only_while_nothing_seems_relevant():
    sure = Escalation(CONVINCING)
    assert sure.run(sure.step(Step.NAMED)) == (CONVINCING, {})
    assert sure.begun == []
    unsure = Escalation()
    ranked, reports = unsure.run(unsure.step(Step.NAMED, 3, outcome=CONVINCING), unsure.step(Step.EXCERPTS))
    assert (ranked, unsure.names) == (CONVINCING, [Step.NAMED])
    assert reports == {Step.NAMED: ChannelReport(ChannelState.OK, 3.0)}


def test_a_step_that_always_runs_follows_a_sure_first_pass_unless_it_does_not_apply():
    escalation = Escalation(CONVINCING)
    always = escalation.step(Step.NAMED, always=True)
    never = escalation.step(Step.EXCERPTS, always=True, applies=lambda _attempt: False)
    _, reports = escalation.run(never, always)
    assert (escalation.names, list(reports)) == ([Step.NAMED], [Step.NAMED])


def test_a_step_that_does_not_fit_is_late_and_a_cheaper_one_still_runs():
    escalation = Escalation(budget_ms=100)
    dear, cheap = escalation.step(Step.NAMED, prior_ms=80), escalation.step(Step.EXCERPTS, prior_ms=70)
    _, reports = escalation.run(dear, cheap)
    assert escalation.names == [Step.EXCERPTS]
    assert reports[Step.NAMED] == ChannelReport(ChannelState.LATE, 0.0)


def test_a_measured_cost_replaces_the_first_estimate():
    costs = StepCosts()
    for _ in range(20):
        escalation = Escalation(costs=costs)
        escalation.run(escalation.step(Step.NAMED, took_ms=60, prior_ms=1))
    assert costs.estimate_ms(Step.NAMED, 1) == pytest.approx(60, rel=0.1)
    slow = Escalation(costs=costs, budget_ms=75)
    _, reports = slow.run(slow.step(Step.NAMED, prior_ms=1))
    assert (slow.begun, reports[Step.NAMED].state) == ([], ChannelState.LATE)


def test_one_slow_run_does_not_rule_a_step_out_forever():
    costs = StepCosts()
    costs.record(Step.NAMED, 5_000)
    attempts = [Escalation(costs=costs) for _ in range(200)]
    for escalation in attempts:
        escalation.run(escalation.step(Step.NAMED, took_ms=5))
    ran = [bool(escalation.begun) for escalation in attempts]
    assert 10 < ran.index(True) < 150
    assert all(ran[150:])


def test_a_step_that_stops_at_the_deadline_changes_nothing_and_is_measured():
    escalation = Escalation()
    ranked, reports = escalation.run(escalation.step(Step.NAMED, 250, outcome=OutOfTime()))
    assert (ranked, reports) == (DOUBTFUL, {Step.NAMED: ChannelReport(ChannelState.LATE, 250.0)})
    assert escalation.costs.estimate_ms(Step.NAMED, 0) > 250


@pytest.mark.parametrize(("error", "is_reported"), [(EncoderUnavailable("loading"), False), (KeyError("seq"), True)])
def test_a_step_that_fails_is_cold_and_its_time_does_not_count(error, is_reported):
    escalation = Escalation()
    ranked, reports = escalation.run(escalation.step(Step.NAMED, 1, outcome=error), escalation.step(Step.EXCERPTS))
    assert (ranked, reports[Step.NAMED].state) == (DOUBTFUL, ChannelState.COLD)
    assert escalation.names == [Step.NAMED, Step.EXCERPTS]
    assert escalation.errors == ([(Step.NAMED, error)] if is_reported else [])
    assert escalation.costs.estimate_ms(Step.NAMED, 7) == 7


runs = st.lists(st.floats(0.1, 400), min_size=1, max_size=12)


@given(st.floats(1, 1000), st.lists(st.sampled_from(list(Step)), min_size=1, max_size=5, unique=True), runs)
def test_no_step_begins_unless_its_estimate_fits_the_time_left(budget_ms, names, took_ms):
    costs = StepCosts()
    for number, took in enumerate(took_ms):
        escalation = Escalation(budget_ms=budget_ms, costs=costs)
        before = {name: costs.estimate_ms(name, 20) for name in names}
        escalation.run(*(escalation.step(name, took * (1 + number % 2), prior_ms=20) for name in names))
        for name, at_ms in escalation.begun:
            assert before[name] <= OPTIONAL_SHARE * (budget_ms - at_ms) + 1e-6


@given(runs, st.floats(1, 400))
def test_an_estimate_is_never_below_what_a_steady_step_takes(first, steady):
    costs = StepCosts()
    for took in [*first, *[steady] * 60]:
        costs.record(Step.NAMED, took)
    assert steady * 0.9 <= costs.estimate_ms(Step.NAMED, 0) or max(first) < steady
    for _ in range(200):
        costs.record(Step.NAMED, steady)
    assert costs.estimate_ms(Step.NAMED, 0) == pytest.approx(steady, rel=0.01, abs=0.01)
