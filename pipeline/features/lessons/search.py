"""Find the lessons that apply to a message: the nearest are compared by their texts, and only the chosen are read."""

import heapq
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from sqlite3 import Connection

import numpy as np

from pipeline.index.dense import DenseScores
from pipeline.index.lexical import LexicalScores
from pipeline.kernel.kinds import render_text
from pipeline.kernel.records import Filter, Kind, Viewer
from pipeline.kernel.records.recall import NOTHING, SEARCHED_CHANNELS, Channel, Hit, Query, Step
from pipeline.kernel.store import index_state, memories
from pipeline.kernel.store.memory_columns import RenderedRow, read_showable_texts
from pipeline.recall.annotations import find_annotations, find_superseding
from pipeline.recall.deadline import Deadline
from pipeline.recall.evidence import Candidates
from pipeline.recall.first_pass import has_allowed
from pipeline.recall.query_scores import ChannelScores, QueryScores
from pipeline.recall.rank import LITERAL, Ranking
from pipeline.recall.relevance import IRRELEVANT, RELEVANT, bound_lesson_relevance, calibrate, fitted, relevance
from pipeline.recall.search import search_for
from pipeline.recall.search_context import SearchContext
from pipeline.text.sentences import asks_information, list_activities, list_occasions
from pipeline.text.tokens import search_tokens

# Maximum number of lessons that a message is shown.
MOST_LESSONS = 3
# Occasions whose words are kept.
MOST_OCCASIONS = 4096
# Limits of a probability before it becomes a logit.
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
SURELY_RELEVANT = calibrate(0.88)

_OR = re.compile(r",|\b(?:or|oder|o|u|ou)\b", re.IGNORECASE)
# Maximum number of lessons that are compared.
COMPARED = 80


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
            chosen.append(replace(lesson, relevance=max(calibrate(probability), lesson.relevance, RELEVANT)))
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


def _logit(relevance: float) -> float:
    clipped = min(max(fitted(relevance), SUREST), 1 - SUREST)
    return math.log(clipped / (1 - clipped))


def find_lessons_for(
    context: SearchContext,
    viewer: Viewer,
    message: str,
    budget_ms: int,
    deadline: Deadline | None = None,
    scores: QueryScores | None = None,
) -> tuple[Hit, ...]:
    """Return the lessons that apply to a message, the surest first.

    `scores` are shared with other searches of the same message.
    """
    lessons = Filter(kinds=(Kind.LESSON,), viewer=viewer)
    known = {} if scores is None else scores.find_last(message)
    if not (_may_any_apply(context, message, known) if known else has_allowed(context, lessons)):
        return ()
    # A lesson that is linked to another one need not apply.
    query = Query(message, COMPARED, lessons, budget_ms, channels=SEARCHED_CHANNELS, min_relevance=0.0)
    return search_for(context, query, deadline or Deadline(budget_ms), _build_applying, scores).hits


def _may_any_apply(context: SearchContext, message: str, known: ChannelScores) -> bool:
    """Return whether a lesson may apply to a message, from the scores alone: for most messages, none does."""
    words: LexicalScores | None = known.get(Channel.LEXICAL)
    meaning: DenseScores | None = known.get(Channel.DENSE)
    seqs = np.flatnonzero(context.ranking_features.are_among((Kind.LESSON,)))
    if words is None or meaning is None or not len(seqs):
        return bool(len(seqs))
    bound = bound_lesson_relevance(words, meaning, seqs)
    highest = float(bound.max())
    if may_any_apply(highest, message):
        return True
    # Few memories wait for the vectors of their present text: only these are looked up that would change the answer.
    by_words = bound_lesson_relevance(words, meaning, seqs, by_words=True)
    if not may_any_apply(float(by_words.max()), message):
        return False
    with context.database.read() as db:
        outdated = index_state.list_outdated(db, seqs[by_words > highest].tolist())
    return bool(outdated) and may_any_apply(float(by_words[np.isin(seqs, outdated)].max()), message)


def _build_applying(
    db: Connection, ranking: Ranking, _candidates: Candidates, query: Query, deadline: Deadline
) -> tuple[Hit, ...]:
    """Return hits for the lessons of a ranking that apply to the query."""
    chosen = choose_lessons(list_compared(db, ranking, query), query.text)
    if not chosen:
        return ()
    shown = memories.filter_showable(db, [lesson.seq for lesson in chosen], query.filter)
    annotations = find_annotations(db, list(shown.values()), lambda: deadline.must_skip(Step.STALENESS))
    position_of = {seq: position for position, seq in enumerate(ranking.evidence.seqs.tolist())}
    literal_scores = ranking.part(LITERAL)
    return tuple(
        Hit(
            shown[lesson.seq],
            float(ranking.score[position_of[lesson.seq]]),
            lesson.relevance,
            annotations=annotations.get(lesson.seq, NOTHING),
            literal_score=float(literal_scores[position_of[lesson.seq]]),
        )
        for lesson in chosen
        if lesson.seq in shown
    )


def list_compared(db: Connection, ranking: Ranking, query: Query) -> list[ComparedLesson]:
    """List the best lessons of a ranking that are current, best first; none if surely no lesson applies."""
    probable = relevance(ranking)
    if not may_any_apply(float(probable.max(initial=0.0)), query.text):
        return []
    seqs = ranking.evidence.seqs[ranking.order].tolist()
    rows: dict[int, RenderedRow] = {}
    # The store decides: if it removes lessons, the next ones move up.
    for start in range(0, len(seqs), query.k):
        rows |= read_showable_texts(db, seqs[start : start + query.k], query.filter)
        if len(rows) >= query.k:
            break
    compared = dict(list(rows.items())[: query.k])
    superseded = find_superseding(db, {seq: row.scope for seq, row in compared.items()})
    relevance_of = dict(zip(seqs, probable[ranking.order].tolist(), strict=True))
    return [
        ComparedLesson(seq, render_text(row), row.details.get("applies_when"), relevance_of[seq])
        for seq, row in compared.items()
        if seq not in superseded
    ]
