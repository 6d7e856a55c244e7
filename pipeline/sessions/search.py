"""Search sessions by what was said in them.

A session's score adds up the BM25 of its text, in which an agent's words and common words count less, that of the best
turn of a person, each as a share of what a text of average length with all words of the query gets, and half of the
closeness of its closest turn of a person, or conclusion (decision 0099). Every hit is checked against the store, which
alone knows what was deleted or is incognito.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from pipeline.index.dense import DenseScores
from pipeline.index.encoder import Encoder, rarity
from pipeline.index.lexical import LexicalScores
from pipeline.index.row_arrays import NOBODY, Floats, Seqs, values_at
from pipeline.index.segment import K1
from pipeline.index.turn_index import TurnIndex
from pipeline.kernel.errors import EncoderUnavailable, IndexUnavailable, StorageUnreachable
from pipeline.kernel.records.people import owner_of
from pipeline.kernel.records.recall import SessionHit
from pipeline.kernel.store import meta, turns
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.subagents import list_subagents
from pipeline.kernel.store.turns import FoundTurn, Role
from pipeline.recall.query import parse_query
from pipeline.recall.search_context import DenseSearch
from pipeline.sessions.orders.commands import read_commands
from pipeline.text.excerpts import find_excerpt
from pipeline.text.messages import is_small_talk
from pipeline.text.tokens import search_tokens

QUOTE_CHARS = 240
# What an agent's words count of a person's in the text of a session: agents repeat, explain and list.
AGENT_SHARE = 0.2
# Fitted by maximum likelihood to the best session for each question of these sets, against the best session of an
# archive in which nothing answers the question. The closeness of a session is measured from that of the nearest
# background message. From RELEVANT on, 163 of 183 questions about other sessions have no result, 27 of 33 others the
# right one; with the scores before decision 0099, 159 and 28.
RELEVANT = 0.5


# The weights of 1, the score, the root of the information, the coverage, and the closeness.
BY_WORDS = np.array([-15.5, 2.56, 2.48, 3.28, 0])
BY_MEANING = np.array([-13.95, 3.0, 2.31, 2.31, 5.46])
# The share of the closest turn of a person, or conclusion, in a session's score.
MEANING = 0.5
# Turns that an approximate index returns.
NEAREST = 160
# The best turns of a session, of which the first that still exists is quoted.
QUOTABLE = 4


# Returns the dense search of a model.
FindDense = Callable[[str], DenseSearch]


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """A text, and whose sessions may answer it.

    With `relevant_only`, sessions that are not surely about the text are left out, and so is everything for thanks.
    With `only_normal`, turns that a private memory was made of are not quoted; with `only_current`, neither are turns
    whose memory is not current, nor commands such as "forget that".
    """

    text: str
    person_id: str | None
    limit: int = 5
    relevant_only: bool = False
    except_session: str | None = None
    only_normal: bool = True
    only_current: bool = False


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The scores of sessions by number, and of turns by row number, for a query."""

    words: LexicalScores
    by_words: Floats
    meaning: Floats
    sessions: Floats
    turns: Floats
    background: float

    @classmethod
    def of(cls, words: LexicalScores, by_words: Floats, dense: DenseScores | None) -> "_Ranked":
        """Return the scores of a query."""
        session_of, turns = words.corpus.session_of, words.scores / max(words.ceiling, 1e-9)
        meaning, background = _score_meaning(session_of, dense), 1.0
        if dense is not None:
            background = dense.background_similarity
            closeness = dense.closeness(dense.of(np.arange(len(turns))))
            turns = turns + MEANING * np.where(closeness > background, closeness, 0)
        # Without a word of the query, a session must be closer to it than all general messages.
        sessions = np.where((by_words > 0) | (meaning > background), by_words + MEANING * meaning, 0)
        return cls(words, by_words, meaning, sessions, turns, background)

    def describe(self, sessions: Sequence[int] | Seqs) -> dict[int, tuple[Seqs, float]]:
        """Return of sessions the turns that say most about the query, best first, and the relevance.

        The relevance is the probability that a session is about the query.
        """
        session_of, chosen = self.words.corpus.session_of, np.zeros(len(self.sessions), np.bool_)
        chosen[sessions] = True
        rows = np.flatnonzero(chosen[session_of] & (self.turns > 0))
        rows = rows[np.lexsort((-self.turns[rows], session_of[rows]))]
        numbers, starts = np.unique(session_of[rows], return_index=True)
        rows = rows[np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows))) < QUOTABLE]
        starts = np.searchsorted(session_of[rows], numbers)
        meaning, information = self.meaning[numbers], np.maximum.reduceat(self.words.information[rows], starts)
        signals = np.ones((5, len(numbers)))
        signals[1], signals[2] = self.by_words[numbers], np.sqrt(information)
        signals[3], signals[4] = self.words.vocabulary_coverage, meaning - self.background
        # Until one of its turns is embedded, a session is judged by its words.
        weights = np.where(meaning > 0, BY_MEANING[:, None], BY_WORDS[:, None])
        relevance = 1 / (1 + np.exp(-(weights * signals).sum(axis=0)))
        best = zip(np.split(rows, starts[1:]), relevance.tolist(), strict=False)
        return dict(zip(numbers.tolist(), best, strict=False))


def search_sessions(
    database: Database, index: TurnIndex, query: SessionQuery, now: datetime, find_dense: FindDense | None = None
) -> list[SessionHit]:
    """Return the sessions that are most about a query, best first; by words alone without `find_dense`."""
    with database.read() as db:
        if not index.lexical.refresh(db).count:
            return []
    question = parse_query(query.text, now)
    if not question.tokens or (query.relevant_only and is_small_talk(query.text)):
        return []
    dense = None if find_dense is None else search_turn_vectors(database, query.text, find_dense)[0]
    with database.read() as db:
        words = index.lexical.search(db, question.tokens)
        ranked = _Ranked.of(words, _score_words(words, index), dense)
        return _list_hits(db, index, ranked, query, frozenset(question.tokens))


