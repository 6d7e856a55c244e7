"""Choose the lessons that apply to a message, with a bar of their own.

A prompt rarely uses the words of the lesson that it needs, so the relevance of a single lesson says little. Its lead
over the other lessons of the workspace counts too, and the activities, such as push or migrate, that message and
lesson name in any language. If a lesson says when it applies, "before a release", a message that names this occasion
gets it. A message that only asks for an explanation gets only lessons that are surely relevant.
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.kinds import render_text
from pipeline.recall.deadline import Deadline
from pipeline.recall.first_pass import has_allowed
from pipeline.recall.relevance import IRRELEVANT, RELEVANT
from pipeline.recall.search import search
from pipeline.recall.search_context import SearchContext
from pipeline.records import Filter, Kind, Memory, Viewer
from pipeline.records.recall import SEARCHED_CHANNELS, Hit, Query
from pipeline.text.activities import asks_information, list_activities, list_occasions
from pipeline.text.tokens import search_tokens

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
# Of a message that names the occasion of a lesson; it changes precision and recall of "dev" by a hundredth.
OCCASION = 2.0
# The probability from which on a lesson is shown, and the relevance from which on it is shown anyway.
APPLIES = 0.4
SURELY_RELEVANT = 0.88

_OR = re.compile(r",|\b(?:or|oder|o|u|ou)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LessonEvidence:
    """The measures of one lesson: its relevance as a logit, the information of the activities that it shares with
    the message, the lead of both over the best other lesson, and whether the message names its occasion.
    """

    relevance: float
    relevance_lead: float
    activities: float
    activities_lead: float
    is_occasion: bool = False


def find_lesson_hits(
    context: SearchContext, viewer: Viewer, message: str, budget_ms: int, deadline: Deadline | None = None
) -> tuple[Hit, ...]:
    """Return the lessons nearest to a message, however far, so that each can be compared with the others."""
    lessons = Filter(kinds=(Kind.LESSON,), viewer=viewer)
    if not has_allowed(context, lessons):
        return ()
    # A lesson that is linked to another one need not apply.
    query = Query(message, COMPARED, lessons, budget_ms, channels=SEARCHED_CHANNELS, min_relevance=0.0)
    return search(context, query, deadline).hits


def choose_lessons(hits: Sequence[Hit], message: str) -> list[Hit]:
    """Return the lessons that apply to a message, the surest first, each at least as relevant as other results."""
    hits = [hit for hit in hits if hit.annotations.superseded_by is None]
    if not hits:
        return []
    only_asks = asks_information(message)
    chosen = []
    for hit, evidence in zip(hits, gather_lesson_evidence(hits, message), strict=True):
        # An activity alone proves nothing: the lesson must not be surely unrelated.
        is_possible = (hit.relevance >= IRRELEVANT or evidence.is_occasion) and not only_asks
        probability = estimate_probability(evidence) if is_possible else 0.0
        if probability >= APPLIES or hit.relevance >= SURELY_RELEVANT:
            chosen.append(replace(hit, relevance=max(probability, hit.relevance, RELEVANT)))
    return sorted(chosen, key=lambda hit: hit.relevance, reverse=True)[:MOST_LESSONS]


def gather_lesson_evidence(hits: Sequence[Hit], message: str) -> list[LessonEvidence]:
    """Return the measures of each lesson for a message."""
    logits = [_logit(hit.relevance) for hit in hits]
    texts = [render_text(hit.memory) for hit in hits]
    said, asked = frozenset(search_tokens(message)), list_activities(message)
    shared = _share_activities([list_activities(text) for text in texts], asked)
    leads = zip(_lead(logits, TYPICAL_LOGIT), _lead(shared, 0.0), strict=True)
    return [
        LessonEvidence(logit, logit_lead, information, lead, _names_occasion(hit.memory, text, said, asked))
        for hit, text, logit, information, (logit_lead, lead) in zip(hits, texts, logits, shared, leads, strict=True)
    ]


def _names_occasion(lesson: Memory, text: str, said: frozenset[str], asked: frozenset[str]) -> bool:
    """Return whether a message's words include all words of an occasion of a lesson, one of which is an activity."""
    condition = lesson.details.get("applies_when")
    occasions = _OR.split(condition) if condition else list_occasions(text)
    return any(
        (words := frozenset(search_tokens(occasion))) and words <= said and list_activities(occasion) & asked
        for occasion in occasions
    )


def estimate_probability(evidence: LessonEvidence) -> float:
    """Return the probability that a lesson applies to a message."""
    logit = (
        INTERCEPT
        + RELEVANCE * evidence.relevance
        + RELEVANCE_LEAD * evidence.relevance_lead
        + ACTIVITIES * evidence.activities
        + ACTIVITIES_LEAD * evidence.activities_lead
        + OCCASION * evidence.is_occasion
    )
    return 1 / (1 + math.exp(-logit))


def _share_activities(named: Sequence[frozenset[str]], asked: frozenset[str]) -> list[float]:
    """Return the information of the activities that each lesson shares with a message; rare ones count more."""
    holders = Counter(activity for lesson in named for activity in lesson)
    weight = {activity: math.log((1 + len(named)) / (0.5 + holders[activity])) for activity in asked}
    return [sum(weight[activity] for activity in lesson & asked) for lesson in named]


def _lead(values: Sequence[float], least: float) -> list[float]:
    """Return how far each value is above the best of the others, which count as a minimum at least; negative below."""
    best, second = heapq.nlargest(2, [*values, least, least])
    return [value - (second if value == best else best) for value in values]


def _logit(probability: float) -> float:
    clipped = min(max(probability, SUREST), 1 - SUREST)
    return math.log(clipped / (1 - clipped))
