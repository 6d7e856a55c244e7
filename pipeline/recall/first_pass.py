"""The first pass: query the channels in parallel, pool their best and their neighbors, and rank the pool."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from pipeline.index.dense import DenseScores
from pipeline.index.lexical import LexicalScores
from pipeline.index.row_arrays import NO_ROWS, Seqs, merge_rows, values_at
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.records import Filter
from pipeline.kernel.records.recall import Channel, ChannelReport, ChannelState, Query
from pipeline.kernel.store import edges, facts, index_state, memories, meta
from pipeline.kernel.times import utc_now
from pipeline.recall.channels import ChannelResult
from pipeline.recall.deadline import Deadline
from pipeline.recall.evidence import Candidates, LexicalFindings, find_lexical_candidates, gather_evidence
from pipeline.recall.expansion import expand
from pipeline.recall.query import ParsedQuery, parse_query
from pipeline.recall.query_scores import ChannelScores
from pipeline.recall.rank import Ranking, rank
from pipeline.recall.search_context import SearchContext
from pipeline.text.personal_facts import USER, attribute_of_user

MAX_PER_CHANNEL = 80
MAX_LIFTING = 20
MAX_FACTS_ABOUT_USER = 500
OFF = ChannelReport(ChannelState.OFF, 0.0)

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ChannelResults:
    """A query, also parsed, the memories that may answer it (None for all), and the channels' results."""

    query: Query
    question: ParsedQuery
    allowed: Mask | None
    found: Mapping[Channel, ChannelResult]


def query_channels(
    context: SearchContext, query: Query, now: datetime, deadline: Deadline, known: ChannelScores | None = None
) -> ChannelResults:
    """Query the channels in parallel until the deadline; use the known scores of the text, and add to them."""
    question = parse_query(query.text, now)
    shared: ChannelScores = {} if known is None else known
    allowed = _allowed_mask(context, query.filter)
    searches = {
        Channel.LEXICAL: lambda: _search_lexical(context, question, allowed, shared),
        Channel.DENSE: lambda: _search_dense(context, query.text, allowed, shared),
    }
    selected = {channel: find for channel, find in searches.items() if channel in query.channels}
    results_by_channel = context.channels.run(selected, deadline.channel_deadline, context.on_error)
    found = dict.fromkeys(Channel, ChannelResult(OFF)) | results_by_channel
    return ChannelResults(query, question, allowed, found)


@dataclass(frozen=True, slots=True)
class RankedPool:
    """The channels' results, the candidates from them, and their ranking."""

    results: ChannelResults
    candidates: Candidates
    ranking: Ranking


def rank_candidates(context: SearchContext, db: Connection, results: ChannelResults, deadline: Deadline) -> RankedPool:
    """Rank the channels' results; a channel whose index breaks only now is left out."""
    candidates = _pool_candidates(context, db, results)
    gather = partial(gather_evidence, context.sessions, context.ranking_features, results.question)
    try:
        ranking = rank(gather(candidates))
        if Channel.GRAPH in results.query.channels:
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
        return rank_candidates(context, db, results, deadline)
    return RankedPool(results, candidates, ranking)


def _allowed_mask(context: SearchContext, criteria: Filter) -> Mask | None:
    # A narrow filter must apply before the channels rank; otherwise it could exclude all their best.
    if not criteria.narrows and not criteria.owns:
        return None
    # Ranking features know visibility and kinds: only the caller's own memories are read.
    shared = replace(criteria, kinds=())
    is_shared = not (shared.narrows or shared.archived or shared.candidates)
    with context.database.read() as db:
        seqs = memories.list_owned_seqs(db, shared) if is_shared else memories.visible_seqs(db, criteria)
        rows = np.arange(memories.last_seq(db) + 1)
        allowed = np.zeros(len(rows), np.bool_)
        if is_shared:
            context.ranking_features.refresh(db)
            allowed |= values_at(context.ranking_features.visible, rows).astype(np.bool_)
    allowed[seqs] = True
    if is_shared and criteria.kinds:
        allowed &= values_at(context.ranking_features.are_among(criteria.kinds), rows)
    return allowed


def has_allowed(context: SearchContext, criteria: Filter) -> bool:
    """Return whether a memory may match a filter that narrows."""
    allowed = _allowed_mask(context, criteria)
    return allowed is None or bool(allowed.any())


def _search_lexical(
    context: SearchContext, question: ParsedQuery, allowed: Mask | None, shared: ChannelScores
) -> LexicalFindings:
    try:
        return _find_by_words(context, question, allowed, shared)
    except IndexUnavailable:
        # The segment may have been replaced between our snapshot and its opening; a new snapshot names the new one.
        return _find_by_words(context, question, allowed, shared)


def _find_by_words(
    context: SearchContext, question: ParsedQuery, allowed: Mask | None, shared: ChannelScores
) -> LexicalFindings:
    with context.database.read() as db:
        scores: LexicalScores | None = shared.get(Channel.LEXICAL)
        if scores is None:
            expansions = expand(question, context.bridges.refresh(db))
            scores = shared[Channel.LEXICAL] = context.lexical.search(db, question.tokens, expansions)
        context.ranking_features.refresh(db)
        visible = context.ranking_features.visible if allowed is None else allowed
        return find_lexical_candidates(db, question, scores, visible, MAX_PER_CHANNEL)


def _search_dense(context: SearchContext, text: str, allowed: Mask | None, shared: ChannelScores) -> DenseScores:
    known: DenseScores | None = shared.get(Channel.DENSE)
    if known is not None:
        return known
    with context.database.read() as db:
        generation, model = find_vectors_generation(db), index_state.find_serving_model(db)
    dense = context.dense(model)
    vector = dense.encoder.encode_query(text)
    only = None if allowed is None else np.flatnonzero(allowed).tolist()
    scores = dense.index.search(vector, generation, 2 * MAX_PER_CHANNEL, only)
    if scores.held is not None:
        # An approximate index scores only what a filter allows.
        shared[Channel.DENSE] = scores
    return scores


def find_vectors_generation(db: Connection) -> tuple[int, int]:
    """Return the epoch and the generation of the vectors, which change with every write to their table."""
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
    literal, stating = ({}, NO_ROWS) if words is None else (words.literal, words.stating)
    about_user = _list_facts_about_user(db, results.question)
    answering = [seq for seq, is_asked in about_user.items() if is_asked]
    pooled = merge_rows([*tops.values(), *lifted, np.array([*literal, *answering], np.int64)])
    superseded = {pair.seq: pair.by for pair in edges.list_superseding(db, pooled.tolist())}
    if superseded:
        pooled = merge_rows([pooled, np.array(list(superseded.values()), np.int64)])
    pooled = pooled[values_at(allowed, pooled).astype(np.bool_)]
    outdated = index_state.list_outdated(db, pooled.tolist())
    lexical = None if words is None else words.scores
    found = pooled, tops, lexical, dense, literal, stating, superseded, outdated, list(about_user), answering
    settled = lexical is None or context.lexical.is_current(db, lexical.corpus)
    return Candidates(*found, settled=settled)


def _list_facts_about_user(db: Connection, question: ParsedQuery) -> dict[int, bool]:
    """Return the current facts about the user for a question in the first person, and whether it asks for each."""
    asked = question.asked_attributes
    if not (question.personal or asked):
        return {}
    current = facts.list_attributes(db, USER, utc_now(), MAX_FACTS_ABOUT_USER)
    return {seq: attribute_of_user(attribute) in asked for seq, attribute in current}
