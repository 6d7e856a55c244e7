"""Recall, from a query to ranked hits.

- without text: a listing
- a cached answer that is still valid
- otherwise: lexical and dense search in parallel → a pool of their best and their neighbors
  → checked against the store → evidence → ranked → reranked, if there is a reranker

Recall never writes and never calls a language model. After its deadline it starts no optional step, and reports each
step that it leaves out as late.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from sqlite3 import Connection

import numpy as np

from pipeline.kernel.errors import NO_SUCH_MEMORY, NotFound
from pipeline.kernel.records import Memory, Viewer
from pipeline.kernel.records.recall import NOTHING, Answer, Channel, ChannelReport, Hit, MemoryExplanation, Query, Step
from pipeline.kernel.store import memories, meta
from pipeline.kernel.times import elapsed_ms
from pipeline.recall.annotations import FindBroken, find_annotations, read_broken, refresh_staleness
from pipeline.recall.current_values import rank_current_first
from pipeline.recall.deadline import Deadline
from pipeline.recall.evidence import Candidates
from pipeline.recall.explain import explain_memory, signals_of
from pipeline.recall.first_pass import OFF, ChannelResults, RankedPool, query_channels, rank_candidates
from pipeline.recall.query_scores import ChannelScores, QueryScores
from pipeline.recall.rank import LITERAL, Ranking
from pipeline.recall.relevance import closeness, is_relevant, least_relevance, may_be_relevant, relevance
from pipeline.recall.reranking import rerank_in_time
from pipeline.recall.result_order import OF_STORE, OrderStep, explain_order, order_hits
from pipeline.recall.search_context import SearchContext
from pipeline.recall.stored_answers import StoreState, read_state, read_stored_answer

# Makes the hits of an answer of a ranking.
BuildHits = Callable[[Connection, Ranking, Candidates, Query, Deadline], tuple[Hit, ...]]


def warm(context: SearchContext) -> None:
    """Load the data that the first lexical answer needs."""
    with context.database.read() as db:
        context.lexical.refresh(db)
        context.ranking_features.refresh(db)


def search(
    context: SearchContext, query: Query, deadline: Deadline | None = None, scores: QueryScores | None = None
) -> Answer:
    """Answer a query by a deadline, by default its budget; an empty text lists by importance and recency.

    `scores` are shared with other searches of the same message.
    """
    began = time.perf_counter()
    if not query.text:
        return _list_leading(context, query, began)
    answer = search_for(context, query, deadline or Deadline(query.budget_ms), _build_hits, scores)
    return replace(answer, hits=order_hits(answer.hits, query, OF_STORE), took_ms=elapsed_ms(began))


def search_for(
    context: SearchContext, query: Query, deadline: Deadline, build: BuildHits, scores: QueryScores | None = None
) -> Answer:
    """Answer a query that has a text with the hits that a function makes of the ranking, in their order."""
    began = time.perf_counter()
    now = datetime.now(UTC)
    with context.database.read() as db:
        state, checkout = read_state(db, now), meta.get(db, meta.CHECKOUT)
        find_broken = read_broken(db)
        query = _widen_viewer(db, query)
    known = None if scores is None else scores.find(query.text, state)
    find = partial(_find_answer, context, query, state, now, deadline, build, known)
    answer = context.answers.get((build, state, query), find, deadline.remaining_s)
    # A cached answer belongs to a state of the store; files of code change independently.
    hits = tuple(_refresh_staleness(hit, checkout, deadline) for hit in _refresh_broken(answer.hits, find_broken))
    return replace(answer, hits=hits, channels={**answer.channels, **deadline.late}, took_ms=elapsed_ms(began))


def _refresh_broken(hits: tuple[Hit, ...], find_broken: FindBroken) -> Iterable[Hit]:
    notes = find_broken([hit.memory for hit in hits])
    if not notes and not any(hit.annotations.broken for hit in hits):
        return hits
    return [replace(hit, annotations=replace(hit.annotations, broken=notes.get(hit.memory.id, ()))) for hit in hits]


def _refresh_staleness(hit: Hit, checkout: str | None, deadline: Deadline) -> Hit:
    if hit.memory.anchor is None or deadline.must_skip(Step.STALENESS):
        return hit
    return replace(hit, annotations=refresh_staleness(hit.memory, hit.annotations, checkout))


def search_uncached(context: SearchContext, query: Query) -> Answer:
    """Answer a query without the cache, to measure the cost of an answer."""
    began = time.perf_counter()
    if not query.text:
        return _list_leading(context, query, began)
    with context.database.read() as db:
        query = _widen_viewer(db, query)
    answer = _answer(context, query, datetime.now(UTC), Deadline(query.budget_ms), _build_hits)
    return replace(answer, took_ms=elapsed_ms(began))


def explain_result(
    context: SearchContext, query: Query, memory_id: str, further: Sequence[OrderStep] = ()
) -> MemoryExplanation:
    """Explain why a memory is or is not among a query's hits; raise NotFound if it does not exist.

    `further` steps order the hits after those of the store.
    """
    deadline = Deadline(query.budget_ms)
    results = query_channels(context, query, datetime.now(UTC), deadline)
    with context.database.read() as db:
        memory = memories.get(db, memory_id)
        if memory is None:
            raise NotFound(NO_SUCH_MEMORY)
        ranked, _ = _rank(context, db, query, results, deadline)
        explanation = explain_memory(db, ranked.ranking, ranked.candidates, query, memory)
        hits = _build_hits(db, ranked.ranking, ranked.candidates, query, deadline)
    moves = explain_order(hits, query, (*OF_STORE, *further), memory_id)
    return replace(explanation, reasons=(*explanation.reasons, *moves))


def _widen_viewer(db: Connection, query: Query) -> Query:
    # Without a viewer, a query for a single session would count as coming from that session.
    if query.filter.owns and query.filter.session_id is None and not memories.owns_any(db, query.filter.viewer):
        # The explanation uses only results that every user may see.
        viewer = Viewer(person=query.filter.viewer.person, only_normal=query.filter.viewer.only_normal)
        return replace(query, filter=replace(query.filter, viewer=viewer))
    return query


def _find_answer(
    context: SearchContext,
    query: Query,
    state: StoreState,
    now: datetime,
    deadline: Deadline,
    build: BuildHits,
    known: ChannelScores | None,
) -> Answer:
    # Workers store answers without a reranker.
    if context.reranker is None:
        with context.database.read() as db:
            if stored := read_stored_answer(db, state, query):
                return stored
    return _answer(context, query, now, deadline, build, known)


def _answer(
    context: SearchContext,
    query: Query,
    now: datetime,
    deadline: Deadline,
    build: BuildHits,
    known: ChannelScores | None = None,
) -> Answer:
    began = time.perf_counter()
    results = query_channels(context, query, now, deadline, known)
    with context.database.read() as db:
        ranked, steps = _rank(context, db, query, results, deadline)
        hits = build(db, ranked.ranking, ranked.candidates, query, deadline)
    reports: dict[str, ChannelReport] = {channel: item.report for channel, item in ranked.results.found.items()}
    candidates = ranked.candidates
    settled = candidates.settled and (candidates.dense is None or candidates.dense.settled)
    return Answer(hits, reports | steps | deadline.late, elapsed_ms(began), settled)


def _rank(
    context: SearchContext, db: Connection, query: Query, results: ChannelResults, deadline: Deadline
) -> tuple[RankedPool, dict[str, ChannelReport]]:
    """Rank the channels' results, rerank, and put current values first; also return the reranker's report."""
    ranked = rank_candidates(context, db, results, deadline)
    ranked, steps = rerank_in_time(context, db, query, deadline, ranked)
    if not deadline.must_skip(Step.CURRENCY):
        ranked = replace(ranked, ranking=rank_current_first(db, ranked.ranking, query.text))
    return ranked, steps


def _build_hits(
    db: Connection, ranking: Ranking, candidates: Candidates, query: Query, deadline: Deadline
) -> tuple[Hit, ...]:
    shown: dict[int, Memory] = {}
    probable = relevance(ranking)
    least = least_relevance(ranking.evidence, query.text, query.min_relevance)
    close = closeness(ranking)
    order = ranking.order
    order = order[may_be_relevant(query.text, probable, least, query.min_relevance, close)[order]]
    seqs = ranking.evidence.seqs[order].tolist()
    judged = dict(zip(seqs, zip(probable[order].tolist(), close[order].tolist(), strict=True), strict=True))
    # The store decides: if it removes hits, the next ones move up.
    for start in range(0, len(seqs), query.k):
        showable = memories.filter_showable(db, seqs[start : start + query.k], query.filter)
        shown |= {
            seq: memory
            for seq, memory in showable.items()
            if is_relevant(query.text, memory.content, judged[seq][0], least, query.min_relevance, judged[seq][1])
        }
        if len(shown) >= query.k:
            break
    memories_shown = list(shown.values())[: query.k]
    positions = np.searchsorted(ranking.evidence.seqs, [memory.seq for memory in memories_shown])
    signals = (
        signals_of(db, ranking, candidates, positions, query.filter.viewer)
        if query.explain
        else [None] * len(memories_shown)
    )
    scores, relevances = ranking.score[positions].tolist(), probable[positions].tolist()
    annotations = find_annotations(db, memories_shown, lambda: deadline.must_skip(Step.STALENESS))
    noted = [annotations.get(memory.seq, NOTHING) for memory in memories_shown]
    literal_scores = ranking.part(LITERAL)[positions].tolist()
    parts = zip(memories_shown, scores, relevances, signals, noted, literal_scores, strict=True)
    return tuple(
        Hit(memory, score, probability, reasons, annotation, literal_score=literal_score)
        for memory, score, probability, reasons, annotation, literal_score in parts
    )


def _list_leading(context: SearchContext, query: Query, began: float) -> Answer:
    with context.database.read() as db:
        leading = memories.list_leading(db, query.filter, query.k)
        annotations = find_annotations(db, leading)
    hits = tuple(
        Hit(memory, memory.importance, relevance=1.0, annotations=annotations.get(memory.seq, NOTHING))
        for memory in leading
    )
    return Answer(hits, dict.fromkeys(Channel, OFF), elapsed_ms(began))
