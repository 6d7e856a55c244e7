"""Recall, from a query to ranked hits.

- without text: a listing
- a cached answer that is still valid
- otherwise: lexical and dense search in parallel → a pool of their best and their neighbors
  → checked against the store → evidence → ranked

Recall never writes and never calls a language model. After its deadline it starts no optional step, and reports each
step that it leaves out as late.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import NO_SUCH_MEMORY, IndexUnavailable, NotFound
from pipeline.index.dense import DenseIndex, DenseScores
from pipeline.index.encoder import Encoder
from pipeline.index.lexical import LexicalIndex
from pipeline.index.row_arrays import NO_ROWS, RankingFeatures, Seqs, SessionMap, values_at
from pipeline.index.turn_index import TurnIndex
from pipeline.recall.annotations import find_annotations, refresh_staleness
from pipeline.recall.channels import ChannelPool, ChannelResult, ErrorSink
from pipeline.recall.current_values import rank_current_first
from pipeline.recall.deadline import Deadline
from pipeline.recall.evidence import Candidates, LexicalFindings, find_lexical_candidates, gather_evidence
from pipeline.recall.explain import explain_memory, signals_of
from pipeline.recall.graph import GraphSearch
from pipeline.recall.query import ParsedQuery, parse_query
from pipeline.recall.rank import Ranking, rank
from pipeline.recall.relevance import closeness, least_relevance, needs_relevance, relevance
from pipeline.recall.said_first import put_said_first
from pipeline.records import Filter, Memory, Viewer
from pipeline.records.recall import (
    NOTHING,
    Answer,
    Channel,
    ChannelReport,
    ChannelState,
    Hit,
    MemoryExplanation,
    Query,
    Step,
)
from pipeline.store import changes, edges, facts, index_state, memories, meta
from pipeline.store.database import Database
from pipeline.text.personal_facts import USER, attribute_of_user
from pipeline.times import elapsed_ms, utc_now, utc_text

KEPT = 256
MAX_PER_CHANNEL = 80
MAX_LIFTING = 20
MAX_FACTS_ABOUT_USER = 500
OFF = ChannelReport(ChannelState.OFF, 0.0)

Mask = NDArray[np.bool_]


class AnswerCache:
    """Compute each answer once; cache complete answers by the state of the workspace.

    A key contains everything that an answer depends on, so a write makes older answers unreachable, and nothing must
    be cleared. Concurrent callers wait for the same computation.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Answer] = OrderedDict()
        self._running: dict[Hashable, Future[Answer]] = {}

    def get(self, key: Hashable, compute: Callable[[], Answer], timeout_s: float) -> Answer:
        """Return the answer for a key; wait up to `timeout_s` for another thread's computation, then compute it."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            running = self._running.get(key)
            if running is None:
                mine: Future[Answer] = Future()
                self._running[key] = mine
        if running is None:
            return self._compute(key, compute, mine)
        try:
            return running.result(timeout=timeout_s)
        except Exception:  # noqa: BLE001 - if the other thread failed, this one computes the answer itself
            return compute()

    def _compute(self, key: Hashable, compute: Callable[[], Answer], mine: "Future[Answer]") -> Answer:
        try:
            answer = compute()
        except BaseException as error:
            with self._lock:
                del self._running[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._running[key]
            if answer.settled and not answer.degraded:
                self._kept[key] = answer
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        mine.set_result(answer)
        return answer


@dataclass(frozen=True, slots=True)
class DenseSearch:
    """An encoder of queries, and the index of the memories that its model embedded."""

    encoder: Encoder
    index: DenseIndex


@dataclass(frozen=True, slots=True)
class SearchContext:
    """Everything that recall reads of a workspace."""

    database: Database
    lexical: LexicalIndex
    # The model's name, None before the first embedding.
    dense: Callable[[str | None], DenseSearch]
    sessions: SessionMap
    ranking_features: RankingFeatures
    channels: ChannelPool
    answers: AnswerCache
    on_error: ErrorSink
    turns: TurnIndex
    # The model's name.
    turn_dense: Callable[[str], DenseSearch]
    graph: GraphSearch = field(default_factory=GraphSearch)


@dataclass(frozen=True, slots=True)
class ChannelResults:
    """A parsed query, the memories that may answer it (None for all), and the channels' results."""

    question: ParsedQuery
    allowed: Mask | None
    found: Mapping[Channel, ChannelResult]
    channels: tuple[Channel, ...]


