"""Evidence: the inputs of ranking for the memories that may be shown.

One part are literals: text that a query quotes exactly, and the only memory that contains it. A path, ticket or
symbol counts, and so does any run of words, such as an error message, that a memory contains literally. Text in
several memories distinguishes none of them and is left to the ranking.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from pipeline.index.dense import DenseScores
from pipeline.index.lexical import LexicalScores
from pipeline.index.row_arrays import NO_ROWS, NOBODY, Floats, RankingFeatures, Seqs, SessionMap, values_at
from pipeline.recall.query import ParsedQuery
from pipeline.records.recall import Channel
from pipeline.store import memories
from pipeline.text.memory_terms import embedded_text
from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import ASKS, NAMES_TIME, search_tokens, speaker_term

Flags = NDArray[np.bool_]

# With more holders, the filter cannot leave exactly one.
MAX_HOLDERS = 16
SHORTEST_RUN = 5
# Only a memory with a large share of the query's words can contain a run.
RUN_COVERAGE = 0.5
RUN_CANDIDATES = 4
# A sentence with fewer words of the query matches by chance.
MIN_STATING_WORDS = 3
MAX_STATING_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for each memory of the pool; arrays are aligned with `seqs`, which ascend.

    Scores are raw: BM25 sums, and cosines scaled so that unrelated texts are at 0; `background_similarity` is that of
    the nearest background message. `unembedded` memories have no vector of their present text, and no cosines.
    `information` and `vocabulary_coverage` come from the lexical index. `outlines` marks outlines of code files.
    `about_user` marks facts about the user for a question in the first person, `answers_user` those that it asks for.
    `before` and `after` are the row numbers of another speaker's turns right before and after in the session, 0 for
    none. `days` count from the newest: since the epoch, they would be precise to hours only. `reranked` are the
    scores of a cross-encoder, 0 to 1.
    """

    seqs: Seqs
    sessions: Seqs
    before: Seqs
    after: Seqs
    lexical: Floats
    session_lexical: Floats
    ceiling: float
    session_ceiling: float
    information: Floats
    unembedded: Flags
    dense: Floats
    context: Floats
    background_similarity: float
    vocabulary_coverage: float
    lengths: Floats
    asks: Flags
    speaks: Flags
    names_time: Flags
    literal: Flags
    states: Flags
    superseded_by: Seqs
    in_time_range: Flags
    personal_fact: Flags
    about_user: Flags
    answers_user: Flags
    outlines: Flags
    importance: Floats
    days: Floats
    repeats: Floats
    reranked: Floats


@dataclass(frozen=True, slots=True)
class Candidates:
    """Row numbers of possible answers, ascending, each channel's best in order, and the channels' scores.

    `superseded` maps earlier memories to their latest successor. The vectors of `outdated` memories belong to an
    earlier text. `about_user` and `answering` are current facts about the user, and those that the question asks for.
    """

    seqs: Seqs
    tops: Mapping[Channel, Seqs]
    lexical: LexicalScores | None
    dense: DenseScores | None
    literal: Seqs
    stating: Seqs
    superseded: Mapping[int, int]
    outdated: Sequence[int] = ()
    about_user: Sequence[int] = ()
    answering: Sequence[int] = ()

    def channels(self) -> Iterator[tuple[Channel, LexicalScores | DenseScores, Seqs]]:
        """Yield each channel that answered, its scores, and its best."""
        for channel, scores in ((Channel.LEXICAL, self.lexical), (Channel.DENSE, self.dense)):
            if scores is not None:
                yield channel, scores, self.tops[channel]


@dataclass(frozen=True, slots=True)
class LexicalFindings:
    """Findings from words alone, computed while the encoder works.

    Row numbers of the best, best first; of memories with an identifier of the query; of memories that alone contain a
    literal of it; and of memories with all its words in one sentence.
    """

    scores: LexicalScores
    top: Seqs
    holders: Seqs
    literal: Seqs
    stating: Seqs


def find_lexical_candidates(
    db: Connection, question: ParsedQuery, lexical: LexicalScores, allowed: Flags, limit: int
) -> LexicalFindings:
    """Find the best allowed memories by words, and those that contain the query's quotations."""
    top = lexical.top(limit, allowed)
    holders = [seqs[values_at(allowed, seqs).astype(np.bool_)] for seqs in _list_identifier_holders(question, lexical)]
    return LexicalFindings(
        lexical,
        top,
        np.concatenate([*holders, NO_ROWS]),
        _find_literals(db, question, lexical, holders, top),
        _find_stating(db, question, lexical, top),
    )


