"""Evidence: everything that the ranking weighs, for the memories that may be shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np

from pipeline.index.dense import DenseScores
from pipeline.index.lexical import LexicalScores
from pipeline.index.rows import taken
from pipeline.index.sessions import SessionMap
from pipeline.index.standings import Standings
from pipeline.recall.literals import literal_flags
from pipeline.recall.query import Channel
from pipeline.recall.question import Question
from pipeline.recall.rank import Evidence, Flags, Integers
from pipeline.text.tokens import ASKS, NAMES_TIME, speaker_term


@dataclass(frozen=True, slots=True)
class Candidates:
    """Row numbers of what may be an answer, ascending, each channel's best in order, and what the channels scored."""

    seqs: Integers
    tops: Mapping[Channel, Integers]
    lexical: LexicalScores | None
    dense: DenseScores | None
    holders: Sequence[Integers]

    def channels(self) -> Iterator[tuple[Channel, LexicalScores | DenseScores, Integers]]:
        """Yield what answered: the channel, its scores, its best."""
        for channel, scores in ((Channel.LEXICAL, self.lexical), (Channel.DENSE, self.dense)):
            if scores is not None:
                yield channel, scores, self.tops[channel]


def gather(
    db: Connection, sessions: SessionMap, standings: Standings, question: Question, candidates: Candidates
) -> Evidence:
    """Gather the evidence for every candidate."""
    seqs = candidates.seqs
    before, after = sessions.before(seqs), sessions.after(seqs)
    nothing = np.zeros(len(seqs), np.float32)
    lexical, dense = candidates.lexical, candidates.dense
    days = standings.days[seqs]
    return Evidence(
        seqs=seqs,
        sessions=sessions.sessions(seqs).astype(np.int64),
        before=before,
        after=after,
        lexical=nothing if lexical is None else lexical.of(seqs),
        session_lexical=nothing if lexical is None else lexical.of_sessions(seqs),
        ceiling=0.0 if lexical is None else lexical.ceiling,
        session_ceiling=0.0 if lexical is None else lexical.session_ceiling,
        information=nothing if lexical is None else taken(lexical.information, seqs),
        dense=nothing if dense is None else dense.closeness(dense.of(seqs)),
        context=nothing if dense is None else dense.closeness(dense.in_context(seqs, before, after)),
        familiarity=0.0 if lexical is None else lexical.familiarity,
        strangers=0.0 if dense is None else dense.strangers,
        lengths=nothing if lexical is None else taken(lexical.corpus.lengths, seqs).astype(np.float32),
        asks=_holding(lexical, (ASKS,), seqs),
        names_time=_holding(lexical, (NAMES_TIME,) if question.asks_time else (), seqs),
        speaks=_speaks(question, lexical, seqs),
        literal=_literal(db, question, candidates, seqs),
        moment=_within(question, days),
        personal_fact=standings.keyed[seqs] & question.personal,
        importance=standings.importance[seqs],
        days=days.astype(np.float32),
        repeats=standings.repeats[seqs],
    )


def _holding(lexical: LexicalScores | None, terms: Sequence[str], seqs: Integers) -> Flags:
    return np.zeros(len(seqs), np.bool_) if lexical is None else lexical.corpus.having(terms, seqs)


def _speaks(question: Question, lexical: LexicalScores | None, seqs: Integers) -> Flags:
    return _holding(lexical, [speaker_term(token) for token in dict.fromkeys(question.tokens)], seqs)


def _literal(db: Connection, question: Question, candidates: Candidates, seqs: Integers) -> Flags:
    if candidates.lexical is None:
        return np.zeros(len(seqs), np.bool_)
    return literal_flags(db, question, candidates.lexical, candidates.holders, seqs)


def _within(question: Question, days: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Flags:
    if question.span is None:
        return np.zeros(len(days), np.bool_)
    since, until = question.span.days
    return (days >= since) & (days < until)
