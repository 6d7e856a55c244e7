"""Escalation: optional steps after the first pass, each only if it is needed and its measured cost fits the time left.

The cheapest step comes first. A step that is not marked `always` runs only while no memory seems relevant. An answer
reports each step that ran, that did not fit, or that failed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection

from pipeline.errors import EncoderUnavailable
from pipeline.recall.deadline import Deadline
from pipeline.recall.first_pass import RankedPool
from pipeline.recall.relevance import RELEVANT, relevance
from pipeline.recall.search_context import SearchContext
from pipeline.records.recall import ChannelReport, ChannelState, Query, Step


class OutOfTime(Exception):
    """Report that a step stopped at the deadline; its work is discarded."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a step works on: a query, the present ranking, and the means to improve it until the deadline."""

    context: SearchContext
    db: Connection
    query: Query
    deadline: Deadline
    ranked: RankedPool


@dataclass(frozen=True, slots=True)
class EscalationStep:
    """An optional step: its name, whether it applies, its function, and its estimated cost before the first run.

    `run` returns the improved ranking. It raises OutOfTime at the deadline, EncoderUnavailable without its model.
    """

    name: Step
    applies: Callable[[Attempt], bool]
    run: Callable[[Attempt], RankedPool]
    prior_ms: float
    always: bool = False


def escalate(attempt: Attempt, steps: Sequence[EscalationStep]) -> tuple[RankedPool, dict[str, ChannelReport]]:
    """Run the steps that are needed and fit; return the last ranking and a report for each step that was needed."""
    reports: dict[str, ChannelReport] = {}
    for step in steps:
        if (step.always or is_doubtful(attempt.ranked)) and step.applies(attempt):
            ranked, reports[step.name] = _run_in_time(step, attempt)
            attempt = replace(attempt, ranked=ranked)
    return attempt.ranked, reports


def is_doubtful(ranked: RankedPool) -> bool:
    """Return whether no memory of a pool seems relevant."""
    return float(relevance(ranked.ranking).max(initial=0.0)) < RELEVANT


def _run_in_time(step: EscalationStep, attempt: Attempt) -> tuple[RankedPool, ChannelReport]:
    deadline, costs = attempt.deadline, attempt.context.costs
    if not deadline.allows(costs.estimate_ms(step.name, step.prior_ms)):
        costs.shrink(step.name)
        return attempt.ranked, ChannelReport(ChannelState.LATE, 0.0)
    began_ms = deadline.elapsed_ms
    ranked, state = attempt.ranked, ChannelState.OK
    try:
        ranked = step.run(attempt)
    except OutOfTime:
        state = ChannelState.LATE
    except EncoderUnavailable:
        state = ChannelState.COLD
    except Exception as error:  # noqa: BLE001 - a failed step costs its improvement, never the answer
        attempt.context.on_error(step.name, error)
        state = ChannelState.COLD
    took_ms = round(deadline.elapsed_ms - began_ms, 2)
    if state is not ChannelState.COLD:
        costs.record(step.name, took_ms)
    return ranked, ChannelReport(state, took_ms)