def gather_evidence(
    sessions: SessionMap, ranking_features: RankingFeatures, question: ParsedQuery, candidates: Candidates
) -> Evidence:
    """Gather the evidence for every candidate."""
    seqs, lexical = candidates.seqs, candidates.lexical
    before, after, days = sessions.before(seqs), sessions.after(seqs), ranking_features.days[seqs]
    nothing = np.zeros(len(seqs), np.float32)
    unembedded, closeness, context = _score_meaning(candidates, before, after)
    return Evidence(
        seqs=seqs,
        sessions=sessions.sessions(seqs).astype(np.int64),
        before=np.where(ranking_features.are_answered(seqs, before), before, NOBODY),
        after=np.where(ranking_features.are_answered(seqs, after), after, NOBODY),
        lexical=nothing if lexical is None else lexical.of(seqs),
        session_lexical=nothing if lexical is None else lexical.of_sessions(seqs),
        ceiling=0.0 if lexical is None else lexical.ceiling,
        session_ceiling=0.0 if lexical is None else lexical.session_ceiling,
        information=nothing if lexical is None else values_at(lexical.information, seqs),
        unembedded=unembedded,
        dense=closeness,
        context=context,
        vocabulary_coverage=0.0 if lexical is None else lexical.vocabulary_coverage,
        background_similarity=0.0 if candidates.dense is None else candidates.dense.background_similarity,
        lengths=nothing if lexical is None else values_at(lexical.corpus.lengths, seqs).astype(np.float32),
        asks=_flag_holders(lexical, (ASKS,), seqs),
        names_time=_flag_holders(lexical, (NAMES_TIME,) if question.asks_time else (), seqs),
        speaks=_speaks(question, lexical, seqs),
        literal=np.isin(seqs, candidates.literal),
        states=np.isin(seqs, candidates.stating),
        superseded_by=np.array([candidates.superseded.get(seq, NOBODY) for seq in seqs.tolist()], np.int64),
        in_time_range=_in_time_range(question, days),
        personal_fact=ranking_features.keyed[seqs] & question.personal,
        about_user=np.isin(seqs, candidates.about_user),
        answers_user=np.isin(seqs, candidates.answering),
        outlines=ranking_features.outlines[seqs],
        importance=ranking_features.importance[seqs],
        days=(days - days.max(initial=0.0)).astype(np.float32),
        repeats=ranking_features.repeats[seqs],
        reranked=nothing,
    )


def _score_meaning(candidates: Candidates, before: Seqs, after: Seqs) -> tuple[Flags, Floats, Floats]:
    """Return which candidates lack a vector of their present text, and the closeness of all, alone and in context."""
    dense, seqs = candidates.dense, candidates.seqs
    if dense is None:
        nothing = np.zeros(len(seqs), np.float32)
        return np.ones(len(seqs), np.bool_), nothing, nothing
    unembedded = ~dense.embedded(seqs) | np.isin(seqs, candidates.outdated)
    scores = dense.of(seqs), dense.in_context(seqs, before, after)
    closeness, context = (np.where(unembedded, 0, dense.closeness(score)).astype(np.float32) for score in scores)
    return unembedded, closeness, context


def _flag_holders(lexical: LexicalScores | None, terms: Sequence[str], seqs: Seqs) -> Flags:
    return np.zeros(len(seqs), np.bool_) if lexical is None else lexical.corpus.have_fields(terms, seqs)


def _speaks(question: ParsedQuery, lexical: LexicalScores | None, seqs: Seqs) -> Flags:
    return _flag_holders(lexical, [speaker_term(token) for token in dict.fromkeys(question.tokens)], seqs)


def _in_time_range(question: ParsedQuery, days: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Flags:
    if question.time_range is None:
        return np.zeros(len(days), np.bool_)
    since, until = question.time_range.days
    return (days >= since) & (days < until)


def _list_identifier_holders(question: ParsedQuery, lexical: LexicalScores) -> list[Seqs]:
    """Return the row numbers of memories with each rare identifier of the query."""
    holders = [lexical.holders(token) for token in question.identifiers if token in lexical.postings]
    return [seqs for seqs in holders if 0 < len(seqs) <= MAX_HOLDERS]


def _find_literals(
    db: Connection, question: ParsedQuery, lexical: LexicalScores, holders: Sequence[Seqs], top: Seqs
) -> Seqs:
    """Return the memories that are the only allowed ones with a literal of the query."""
    alone = [holder for holder in holders if len(holder) == 1]
    if len(question.tokens) >= SHORTEST_RUN and not alone:
        near = top[lexical.of(top) >= RUN_COVERAGE * lexical.ceiling][:RUN_CANDIDATES]
        nearby = memories.by_seqs(db, near.tolist())
        texts = {seq: search_tokens(embedded_text(memory)) for seq, memory in nearby.items()}
        alone = [np.array([_only_run(texts, question.tokens)])]
    return np.unique(np.concatenate([*alone, NO_ROWS]))


def _find_stating(db: Connection, question: ParsedQuery, lexical: LexicalScores, top: Seqs) -> Seqs:
    """Return which of the best have all words of the query in one sentence."""
    asked = frozenset(question.tokens)
    if len(asked) < MIN_STATING_WORDS:
        return NO_ROWS
    holding = [np.isin(top, lexical.postings[token][0]) for token in asked]
    near = top[np.logical_and.reduce(holding)][:MAX_STATING_CANDIDATES].tolist()
    return np.array(
        [
            seq
            for seq, memory in memories.by_seqs(db, near).items()
            if any(asked <= set(search_tokens(sentence)) for sentence in split_sentences(embedded_text(memory)))
        ],
        np.int64,
    )


def _only_run(texts: Mapping[int, Sequence[str]], asked: Sequence[str]) -> int:
    """Return the only memory with the longest run of the query's tokens, 0 for none."""
    lengths = sorted(((longest_common_run(asked, tokens), seq) for seq, tokens in texts.items()), reverse=True)
    if not lengths or lengths[0][0] < SHORTEST_RUN or (len(lengths) > 1 and lengths[1][0] == lengths[0][0]):
        return 0
    return lengths[0][1]


def longest_common_run(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest contiguous run of tokens that occurs in both."""
    # Each token becomes a character: runs are compared as texts, and a length is tried only if a shorter one occurs.
    signs = {token: chr(number) for number, token in enumerate(dict.fromkeys(left), ord("0"))}
    asked = "".join(map(signs.__getitem__, left))
    right_signs = "".join(signs.get(token, "\n") for token in right)
    least, most = 0, min(len(left), len(max(right_signs.split("\n"), key=len)))
    while least < most:
        length = (least + most + 1) // 2
        runs = {right_signs[at : at + length] for at in range(len(right_signs) - length + 1)}
        if any(asked[at : at + length] in runs for at in range(len(asked) - length + 1)):
            least = length
        else:
            most = length - 1
    return least
