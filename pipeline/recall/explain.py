"""Explain the rank of a hit, and why a memory is not among the hits."""

from collections.abc import Iterator, Mapping
from sqlite3 import Connection

import numpy as np

from pipeline.index.row_arrays import Floats, Seqs, values_at
from pipeline.kernel.records import Filter, Memory, Viewer
from pipeline.kernel.records.recall import (
    Channel,
    ChannelSignal,
    ChannelView,
    Lift,
    MemoryExplanation,
    Query,
    Signals,
    UsedBridge,
)
from pipeline.kernel.store import memories
from pipeline.kernel.store.visibility import is_allowed_by_filter
from pipeline.kernel.times import utc_now
from pipeline.recall.evidence import Candidates
from pipeline.recall.expansion import describe_bridges
from pipeline.recall.rank import FEATURES, FEATURES_OF_GROUP, GROUP_OF_CHANNEL, Ranking, neighbor_positions
from pipeline.recall.relevance import closeness, least_relevance, needs_relevance, relevance

NOT_VISIBLE = "filtered by scope: it belongs to another user, or to a scope outside of the query"
_NOT_FOUND = {
    Channel.LEXICAL: "no word in common",
    Channel.DENSE: "no similar vector",
    Channel.GRAPH: "not linked to the best results",
}


def signals_of(
    db: Connection, ranking: Ranking, candidates: Candidates, positions: Seqs, viewer: Viewer
) -> list[Signals]:
    """Explain the memories at some positions of the pool; name only memories that the viewer may see."""
    lifts = [_lifts(ranking, int(position)) for position in positions]
    lifting_seqs = sorted({seq for lifts_of_hit in lifts for _, seq, _ in lifts_of_hit})
    lifting = memories.filter_showable(db, lifting_seqs, Filter(viewer=viewer))
    used = describe_bridges(candidates.lexical, ranking.evidence.seqs[positions])
    return [
        _signals(
            ranking,
            candidates,
            int(position),
            tuple(
                Lift(part, lifting[seq].id, contribution) for part, seq, contribution in lifts_of_hit if seq in lifting
            ),
            used[int(ranking.evidence.seqs[position])],
        )
        for position, lifts_of_hit in zip(positions, lifts, strict=True)
    ]


def explain_memory(
    db: Connection, ranking: Ranking, candidates: Candidates, query: Query, memory: Memory
) -> MemoryExplanation:
    """Explain why a memory is or is not among the hits; for another user's memory, reveal only that it is another's."""
    if not is_allowed_by_filter(memory.scope, query.filter):
        unseen = {channel: ChannelView(None, 0.0, considered=False) for channel, _, _ in candidates.channels()}
        return MemoryExplanation(memory, None, None, unseen, None, 0.0, (NOT_VISIBLE,))
    seen = {channel: _view_in_channel(scores.by_row, memory.seq, top) for channel, scores, top in candidates.channels()}
    position = int(neighbor_positions(ranking.evidence.seqs, np.array([memory.seq]))[0]) if len(ranking.order) else -1
    if position < 0:
        reasons = _filter_reasons(query, memory) or _missing_reasons(query, seen)
        return MemoryExplanation(memory, None, None, seen, None, 0.0, tuple(reasons))
    signals = signals_of(db, ranking, candidates, np.array([position]), query.filter.viewer)[0]
    score = float(ranking.score[position])
    probable, least = relevance(ranking), least_relevance(ranking.evidence, query.text, query.min_relevance)
    about = float(probable[position])
    close = float(closeness(ranking)[position])
    least = max(least, needs_relevance(query.text, memory.content, least, query.min_relevance, close))
    if about < least:
        reason = f"left out: its relevance is {about:.4f}, and {least:.4f} is asked for"
        return MemoryExplanation(memory, None, score, seen, signals, about, (reason,))
    relevant = ranking.order[probable[ranking.order] >= least]
    rank = int(np.flatnonzero(relevant == position)[0]) + 1
    if rank <= query.k:
        reason = f"found: number {rank} of the results"
    else:
        last = float(ranking.score[relevant[query.k - 1]])
        reason = f"ranked {rank}, and {query.k} were asked for: its score is {score:.3f}, the last result's {last:.3f}"
    return MemoryExplanation(memory, rank, score, seen, signals, about, (reason,))