def _score_words(words: LexicalScores, index: TurnIndex) -> Floats:
    session_of = words.corpus.session_of
    by_person = values_at(index.sessions.by_person, np.arange(len(session_of)))
    shares = np.where(by_person, np.float32(1), np.float32(AGENT_SHARE))
    rarities = {token: rarity(token) for token in words.postings}
    by_session, weight = words.corpus.score_sessions(words.postings, rarities, shares)
    rows = np.flatnonzero(by_person & (words.scores > 0))
    best = np.zeros_like(by_session)
    np.maximum.at(best, session_of[rows], words.scores[rows])
    best[NOBODY] = 0
    total: Floats = by_session / max(weight / (1 + K1), 1e-9) + best / max(words.ceiling, 1e-9)
    return total.astype(np.float32)


def search_turn_vectors(
    database: Database, text: str, find_dense: FindDense
) -> tuple[DenseScores, Encoder] | tuple[None, None]:
    """Return how close turns are to a text, and the encoder that compared them; None where no vectors can be read."""
    with database.read() as db:
        model = meta.get(db, meta.TURN_VECTORS_MODEL)
        generation = meta.get_int(db, meta.TURN_VECTORS_EPOCH), meta.get_int(db, meta.TURN_VECTORS_GENERATION)
    if model is None:
        return None, None
    try:
        dense = find_dense(model)
        return dense.index.search(dense.encoder.encode_query(text), generation, NEAREST), dense.encoder
    except (EncoderUnavailable, IndexUnavailable, StorageUnreachable):
        # Words alone find most sessions; the repair of the memories' vectors repairs these, too.
        return None, None


def _score_meaning(session_of: NDArray[np.int32], dense: DenseScores | None) -> Floats:
    """Return how much closer the closest turn of each session is to the query than unrelated texts, at least 0."""
    best = np.zeros(int(session_of.max()) + 1, np.float32)
    if dense is not None:
        rows = np.flatnonzero(dense.cosines > 0)
        rows = rows[rows < len(session_of)]
        np.maximum.at(best, session_of[rows], dense.closeness(dense.cosines[rows]))
        best[NOBODY] = 0
    return best


def _list_hits(
    db: Connection, index: TurnIndex, ranked: _Ranked, query: SessionQuery, asked: frozenset[str]
) -> list[SessionHit]:
    numbers = np.flatnonzero(ranked.sessions > 0)
    if query.relevant_only:
        best = ranked.describe(numbers)
        numbers = np.array([session for session in best if best[session][1] >= RELEVANT], np.int64)
    sessions, hits = _list_allowed(db, index, ranked.sessions, numbers, query), list[SessionHit]()
    # Several sessions at a time: a statement for each would take as long as the rest of the search.
    while chosen := list(islice(sessions, query.limit - len(hits))):
        best = ranked.describe(chosen)
        firsts = {turn.seq: turn for turn in _list_quotable(db, [int(rows[0]) for rows, _ in best.values()], query)}
        for session in filter(best.__contains__, chosen):
            (first, *others), relevance = best[session][0].tolist(), best[session][1]
            # Without a turn in the store, the index has not caught up with a deletion.
            quoted = _quote([firsts[first]] if first in firsts else [], asked)
            quoted = quoted or _quote(_list_quotable(db, others, query), asked)
            if quoted is not None:
                hits.append(_hit(*quoted, float(ranked.sessions[session]), relevance))
    return hits


def _quote(turns: Sequence[FoundTurn], asked: frozenset[str]) -> tuple[FoundTurn, str] | None:
    """Return the first turn with a quote that has words, and the quote; "?" says nothing."""
    quotes = ((turn, find_excerpt(turn.content, asked, QUOTE_CHARS)) for turn in turns)
    return next(((turn, quote) for turn, quote in quotes if search_tokens(quote)), None)


def _list_quotable(db: Connection, rows: Sequence[int], query: SessionQuery) -> list[FoundTurn]:
    """Return the turns that may be quoted, in the order of their rows."""
    found = turns.list_found(db, rows, query.person_id, only_normal=query.only_normal)
    quotable = [found[row] for row in rows if row in found]
    if not query.only_current:
        return quotable
    not_current = turns.list_not_current(db, found)
    return [turn for turn in quotable if turn.seq not in not_current and not _is_command(turn)]


def _is_command(turn: FoundTurn) -> bool:
    return turn.role is Role.USER and bool(read_commands(turn.content))


def _list_allowed(
    db: Connection, index: TurnIndex, scores: Floats, numbers: Seqs, query: SessionQuery
) -> Iterator[int]:
    """Yield those of some sessions that a person may see, best first; the later of equals first."""
    hidden = turns.list_hidden_sessions(db)
    if query.except_session is not None:
        # Its host gives a session the reports of its subagents.
        hidden |= {query.except_session, *list_subagents(db, query.except_session)}
    for session in numbers[np.lexsort((-numbers, -scores[numbers]))].tolist():
        session_id = index.sessions.id_of(session)
        if owner_of(session_id) == query.person_id and session_id not in hidden:
            yield session


def _hit(turn: FoundTurn, quote: str, score: float, relevance: float) -> SessionHit:
    return SessionHit(
        session_id=turn.session_id,
        agent=turn.agent,
        title=turn.title,
        at=turn.at,
        turn_seq=turn.seq,
        role=turn.role,
        quote=quote,
        score=score,
        relevance=relevance,
        is_relevant=relevance >= RELEVANT,
    )
