"""Choose the lessons that apply to a message, with a bar of their own.

A prompt rarely uses the words of the lesson that it needs, so the relevance of a single lesson says little. Three
measures decide together: the lesson's relevance, its distance from the other lessons of the workspace, and the
activities, such as push or migrate, that message and lesson name in any language. A message that only asks for an
explanation needs a clearer match.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.kinds import render_text
from pipeline.recall.deadline import Deadline
from pipeline.recall.search import SearchContext, search
from pipeline.records import Filter, Kind, Viewer
from pipeline.records.recall import Hit, Query
from pipeline.store import memories
from pipeline.text.activities import asks_information, list_activities

# Maximum number of lessons that are compared, and that a message is shown.
COMPARED = 80
MOST_LESSONS = 2
# Limits of a relevance before it becomes a logit.
SUREST = 1e-4
# The logit of a lesson that does not apply, and the number of such lessons that every store is assumed to have.
TYPICAL_LOGIT = -4.0
TYPICAL_LESSONS = 3


@dataclass(frozen=True, slots=True)
class LessonEvidence:
    """The measures of one lesson; `activities` is the information of the shared ones among the compared lessons."""

    relevance: float
    above_mean: float
    above_next: float
    activities: float
    activities_above_next: float
    only_asks: bool


def find_lesson_hits(
    context: SearchContext, viewer: Viewer, message: str, budget_ms: int, deadline: Deadline | None = None
) -> tuple[Hit, ...]:
    """Return the lessons nearest to a message, however far, so that each can be compared with the others."""
    lessons = Filter(kinds=(Kind.LESSON,), viewer=viewer)
    with context.database.read() as db:
        if not memories.visible_seqs(db, lessons):
            return ()
    return search(context, Query(message, COMPARED, lessons, budget_ms, min_relevance=0.0), deadline).hits


def choose_lessons(hits: Sequence[Hit], message: str) -> list[Hit]:
    """Return the lessons that apply to a message, the surest first, with the probability as their relevance."""
    probable = [
        replace(hit, relevance=estimate_probability(evidence))
        for hit, evidence in zip(hits, gather_lesson_evidence(hits, message), strict=True)
    ]
    best = sorted(probable, key=lambda hit: hit.relevance, reverse=True)[:MOST_LESSONS]
    return [hit for hit in best if hit.relevance >= APPLIES]


def gather_lesson_evidence(hits: Sequence[Hit], message: str) -> list[LessonEvidence]:
    """Return the measures of each lesson for a message."""
    logits = [_logit(hit.relevance) for hit in hits]
    shared = _share_activities([list_activities(render_text(hit.memory)) for hit in hits], list_activities(message))
    # The mean of a few lessons says little, so that some typical ones count too.
    mean = (sum(logits) + TYPICAL_LESSONS * TYPICAL_LOGIT) / (len(logits) + TYPICAL_LESSONS)
    only_asks = asks_information(message)
    return [
        LessonEvidence(
            logit,
            logit - mean,
            _above_next(logits, at, TYPICAL_LOGIT),
            information,
            _above_next(shared, at, 0.0),
            only_asks,
        )
        for at, (logit, information) in enumerate(zip(logits, shared, strict=True))
    ]


def _share_activities(named: Sequence[frozenset[str]], asked: frozenset[str]) -> list[float]:
    """Return the information of the activities that each lesson shares with a message; rare ones count more."""
    holders = Counter(activity for lesson in named for activity in lesson)
    weight = {activity: math.log((1 + len(named)) / (0.5 + holders[activity])) for activity in asked}
    return [sum(weight[activity] for activity in lesson & asked) for lesson in named]


def _above_next(values: Sequence[float], at: int, least: float) -> float:
    """Return how far a value is above the best of the others, but at least above a minimum; negative below it."""
    return values[at] - max([least, *(value for other, value in enumerate(values) if other != at)])


def _logit(probability: float) -> float:
    clipped = min(max(probability, SUREST), 1 - SUREST)
    return math.log(clipped / (1 - clipped))


# Fitted to the part "dev" of tests/data/lesson_prompts.json by maximum likelihood.
INTERCEPT = -2.4
RELEVANCE = 0.3
ABOVE_MEAN = 0.3
ABOVE_NEXT = 0.1
ACTIVITIES = 0.5
ACTIVITIES_ABOVE_NEXT = 0.3
ONLY_ASKS = -1.0
# The probability from which on a lesson is shown.
APPLIES = 0.5


def estimate_probability(evidence: LessonEvidence) -> float:
    """Return the probability that a lesson applies to a message."""
    logit = (
        INTERCEPT
        + RELEVANCE * evidence.relevance
        + ABOVE_MEAN * evidence.above_mean
        + ABOVE_NEXT * evidence.above_next
        + ACTIVITIES * evidence.activities
        + ACTIVITIES_ABOVE_NEXT * evidence.activities_above_next
        + ONLY_ASKS * evidence.only_asks
    )
    return 1 / (1 + math.exp(-logit))
