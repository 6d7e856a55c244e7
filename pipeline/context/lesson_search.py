"""Find the lessons that apply to a message: the nearest are compared by their texts, and only the chosen are read."""

from sqlite3 import Connection

import numpy as np

from pipeline.context.lesson_bar import ComparedLesson, choose_lessons, may_any_apply
from pipeline.index.dense import DenseScores
from pipeline.index.lexical import LexicalScores
from pipeline.kinds import render_text
from pipeline.recall.annotations import find_annotations, find_superseding
from pipeline.recall.deadline import Deadline
from pipeline.recall.evidence import Candidates
from pipeline.recall.first_pass import has_allowed
from pipeline.recall.query_scores import ChannelScores, QueryScores
from pipeline.recall.rank import LITERAL, Ranking
from pipeline.recall.relevance import bound_lesson_relevance, relevance
from pipeline.recall.search import search_for
from pipeline.recall.search_context import SearchContext
from pipeline.records import Filter, Kind, Viewer
from pipeline.records.recall import NOTHING, SEARCHED_CHANNELS, Channel, Hit, Query, Step
from pipeline.store import index_state, memories
from pipeline.store.memory_rows import RenderedRow, read_showable_texts

# Maximum number of lessons that are compared.
COMPARED = 80


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
