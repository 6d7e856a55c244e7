"""Evidence: the inputs of ranking for the memories that may be shown.

One part are literals: text that a query quotes exactly, and the few memories that contain it. A path, ticket or
symbol counts, and so does any run of words, such as an error message, that a memory contains literally. The fewer
memories contain it, the more it counts; common text is left to the ranking.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.index.dense import DenseScores
from pipeline.index.lexical import LexicalScores
from pipeline.index.row_arrays import (
    NOBODY,
    Floats,
    RankingFeatures,
    Seqs,
    SessionMap,
    flag_members,
    look_up,
    values_at,
)
from pipeline.kernel.records import Kind
from pipeline.kernel.records.recall import Channel
from pipeline.recall.literal_matches import MAX_HOLDERS, find_longest_run, find_stating
from pipeline.recall.query import ParsedQuery
from pipeline.text.tokens import ASKS, list_compounds

Flags = NDArray[np.bool_]

# A literal in MAX_HOLDERS memories counts half of one in a single memory.
HOLDERS_OF_NO_WEIGHT = MAX_HOLDERS**2
# A number has room for the bits of so many literals next to the number of a memory of the pool.
BITS = 32
# Speakers that are no person whom a query names.
ASSISTANTS = frozenset({"assistant", "agent", "ai", "system"})
ROLES = ASSISTANTS | {"user", "human"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for each memory of the pool; arrays are aligned with `seqs`, which ascend.

    Scores are raw: BM25 sums, and cosines scaled so that unrelated texts are at 0; `background_similarity` is that of
    the nearest background message. `unembedded` memories have no vector of their present text, and no cosines.
    `information` and `vocabulary_coverage` come from the lexical index; `lengths` are in tokens. `outlines` marks
    outlines of code files, `lessons` lessons. For a question in the first person, `about_user` marks facts about the
    user, and `answers_user` those that it asks for. `days` count from the newest candidate: days since the epoch would
    be precise to hours only. Memories with the same number in `literal_sets` contain the same literals of the query.
    `before` and `after` are the row numbers of another speaker's turns right before and after in the session, 0 for
    none. `turns` marks episodes, `speaks` the words of a person whom the query names, `by_assistant` those of an
    assistant. `reranked` are a cross-encoder's scores from 0 to 1. `linked` is the score of the graph channel,
    `linked_from` the hit that it comes from, 0 for none.
    """

    seqs: Seqs
    sessions: Seqs
    before: Seqs
    after: Seqs
    lexical: Floats
    ceiling: float
    information: Floats
    unembedded: Flags
    dense: Floats
    context: Floats
    background_similarity: float
    vocabulary_coverage: float
    query_words: float
    lengths: Floats
    asks: Flags
    turns: Flags
    speaks: Flags
    by_assistant: Flags
    literal: Floats
    literal_sets: Seqs
    states: Flags
    superseded_by: Seqs
    in_time_range: Flags
    about_user: Flags
    answers_user: Flags
    outlines: Flags
    lessons: Flags
    importance: Floats
    days: Floats
    reranked: Floats
    linked: Floats
    linked_from: Seqs
    link_relevance: float


@dataclass(frozen=True, slots=True)
class LinkedMemories:
    """Memories that are linked to the best hits: a score of 0 to 1 by row number, and the best, best first.

    `sources` has the hit that each is linked to most, by row number. `relevance` is the share of the best hit's
    relevance that the most linked memory has.
    """

    by_row: Floats
    top: Seqs
    sources: Seqs
    relevance: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """Row numbers of possible answers, ascending, each channel's best in order, and the channels' scores.

    `superseded` maps earlier memories to their latest successor. The vectors of `outdated` memories belong to an
    earlier text. `literal` grades memories with a literal of the query, from 0 to 1. `about_user` and `answering` are
    current facts about the user, and those that the question asks for. `settled` is not set
    if a part of the search was still loading.
    """

    seqs: Seqs
    tops: Mapping[Channel, Seqs]
    lexical: LexicalScores | None
    dense: DenseScores | None
    literal: Mapping[int, float]
    stating: Seqs
    superseded: Mapping[int, int]
    outdated: Sequence[int] = ()
    about_user: Sequence[int] = ()
    answering: Sequence[int] = ()
    linked: LinkedMemories | None = None
    settled: bool = True

    def channels(self) -> Iterator[tuple[Channel, LexicalScores | DenseScores | LinkedMemories, Seqs]]:
        """Yield each channel that answered, its scores, and its best."""
        for channel, scores in ((Channel.LEXICAL, self.lexical), (Channel.DENSE, self.dense)):
            if scores is not None:
                yield channel, scores, self.tops[channel]
        if self.linked is not None:
            yield Channel.GRAPH, self.linked, self.linked.top


