"""Choose the lessons that apply to a message, with a bar of their own.

A prompt rarely uses the words of the lesson that it needs, so the relevance of a single lesson says little. Its lead
over the other lessons of the workspace counts too, and the activities, such as push or migrate, that message and
lesson name in any language. A message that only asks for an explanation gets only lessons that are surely relevant.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.kinds import render_text
from pipeline.recall.deadline import Deadline
from pipeline.recall.relevance import IRRELEVANT, RELEVANT
from pipeline.recall.search import SearchContext, search
from pipeline.records import Filter, Kind, Viewer
from pipeline.records.recall import Hit, Query
from pipeline.store import memories
from pipeline.text.activities import asks_information, list_activities

# Maximum number of lessons that are compared, and that a message is shown.
COMPARED = 80
MOST_LESSONS = 3
# Limits of a relevance before it becomes a logit.
SUREST = 1e-4
# The logit of a lesson that does not apply: a lesson without competitors is compared with it.
TYPICAL_LOGIT = -4.0

# Fitted to the part "dev" of tests/data/lesson_prompts.json by maximum likelihood. The activities have half of their
# fitted weights: their words were collected with these prompts in view, so that other prompts match them less often.
INTERCEPT = -1.46
RELEVANCE = 0.12
RELEVANCE_LEAD = 0.26
ACTIVITIES = 0.6
ACTIVITIES_LEAD = 0.15
# The probability from which on a lesson is shown, and the relevance from which on it is shown anyway.
APPLIES = 0.4
SURELY_RELEVANT = 0.88


@dataclass(frozen=True, slots=True)
class LessonEvidence:
    """The measures of one lesson: its relevance as a logit, the information of the activities that it shares with
    the message, and the lead of both over the best other lesson.
    """

    relevance: float
    relevance_lead: float
    activities: float
    activities_lead: float


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
    """Return the lessons that apply to a message, the surest first, each at least as relevant as other results."""
    hits = [hit for hit in hits if hit.annotations.superseded_by is None]
    only_asks = asks_information(message)
    chosen = []
    for hit, evidence in zip(hits, gather_lesson_evidence(hits, message), strict=True):
        # An activity alone proves nothing: the lesson must not be surely unrelated.
        is_possible = hit.relevance >= IRRELEVANT and not only_asks
        probability = estimate_probability(evidence) if is_possible else 0.0
        if probability >= APPLIES or hit.relevance >= SURELY_RELEVANT:
            chosen.append(replace(hit, relevance=max(probability, hit.relevance, RELEVANT)))
    return sorted(chosen, key=lambda hit: hit.relevance, reverse=True)[:MOST_LESSONS]


def gather_lesson_evidence(hits: Sequence[Hit], message: str) -> list[LessonEvidence]:
    """Return the measures of each lesson for a message."""
    logits = [_logit(hit.relevance) for hit in hits]
    shared = _share_activities([list_activities(render_text(hit.memory)) for hit in hits], list_activities(message))
    return [
        LessonEvidence(logit, _lead(logits, at, TYPICAL_LOGIT), information, _lead(shared, at, 0.0))
        for at, (logit, information) in enumerate(zip(logits, shared, strict=True))
    ]


def estimate_probability(evidence: LessonEvidence) -> float:
    """Return the probability that a lesson applies to a message."""
    logit = (
        INTERCEPT
        + RELEVANCE * evidence.relevance
        + RELEVANCE_LEAD * evidence.relevance_lead
        + ACTIVITIES * evidence.activities
        + ACTIVITIES_LEAD * evidence.activities_lead
    )
    return 1 / (1 + math.exp(-logit))


def _share_activities(named: Sequence[frozenset[str]], asked: frozenset[str]) -> list[float]:
    """Return the information of the activities that each lesson shares with a message; rare ones count more."""
    holders = Counter(activity for lesson in named for activity in lesson)
    weight = {activity: math.log((1 + len(named)) / (0.5 + holders[activity])) for activity in asked}
    return [sum(weight[activity] for activity in lesson & asked) for lesson in named]


def _lead(values: Sequence[float], at: int, least: float) -> float:
    """Return how far a value is above the best of the others, which count as a minimum at least; negative below it."""
    return values[at] - max([least, *(value for other, value in enumerate(values) if other != at)])


def _logit(probability: float) -> float:
    clipped = min(max(probability, SUREST), 1 - SUREST)
    return math.log(clipped / (1 - clipped))