def _view_in_channel(scores: Floats, seq: int, top: Seqs) -> ChannelView:
    score = _score(scores, seq)
    rank = int(np.count_nonzero(scores > score)) + 1 if score > 0 else None
    return ChannelView(rank, score, bool(np.isin(seq, top)))


def _score(scores: Floats, seq: int) -> float:
    return float(values_at(scores, np.array([seq]))[0])


def _filter_reasons(query: Query, memory: Memory) -> list[str]:
    """List the filters that exclude a memory regardless of its text."""
    return [*_time_reasons(query.filter, memory), *_filter_field_reasons(query.filter, memory)]


def _time_reasons(criteria: Filter, memory: Memory) -> Iterator[str]:
    moment = criteria.as_of or utc_now()
    if memory.archived_at is not None:
        yield f"filtered: archived at {memory.archived_at}"
    if memory.candidate:
        yield "filtered: it is waiting for review"
    if memory.valid_from is not None and memory.valid_from > moment:
        yield f"filtered: it is valid from {memory.valid_from} on"
    if memory.valid_to is not None and memory.valid_to <= moment:
        yield f"filtered: it was valid until {memory.valid_to}"
    if memory.expires_at is not None and memory.expires_at <= moment:
        yield f"filtered: it expired at {memory.expires_at}"
    if criteria.as_of is not None and memory.occurred_at > criteria.as_of:
        yield f"filtered by as_of: it happened at {memory.occurred_at}"


def _filter_field_reasons(criteria: Filter, memory: Memory) -> Iterator[str]:
    if criteria.branch is not None and memory.branch != criteria.branch:
        yield "filtered by branch: it belongs to another branch or none"
    if criteria.kinds and memory.kind not in criteria.kinds:
        yield f"filtered by kinds: it is a {memory.kind}"
    if criteria.session_id is not None and memory.session_id != criteria.session_id:
        yield "filtered by session_id: it belongs to another session or none"
    if criteria.since is not None and memory.occurred_at < criteria.since:
        yield f"filtered by since: it happened at {memory.occurred_at}"
    if criteria.until is not None and memory.occurred_at >= criteria.until:
        yield f"filtered by until: it happened at {memory.occurred_at}"


def _missing_reasons(query: Query, seen: Mapping[Channel, ChannelView]) -> list[str]:
    reasons = []
    for channel in Channel:
        view = seen.get(channel)
        if channel not in query.channels:
            reasons.append(f"{channel}: the channel is off")
        elif view is None and channel is Channel.GRAPH:
            reasons.append(f"{channel}: not searched, because the best results answer the question")
        elif view is None:
            reasons.append(f"{channel}: the channel did not answer in time")
        elif view.rank is None:
            reasons.append(f"{channel}: {_NOT_FOUND[channel]}")
        else:
            reasons.append(f"{channel}: rank {view.rank}, too low to be considered")
    return [*reasons, "no neighbor in its session was among the best"]


def _signals(
    ranking: Ranking, candidates: Candidates, position: int, lifts: tuple[Lift, ...], bridges: tuple[UsedBridge, ...]
) -> Signals:
    evidence = ranking.evidence
    seq = int(evidence.seqs[position])
    parts = {name: float(part[position]) for name, part in ranking.parts.items()}
    channels = {
        channel: ChannelSignal(
            _rank_in(top, seq),
            _score(scores.by_row, seq),
            sum(parts[feature.name] for feature in FEATURES_OF_GROUP[GROUP_OF_CHANNEL[channel]]),
        )
        for channel, scores, top in candidates.channels()
    }
    coverage = float(evidence.lexical[position]) / evidence.ceiling if evidence.ceiling > 0 else 0.0
    about = float(relevance(ranking)[position])
    return Signals(channels, parts, lifts, min(coverage, 1.0), float(evidence.dense[position]), about, bridges)


def _rank_in(top: Seqs, seq: int) -> int | None:
    ranks = np.flatnonzero(top == seq)
    return int(ranks[0]) + 1 if len(ranks) else None


def _lifts(ranking: Ranking, position: int) -> list[tuple[str, int, float]]:
    """List (feature, row number of the memory that lifted, contribution)."""
    own = ranking.pool.own
    lifts = []
    for feature in FEATURES:
        if feature.lifters is None:
            continue
        source = max(feature.lifters(ranking.pool, position), key=lambda at: float(own[at]), default=position)
        contribution = float(ranking.parts[feature.name][position])
        if source != position and contribution > 0:
            lifts.append((feature.name, int(ranking.evidence.seqs[source]), contribution))
    return lifts
