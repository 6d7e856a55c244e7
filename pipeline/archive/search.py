"""Search sessions by what was said in them.

A session's score adds up what its whole text and its best turns share with the query: BM25 over sessions, and half of
the BM25 of the best turn and of the best turn of a person, each as a share of what a text of average length with all
words of the query gets. Every hit is checked against the store, which alone knows what was deleted or is incognito.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Connection

import numpy as np

from pipeline.index.lexical import LexicalScores
from pipeline.index.row_arrays import NOBODY, Floats
from pipeline.index.turn_index import TurnIndex
from pipeline.recall.query import parse_query
from pipeline.records.people import owner_of
from pipeline.records.sessions import SessionHit
from pipeline.store import turn_search
from pipeline.store.database import Database
from pipeline.store.turn_search import FoundTurn
from pipeline.text.excerpts import find_excerpt
from pipeline.text.messages import is_small_talk

QUOTE_CHARS = 240
# The share of the best turn, and of the best turn of a person, in a session's score. Chosen on LongMemEval-S and
# sde-bench: the same session is among the first five for 81 of 81 questions, without these shares for 79.
BEST_TURN = BEST_OF_PERSON = 0.5
# Fitted by maximum likelihood to the best session for each question of these sets, against the best session of an
# archive in which nothing answers the question. With the bar, 95 of 100 unrelated questions have no result, and
# 87 of 100 others have the right one.
INTERCEPT = -14.8
SCORE = 2.56
SHARED_INFORMATION = 2.48
VOCABULARY_COVERAGE = 3.28
RELEVANT = 0.66
# The best turns of a session, of which the first that still exists is quoted.
QUOTABLE = 4


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """A text, and whose sessions may answer it.

    With `relevant_only`, sessions that are not surely about the text are left out, and so is everything for thanks.
    With `only_normal`, turns that a private memory was made of are not quoted.
    """

    text: str
    person_id: str | None
    limit: int = 5
    relevant_only: bool = False
    except_session: str | None = None
    only_normal: bool = True


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The scores of sessions by number, and of turns by row number, for a query."""

    words: LexicalScores
    sessions: Floats

    def relevance(self, session: int, rows: Sequence[int]) -> float:
        """Return the probability that a session with some best turns is about the query."""
        information = max((float(self.words.information[row]) for row in rows), default=0.0)
        logit = (
            INTERCEPT
            + SCORE * float(self.sessions[session])
            + SHARED_INFORMATION * math.sqrt(information)
            + VOCABULARY_COVERAGE * self.words.vocabulary_coverage
        )
        return 1 / (1 + math.exp(-logit))


def search_sessions(database: Database, index: TurnIndex, query: SessionQuery, now: datetime) -> list[SessionHit]:
    """Return the sessions that are most about a query, best first."""
    question = parse_query(query.text, now)
    if not question.tokens or (query.relevant_only and is_small_talk(query.text)):
        return []
    with database.read() as db:
        words = index.lexical.search(db, question.tokens)
        ranked = _Ranked(words, _score_sessions(words, index))
        return _list_hits(db, index, ranked, query, frozenset(question.tokens))


def _score_sessions(words: LexicalScores, index: TurnIndex) -> Floats:
    session_of = words.corpus.session_of
    rows = np.flatnonzero(words.scores > 0)
    rows = rows[rows < len(session_of)]
    best = np.zeros(len(words.sessions), np.float32)
    best_of_person = np.zeros_like(best)
    numbers, scores = session_of[rows], words.scores[rows]
    np.maximum.at(best, numbers, scores)
    of_person = index.sessions.by_person[rows]
    np.maximum.at(best_of_person, numbers[of_person], scores[of_person])
    ceiling, session_ceiling = max(words.ceiling, 1e-9), max(words.session_ceiling, 1e-9)
    total: Floats = words.sessions / session_ceiling + (BEST_TURN * best + BEST_OF_PERSON * best_of_person) / ceiling
    total[NOBODY] = 0
    return total


def _list_hits(
    db: Connection, index: TurnIndex, ranked: _Ranked, query: SessionQuery, asked: frozenset[str]
) -> list[SessionHit]:
    hits: list[SessionHit] = []
    for session in _list_allowed(db, index, ranked.sessions, query):
        rows = _list_best_turns(ranked.words, session)
        relevance = ranked.relevance(session, rows)
        if query.relevant_only and relevance < RELEVANT:
            continue
        turns = turn_search.list_found(db, rows, query.person_id, only_normal=query.only_normal)
        turn = next((turns[row] for row in rows if row in turns), None)
        # Without a turn in the store, the index has not caught up with a deletion.
        if turn is not None:
            hits.append(_hit(turn, float(ranked.sessions[session]), relevance, asked))
        if len(hits) == query.limit:
            break
    return hits


def _list_allowed(db: Connection, index: TurnIndex, scores: Floats, query: SessionQuery) -> Iterator[int]:
    """Yield the sessions that a person may see, best first; the later of equals first."""
    hidden = turn_search.list_hidden_sessions(db)
    numbers = np.flatnonzero(scores > 0)
    for session in numbers[np.lexsort((-numbers, -scores[numbers]))].tolist():
        session_id = index.sessions.id_of(session)
        if owner_of(session_id) == query.person_id and session_id not in hidden | {query.except_session}:
            yield session


def _list_best_turns(words: LexicalScores, session: int) -> list[int]:
    rows = np.flatnonzero(words.corpus.session_of == session)
    best: list[int] = rows[np.argsort(-words.scores[rows], kind="stable")][:QUOTABLE].tolist()
    return best


def _hit(turn: FoundTurn, score: float, relevance: float, asked: frozenset[str]) -> SessionHit:
    return SessionHit(
        session_id=turn.session_id,
        agent=turn.agent,
        title=turn.title,
        at=turn.at,
        turn_seq=turn.seq,
        role=turn.role,
        quote=find_excerpt(turn.content, asked, QUOTE_CHARS),
        score=score,
        relevance=relevance,
        is_relevant=relevance >= RELEVANT,
    )
