"""Evidence: everything that the ranking weighs, for the memories that may be shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np

from pipeline.index.dense import DenseScores
from pipeline.index.lexical import LexicalScores
from pipeline.index.ranking_features import RankingFeatures
from pipeline.index.rows import Seqs, values_at
from pipeline.index.sessions import SessionMap
from pipeline.recall.features import Evidence, Flags
from pipeline.recall.literals import literal_flags
from pipeline.recall.query import ParsedQuery
from pipeline.records.recall import Channel
from pipeline.text.tokens import ASKS, NAMES_TIME, speaker_term


@dataclass(frozen=True, slots=True)
class Candidates:
    """Row numbers of what may be an answer, ascending, each channel's best in order, and what the channels scored."""

    seqs: Seqs
    tops: Mapping[Channel, Seqs]
    lexical: LexicalScores | None
    dense: DenseScores | None
    holders: Sequence[Seqs]

    def channels(self) -> Iterator[tuple[Channel, LexicalScores | DenseScores, Seqs]]:
        """Yield what answered: the channel, its scores, its best."""
        for channel, scores in ((Channel.LEXICAL, self.lexical), (Channel.DENSE, self.dense)):
            if scores is not None:
                yield channel, scores, self.tops[channel]


def gather_evidence(
    db: Connection,
    sessions: SessionMap,
    ranking_features: RankingFeatures,
    question: ParsedQuery,
    candidates: Candidates,
) -> Evidence:
    """Gather the evidence for every candidate."""
    seqs = candidates.seqs
    before, after = sessions.before(seqs), sessions.after(seqs)
    nothing = np.zeros(len(seqs), np.float32)
    lexical, dense = candidates.lexical, candidates.dense
    days = ranking_features.days[seqs]
    return Evidence(
        seqs=seqs,
        sessions=sessions.sessions(seqs).astype(np.int64),
        before=before,
        after=after,
        lexical=nothing if lexical is None else lexical.of(seqs),
        session_lexical=nothing if lexical is None else lexical.of_sessions(seqs),
        ceiling=0.0 if lexical is None else lexical.ceiling,
        session_ceiling=0.0 if lexical is None else lexical.session_ceiling,
        information=nothing if lexical is None else values_at(lexical.information, seqs),
        dense=nothing if dense is None else dense.closeness(dense.of(seqs)),
        context=nothing if dense is None else dense.closeness(dense.in_context(seqs, before, after)),
        vocabulary_coverage=0.0 if lexical is None else lexical.vocabulary_coverage,
        background_similarity=0.0 if dense is None else dense.background_similarity,
        lengths=nothing if lexical is None else values_at(lexical.corpus.lengths, seqs).astype(np.float32),
        asks=_holding(lexical, (ASKS,), seqs),
        names_time=_holding(lexical, (NAMES_TIME,) if question.asks_time else (), seqs),
        speaks=_speaks(question, lexical, seqs),
        literal=_literal(db, question, candidates, seqs),
        in_time_range=_in_time_range(question, days),
        personal_fact=ranking_features.keyed[seqs] & question.personal,
        importance=ranking_features.importance[seqs],
        days=days.astype(np.float32),
        repeats=ranking_features.repeats[seqs],
    )


def _holding(lexical: LexicalScores | None, terms: Sequence[str], seqs: Seqs) -> Flags:
    return np.zeros(len(seqs), np.bool_) if lexical is None else lexical.corpus.having(terms, seqs)


def _speaks(question: ParsedQuery, lexical: LexicalScores | None, seqs: Seqs) -> Flags:
    return _holding(lexical, [speaker_term(token) for token in dict.fromkeys(question.tokens)], seqs)


def _literal(db: Connection, question: ParsedQuery, candidates: Candidates, seqs: Seqs) -> Flags:
    if candidates.lexical is None:
        return np.zeros(len(seqs), np.bool_)
    return literal_flags(db, question, candidates.lexical, candidates.holders, seqs)


def _in_time_range(question: ParsedQuery, days: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Flags:
    if question.time_range is None:
        return np.zeros(len(days), np.bool_)
    since, until = question.time_range.days
    return (days >= since) & (days < until)