def warm(context: SearchContext) -> None:
    """Load the data that the first lexical answer needs."""
    with context.database.read() as db:
        context.lexical.refresh(db)
        context.ranking_features.refresh(db)


def search(context: SearchContext, query: Query, deadline: Deadline | None = None) -> Answer:
    """Answer a query by a deadline, by default its budget; an empty text lists by importance and recency."""
    began = time.perf_counter()
    deadline = deadline or Deadline(query.budget_ms)
    if not query.text:
        return _list_leading(context, query, began)
    now = datetime.now(UTC)
    with context.database.read() as db:
        state, checkout = cache_key(db, now), meta.get(db, meta.CHECKOUT)
        query = _widen_viewer(db, query)
    answer = context.answers.get((state, query), lambda: _answer(context, query, now, deadline), deadline.remaining_s)
    # A cached answer belongs to a state of the store; files of code change independently.
    hits = _demote_missing(_refresh_staleness(hit, checkout, deadline) for hit in answer.hits)
    hits = tuple(put_said_first(hits, query.text))
    return replace(answer, hits=hits, channels={**answer.channels, **deadline.late}, took_ms=elapsed_ms(began))


def _refresh_staleness(hit: Hit, checkout: str | None, deadline: Deadline) -> Hit:
    if hit.memory.anchor is None or deadline.must_skip(Step.STALENESS):
        return hit
    return replace(hit, annotations=refresh_staleness(hit.memory, hit.annotations, checkout))