@dataclass(frozen=True, slots=True)
class LexicalFindings:
    """Findings from words alone, computed while the encoder works.

    Row numbers of the best, best first; the grades of memories with a literal of the query, by row number; and row
    numbers of memories that say equally much, of which the newest counts: with all words of the query in one sentence,
    or with the literal that it consists of.
    """

    scores: LexicalScores
    top: Seqs
    literal: Mapping[int, float]
    stating: Seqs


def find_lexical_candidates(
    db: Connection, question: ParsedQuery, lexical: LexicalScores, allowed: Flags, limit: int
) -> LexicalFindings:
    """Find the best allowed memories by words, and those that contain the query's quotations."""
    top = lexical.top(limit, allowed)
    literal = _grade_literals(db, question, lexical, allowed, top)
    stating = np.array(sorted(literal), np.int64) if question.is_literal else find_stating(db, question, lexical, top)
    return LexicalFindings(lexical, top, literal, stating)


def gather_evidence(
    sessions: SessionMap, ranking_features: RankingFeatures, question: ParsedQuery, candidates: Candidates
) -> Evidence:
    """Gather the evidence for every candidate."""
    seqs, lexical = candidates.seqs, candidates.lexical
    before, after, days = sessions.before(seqs), sessions.after(seqs), ranking_features.days[seqs]
    unembedded, closeness, context = _score_meaning(candidates, before, after)
    literal_sets = _number_literal_sets(question, candidates)
    return Evidence(
        seqs=seqs,
        sessions=sessions.sessions(seqs).astype(np.int64),
        before=np.where(ranking_features.are_answered(seqs, before), before, NOBODY),
        after=np.where(ranking_features.are_answered(seqs, after), after, NOBODY),
        unembedded=unembedded,
        dense=closeness,
        context=context,
        background_similarity=0.0 if candidates.dense is None else candidates.dense.background_similarity,
        query_words=float(len(list_compounds(question.text))),
        asks=np.zeros(len(seqs), np.bool_) if lexical is None else lexical.corpus.have_field(ASKS, seqs),
        turns=ranking_features.are_of(Kind.EPISODE, seqs),
        speaks=ranking_features.are_said_by(question.words - ROLES, seqs),
        by_assistant=ranking_features.are_said_by(ASSISTANTS, seqs),
        literal=look_up(candidates.literal, seqs),
        literal_sets=literal_sets,
        states=flag_members(seqs, candidates.stating),
        superseded_by=_list_successors(question, candidates.superseded, literal_sets, seqs),
        in_time_range=_in_time_range(question, days),
        about_user=flag_members(seqs, candidates.about_user),
        answers_user=flag_members(seqs, candidates.answering),
        outlines=ranking_features.are_of(Kind.CODE, seqs),
        lessons=ranking_features.are_of(Kind.LESSON, seqs),
        importance=ranking_features.importance[seqs],
        days=(days - days.max(initial=0.0)).astype(np.float32),
        reranked=np.zeros(len(seqs), np.float32),
        **_describe_words(lexical, seqs),
        **_describe_links(candidates.linked, seqs),
    )


