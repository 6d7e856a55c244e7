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
from functools import lru_cache

from pipeline.recall.relevance import IRRELEVANT, RELEVANT
from pipeline.text.activities import asks_information, list_activities, list_occasions
from pipeline.text.tokens import search_tokens

# Maximum number of lessons that a message is shown.
MOST_LESSONS = 3
# Occasions whose words are kept.
MOST_OCCASIONS = 4096
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


@dataclass(frozen=True, slots=True)
class ComparedLesson:
    """A lesson that is compared with others for a message: the text that an agent reads of it, and its relevance.

    `applies_when` is its condition, None if it states none.
    """

    seq: int
    text: str
    applies_when: str | None
    relevance: float


def may_any_apply(relevance: float, message: str) -> bool:
    """Return whether a lesson may apply to a message if no lesson is more relevant than this."""
    if relevance >= SURELY_RELEVANT:
        return True
    if asks_information(message):
        return False
    if list_activities(message):
        return True
    # Without an activity, only relevance counts, and it leads by most if all others are irrelevant.
    logit = _logit(relevance)
    return estimate_probability(LessonEvidence(logit, logit - TYPICAL_LOGIT, 0.0, 0.0)) >= APPLIES


def choose_lessons(lessons: Sequence[ComparedLesson], message: str) -> list[ComparedLesson]:
    """Return the lessons that apply to a message, the surest first, each at least as relevant as other results."""
    if not lessons or not may_any_apply(max(lesson.relevance for lesson in lessons), message):
        return []
    only_asks = asks_information(message)
    chosen = []
    for lesson, evidence in zip(lessons, gather_lesson_evidence(lessons, message), strict=True):
        # An activity alone proves nothing: the lesson must not be surely unrelated.
        is_possible = (lesson.relevance >= IRRELEVANT or evidence.is_occasion) and not only_asks
        probability = estimate_probability(evidence) if is_possible else 0.0
        if probability >= APPLIES or lesson.relevance >= SURELY_RELEVANT:
            chosen.append(replace(lesson, relevance=max(probability, lesson.relevance, RELEVANT)))
    return sorted(chosen, key=lambda lesson: lesson.relevance, reverse=True)[:MOST_LESSONS]


def gather_lesson_evidence(lessons: Sequence[ComparedLesson], message: str) -> list[LessonEvidence]:
    """Return the measures of each lesson for a message."""
    logits = [_logit(lesson.relevance) for lesson in lessons]
    said, asked = frozenset(search_tokens(message)), list_activities(message)
    shared = _share_activities([list_activities(lesson.text) for lesson in lessons], asked)
    leads = zip(_lead(logits, TYPICAL_LOGIT), _lead(shared, 0.0), strict=True)
    return [
        LessonEvidence(logit, logit_lead, information, lead, _names_occasion(lesson, said, asked))
        for lesson, logit, information, (logit_lead, lead) in zip(lessons, logits, shared, leads, strict=True)
    ]


def _names_occasion(lesson: ComparedLesson, said: frozenset[str], asked: frozenset[str]) -> bool:
    """Return whether a message's words include all words of an occasion of a lesson, one of which is an activity."""
    if not asked:
        return False
    occasions = _OR.split(lesson.applies_when) if lesson.applies_when else list_occasions(lesson.text)
    return any(words and words <= said and activities & asked for words, activities in map(_parse_occasion, occasions))


@lru_cache(MOST_OCCASIONS)
def _parse_occasion(occasion: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of an occasion, and its activities."""
    return frozenset(search_tokens(occasion)), list_activities(occasion)


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