def _demote_missing(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Rank memories about missing code below all memories with at least half their relevance."""
    ordered_hits = list(hits)
    ordered = [hit for hit in ordered_hits if not hit.annotations.missing]
    for hit in ordered_hits:
        if hit.annotations.missing:
            before = [rank for rank, other in enumerate(ordered, 1) if other.relevance >= hit.relevance / 2]
            rank = before[-1] if before else 0
            score = min(hit.score, ordered[rank - 1].score) if rank else hit.score
            ordered.insert(rank, replace(hit, score=score))
    return tuple(ordered)


def search_uncached(context: SearchContext, query: Query) -> Answer:
    """Answer a query without the cache, to measure the cost of an answer."""
    began = time.perf_counter()
    if not query.text:
        return _list_leading(context, query, began)
    with context.database.read() as db:
        query = _widen_viewer(db, query)
    answer = _answer(context, query, datetime.now(UTC), Deadline(query.budget_ms))
    return replace(answer, took_ms=elapsed_ms(began))


def cache_key(db: Connection, now: datetime) -> Hashable:
    """Return everything besides the query that an answer depends on, at a time (UTC)."""
    began_or_ended = facts.find_last_validity_change(db, utc_text(now))
    state = changes.generation(db), meta.get(db, meta.SEGMENT), began_or_ended, *_vectors_generation(db)
    # Relative times in a query mean another range tomorrow.
    return state, now.date()


def explain_result(context: SearchContext, query: Query, memory_id: str) -> MemoryExplanation:
    """Explain why a memory is or is not among a query's hits; raise NotFound if it does not exist."""
    deadline = Deadline(query.budget_ms)
    results = _query_channels(context, query, datetime.now(UTC), deadline)
    with context.database.read() as db:
        memory = memories.get(db, memory_id)
        if memory is None:
            raise NotFound(NO_SUCH_MEMORY)
        _, candidates, ranking = _rank_candidates(context, db, results, deadline)
        return explain_memory(db, ranking, candidates, query, memory)


def _widen_viewer(db: Connection, query: Query) -> Query:
    # Without a viewer, a query for a single session would count as coming from that session.
    if query.filter.owns and query.filter.session_id is None and not memories.owns_any(db, query.filter.viewer):
        # The explanation uses only results that every user may see.
        viewer = Viewer(person=query.filter.viewer.person, only_normal=query.filter.viewer.only_normal)
        return replace(query, filter=replace(query.filter, viewer=viewer))
    return query


def _answer(context: SearchContext, query: Query, now: datetime, deadline: Deadline) -> Answer:
    began = time.perf_counter()
    results = _query_channels(context, query, now, deadline)
    with context.database.read() as db:
        results, candidates, ranking = _rank_candidates(context, db, results, deadline)
        hits = _build_hits(db, ranking, candidates, query, deadline)
    reports: dict[str, ChannelReport] = {channel: item.report for channel, item in results.found.items()}
    reports |= deadline.late
    settled = candidates.dense is None or candidates.dense.settled
    return Answer(hits, reports, elapsed_ms(began), settled)


def _query_channels(context: SearchContext, query: Query, now: datetime, deadline: Deadline) -> ChannelResults:
    """Query the channels in parallel until the deadline."""
    question = parse_query(query.text, now)
    allowed = _allowed_mask(context, query.filter)
    searches = {
        Channel.LEXICAL: lambda: _search_lexical(context, question, allowed),
        Channel.DENSE: lambda: _search_dense(context, query.text, allowed),
    }
    selected = {channel: find for channel, find in searches.items() if channel in query.channels}
    results_by_channel = context.channels.run(selected, deadline.channel_deadline, context.on_error)
    found = dict.fromkeys(Channel, ChannelResult(OFF)) | results_by_channel
    return ChannelResults(question, allowed, found, query.channels)


def _rank_candidates(
    context: SearchContext, db: Connection, results: ChannelResults, deadline: Deadline
) -> tuple[ChannelResults, Candidates, Ranking]:
    """Rank the channels' results; a channel whose index breaks only now is left out."""
    candidates = _pool_candidates(context, db, results)
    gather = partial(gather_evidence, context.sessions, context.ranking_features, results.question)
    try:
        ranking = rank(gather(candidates))
        if Channel.GRAPH in results.channels:
            linked, candidates, ranking = context.graph.rank_linked(
                db,
                results.question.text,
                candidates,
                ranking,
                context.ranking_features.visible if results.allowed is None else results.allowed,
                lambda: context.dense(index_state.find_serving_model(db)).encoder,
                gather,
                deadline,
            )
            results = replace(results, found={**results.found, Channel.GRAPH: linked})
    except IndexUnavailable as error:
        context.on_error(Channel.DENSE, error)
        cold = ChannelResult(replace(results.found[Channel.DENSE].report, state=ChannelState.COLD))
        results = replace(results, found={**results.found, Channel.DENSE: cold})
        return _rank_candidates(context, db, results, deadline)
    if not deadline.must_skip(Step.CURRENCY):
        ranking = rank_current_first(db, ranking, results.question.text)
    return results, candidates, ranking


def _build_hits(
    db: Connection, ranking: Ranking, candidates: Candidates, query: Query, deadline: Deadline
) -> tuple[Hit, ...]:
    shown: dict[int, Memory] = {}
    probable = relevance(ranking)
    least = least_relevance(ranking.evidence, query.text, query.min_relevance)
    order = ranking.order[probable[ranking.order] >= least]
    seqs = ranking.evidence.seqs[order].tolist()
    judged = dict(
        zip(seqs, zip(probable[order].tolist(), closeness(ranking)[order].tolist(), strict=True), strict=True)
    )
    # The store decides: if it removes hits, the next ones move up.
    for start in range(0, len(seqs), query.k):
        showable = memories.filter_showable(db, seqs[start : start + query.k], query.filter)
        shown |= {
            seq: memory
            for seq, memory in showable.items()
            if judged[seq][0] >= needs_relevance(query.text, memory.content, least, query.min_relevance, judged[seq][1])
        }
        if len(shown) >= query.k:
            break
    memories_shown = list(shown.values())[: query.k]
    positions = np.searchsorted(ranking.evidence.seqs, [memory.seq for memory in memories_shown])
    signals = signals_of(db, ranking, candidates, positions) if query.explain else [None] * len(memories_shown)
    scores, relevances = ranking.score[positions].tolist(), probable[positions].tolist()
    annotations = find_annotations(db, memories_shown, lambda: deadline.must_skip(Step.STALENESS))
    noted = [annotations.get(memory.seq, NOTHING) for memory in memories_shown]
    return tuple(Hit(*parts) for parts in zip(memories_shown, scores, relevances, signals, noted, strict=True))


def _list_leading(context: SearchContext, query: Query, began: float) -> Answer:
    with context.database.read() as db:
        leading = memories.list_leading(db, query.filter, query.k)
        annotations = find_annotations(db, leading)
    hits = tuple(
        Hit(memory, memory.importance, relevance=1.0, annotations=annotations.get(memory.seq, NOTHING))
        for memory in leading
    )
    return Answer(hits, dict.fromkeys(Channel, OFF), elapsed_ms(began))


def _allowed_mask(context: SearchContext, criteria: Filter) -> Mask | None:
    # A narrow filter must apply before the channels rank; otherwise it could exclude all their best.
    if not criteria.narrows and not criteria.owns:
        return None
    with context.database.read() as db:
        seqs = memories.visible_seqs(db, criteria) if criteria.narrows else memories.list_owned_seqs(db, criteria)
        size = memories.last_seq(db) + 1
        allowed = np.zeros(size, np.bool_)
        if not criteria.narrows:
            context.ranking_features.refresh(db)
            allowed |= values_at(context.ranking_features.visible, np.arange(size)).astype(np.bool_)
    allowed[seqs] = True
    return allowed


def _search_lexical(context: SearchContext, question: ParsedQuery, allowed: Mask | None) -> LexicalFindings:
    try:
        return _find_by_words(context, question, allowed)
    except IndexUnavailable:
        # The segment may have been replaced between our snapshot and its opening; a new snapshot names the new one.
        return _find_by_words(context, question, allowed)


def _find_by_words(context: SearchContext, question: ParsedQuery, allowed: Mask | None) -> LexicalFindings:
    with context.database.read() as db:
        scores = context.lexical.search(db, question.tokens)
        context.ranking_features.refresh(db)
        visible = context.ranking_features.visible if allowed is None else allowed
        return find_lexical_candidates(db, question, scores, visible, MAX_PER_CHANNEL)


def _search_dense(context: SearchContext, text: str, allowed: Mask | None) -> DenseScores:
    with context.database.read() as db:
        generation, model = _vectors_generation(db), index_state.find_serving_model(db)
    dense = context.dense(model)
    vector = dense.encoder.encode_query(text)
    only = None if allowed is None else np.flatnonzero(allowed).tolist()
    return dense.index.search(vector, generation, 2 * MAX_PER_CHANNEL, only)


def _vectors_generation(db: Connection) -> tuple[int, int]:
    return meta.get_int(db, meta.VECTORS_EPOCH), meta.get_int(db, meta.VECTORS_GENERATION)


def _pool_candidates(context: SearchContext, db: Connection, results: ChannelResults) -> Candidates:
    """Pool each channel's best, the neighbors of the very best, and memories with an identifier of the query."""
    context.sessions.refresh(db)
    context.ranking_features.refresh(db)
    allowed = context.ranking_features.visible if results.allowed is None else results.allowed
    words: LexicalFindings | None = results.found[Channel.LEXICAL].scores
    dense = results.found[Channel.DENSE].scores
    tops: dict[Channel, Seqs] = {}
    if words is not None:
        tops[Channel.LEXICAL] = words.top
    if dense is not None:
        tops[Channel.DENSE] = dense.top(MAX_PER_CHANNEL, allowed)
    lifted = [context.sessions.around(top[:MAX_LIFTING]) for top in tops.values()]
    holders, literal, stating = (
        (NO_ROWS, NO_ROWS, NO_ROWS) if words is None else (words.holders, words.literal, words.stating)
    )
    about_user = _list_facts_about_user(db, results.question)
    answering = [seq for seq, is_asked in about_user.items() if is_asked]
    pooled = np.unique(np.concatenate([*tops.values(), *lifted, holders, np.array(answering, np.int64)]))
    superseded = {pair.seq: pair.by for pair in edges.list_superseding(db, pooled.tolist())}
    pooled = np.union1d(pooled, np.array(list(superseded.values()), np.int64))
    pooled = pooled[values_at(allowed, pooled).astype(np.bool_)]
    outdated = index_state.list_outdated(db, pooled.tolist())
    lexical = None if words is None else words.scores
    return Candidates(pooled, tops, lexical, dense, literal, stating, superseded, outdated, list(about_user), answering)


def _list_facts_about_user(db: Connection, question: ParsedQuery) -> dict[int, bool]:
    """Return the current facts about the user for a question in the first person, and whether it asks for each."""
    asked = question.asked_attributes
    if not (question.personal or asked):
        return {}
    current = facts.list_attributes(db, USER, utc_now(), MAX_FACTS_ABOUT_USER)
    return {seq: attribute_of_user(attribute) in asked for seq, attribute in current}