def _describe_words(lexical: LexicalScores | None, seqs: Seqs) -> dict[str, Any]:
    if lexical is None:
        nothing = np.zeros(len(seqs), np.float32)
        return {
            "lexical": nothing,
            "ceiling": 0.0,
            "information": nothing,
            "vocabulary_coverage": 0.0,
            "lengths": nothing,
        }
    return {
        "lexical": lexical.of(seqs),
        "ceiling": lexical.ceiling,
        "information": values_at(lexical.information, seqs),
        "vocabulary_coverage": lexical.vocabulary_coverage,
        "lengths": values_at(lexical.corpus.lengths, seqs).astype(np.float32),
    }


def _describe_links(linked: LinkedMemories | None, seqs: Seqs) -> dict[str, Any]:
    if linked is None:
        return {
            "linked": np.zeros(len(seqs), np.float32),
            "linked_from": np.full(len(seqs), NOBODY, np.int64),
            "link_relevance": 0.0,
        }
    return {
        "linked": values_at(linked.by_row, seqs),
        "linked_from": values_at(linked.sources, seqs),
        "link_relevance": linked.relevance,
    }


def _score_meaning(candidates: Candidates, before: Seqs, after: Seqs) -> tuple[Flags, Floats, Floats]:
    """Return which candidates lack a vector of their present text, and the closeness of all, alone and in context."""
    dense, seqs = candidates.dense, candidates.seqs
    if dense is None:
        nothing = np.zeros(len(seqs), np.float32)
        return np.ones(len(seqs), np.bool_), nothing, nothing
    # It reads the vectors of all candidates at once, where these are not in memory.
    in_context = dense.in_context(seqs, before, after)
    unembedded = ~dense.embedded(seqs) | flag_members(seqs, candidates.outdated)
    scores = dense.of(seqs), in_context
    closeness, context = (np.where(unembedded, 0, dense.closeness(score)).astype(np.float32) for score in scores)
    return unembedded, closeness, context


def _in_time_range(question: ParsedQuery, days: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Flags:
    if question.time_range is None:
        return np.zeros(len(days), np.bool_)
    since, until = question.time_range.days
    return (days >= since) & (days < until)


def _grade_literals(
    db: Connection, question: ParsedQuery, lexical: LexicalScores, allowed: Flags, top: Seqs
) -> dict[int, float]:
    """Return the grades of allowed memories with a literal of the query, by row number: 1 for an only holder."""
    found = [lexical.holders(token) for token in question.identifiers if token in lexical.postings]
    holders = [seqs[values_at(allowed, seqs).astype(np.bool_)] for seqs in found if len(seqs) <= MAX_HOLDERS]
    if not any(len(seqs) == 1 for seqs in holders):
        holders.append(find_longest_run(db, question, lexical, top))
    grades: dict[int, float] = {}
    for seqs in holders:
        for seq in seqs.tolist():
            grades[seq] = max(grades.get(seq, 0.0), 1 - math.log(len(seqs)) / math.log(HOLDERS_OF_NO_WEIGHT))
    return grades


def _number_literal_sets(question: ParsedQuery, candidates: Candidates) -> Seqs:
    """Return a number for each memory, equal for memories with the same literals, also if many memories have these.

    Of a question, only identifiers count: a memory with another run of its words may be the current answer.
    """
    seqs, lexical = candidates.seqs, candidates.lexical
    numbers: Seqs = (question.is_literal & (look_up(candidates.literal, seqs) > 0)).astype(np.int64)
    holders: list[Seqs] = []
    if lexical is not None:
        holders = [lexical.holders(token) for token in question.identifiers if token in lexical.postings]
    for count, holding in enumerate(holders, 1):
        numbers = 2 * numbers + flag_members(seqs, holding)
        if count % BITS == 0:
            numbers = np.unique(numbers, return_inverse=True)[1]
    return numbers


def _list_successors(question: ParsedQuery, superseded: Mapping[int, int], literal_sets: Seqs, seqs: Seqs) -> Seqs:
    """Return the memory that supersedes each, 0 for none."""
    successors: Seqs = look_up(superseded, seqs, np.int64)
    if not question.is_literal:
        return successors
    # A query for an identifier asks for what contains it, not for its successor.
    at = np.searchsorted(seqs, successors).clip(max=max(len(seqs) - 1, 0))
    return np.where(literal_sets[at] == literal_sets, successors, NOBODY)
