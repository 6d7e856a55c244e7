"""Explain the rank of a hit, and why a memory is not among the hits."""

from collections.abc import Iterator, Mapping
from sqlite3 import Connection

import numpy as np

from pipeline.index.rows import Floats, Seqs, values_at
from pipeline.recall.evidence import Candidates
from pipeline.recall.rank import (
    FEATURES,
    FEATURES_OF_GROUP,
    GROUP_OF_CHANNEL,
    Ranking,
    least_relevance,
    neighbour_places,
    relevance,
)
from pipeline.records import Filter, Memory
from pipeline.records.recall import (
    SEARCHED,
    Channel,
    ChannelSignal,
    ChannelView,
    Lift,
    MemoryExplanation,
    Query,
    Signals,
)
from pipeline.store import memories
from pipeline.store.visibility import is_asked_for
from pipeline.times import utc_now

ANOTHERS = "filtered by scope: it belongs to another user, or to a scope outside of the query"


def signals_of(db: Connection, ranking: Ranking, candidates: Candidates, places: Seqs) -> list[Signals]:
    """Explain the memories at some positions of the pool."""
    lifts = [_lifts(ranking, int(place)) for place in places]
    lifting = memories.by_seqs(db, {seq for found in lifts for _, seq, _ in found})
    return [
        _signals(
            ranking,
            candidates,
            int(place),
            tuple(Lift(part, lifting[seq].id, contribution) for part, seq, contribution in found),
        )
        for place, found in zip(places, lifts, strict=True)
    ]


def explain_memory(
    db: Connection, ranking: Ranking, candidates: Candidates, query: Query, memory: Memory
) -> MemoryExplanation:
    """Explain why a memory is or is not among the hits; for another user's memory, reveal only that it is another's."""
    if not is_asked_for(memory.scope, query.filter):
        unseen = {channel: ChannelView(None, 0.0, considered=False) for channel, _, _ in candidates.channels()}
        return MemoryExplanation(memory, None, None, unseen, None, 0.0, (ANOTHERS,))
    seen = {channel: _view_in_channel(scores.by_row, memory.seq, top) for channel, scores, top in candidates.channels()}
    place = int(neighbour_places(ranking.evidence.seqs, np.array([memory.seq]))[0]) if len(ranking.order) else -1
    if place < 0:
        reasons = _filter_reasons(query, memory) or _missing_reasons(query, seen)
        return MemoryExplanation(memory, None, None, seen, None, 0.0, tuple(reasons))
    signals = signals_of(db, ranking, candidates, np.array([place]))[0]
    score = float(ranking.score[place])
    probable, least = relevance(ranking), least_relevance(ranking.evidence, query.min_relevance)
    about = float(probable[place])
    if about < least:
        reason = f"left out: its relevance is {about:.4f}, and {least:.4f} is asked for"
        return MemoryExplanation(memory, None, score, seen, signals, about, (reason,))
    kept = ranking.order[probable[ranking.order] >= least]
    rank = int(np.flatnonzero(kept == place)[0]) + 1
    if rank <= query.k:
        reason = f"found: number {rank} of the results"
    else:
        last = float(ranking.score[kept[query.k - 1]])
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


def _time_reasons(wanted: Filter, memory: Memory) -> Iterator[str]:
    moment = wanted.as_of or utc_now()
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
    if wanted.as_of is not None and memory.occurred_at > wanted.as_of:
        yield f"filtered by as_of: it happened at {memory.occurred_at}"


def _filter_field_reasons(wanted: Filter, memory: Memory) -> Iterator[str]:
    if wanted.branch is not None and memory.branch != wanted.branch:
        yield "filtered by branch: it belongs to another branch or none"
    if wanted.kinds and memory.kind not in wanted.kinds:
        yield f"filtered by kinds: it is a {memory.kind}"
    if wanted.session_id is not None and memory.session_id != wanted.session_id:
        yield "filtered by session_id: it belongs to another session or none"
    if wanted.since is not None and memory.occurred_at < wanted.since:
        yield f"filtered by since: it happened at {memory.occurred_at}"
    if wanted.until is not None and memory.occurred_at >= wanted.until:
        yield f"filtered by until: it happened at {memory.occurred_at}"


def _missing_reasons(query: Query, seen: Mapping[Channel, ChannelView]) -> list[str]:
    reasons = []
    for channel in SEARCHED:
        found = seen.get(channel)
        if channel not in query.channels:
            reasons.append(f"{channel}: the channel is off")
        elif found is None:
            reasons.append(f"{channel}: the channel did not answer in time")
        elif found.rank is None:
            reasons.append(
                f"{channel}: " + ("no word in common" if channel is Channel.LEXICAL else "no similar vector")
            )
        else:
            reasons.append(f"{channel}: rank {found.rank}, too low to be considered")
    return [*reasons, "no neighbor in its session was among the best"]


def _signals(ranking: Ranking, candidates: Candidates, place: int, lifts: tuple[Lift, ...]) -> Signals:
    evidence = ranking.evidence
    seq = int(evidence.seqs[place])
    parts = {name: float(part[place]) for name, part in ranking.parts.items()}
    channels = {
        channel: ChannelSignal(
            _rank_in(top, seq),
            _score(scores.by_row, seq),
            sum(parts[feature.name] for feature in FEATURES_OF_GROUP[GROUP_OF_CHANNEL[channel]]),
        )
        for channel, scores, top in candidates.channels()
    }
    coverage = float(evidence.lexical[place]) / evidence.ceiling if evidence.ceiling > 0 else 0.0
    about = float(relevance(ranking)[place])
    return Signals(channels, parts, lifts, min(coverage, 1.0), float(evidence.dense[place]), about)


def _rank_in(top: Seqs, seq: int) -> int | None:
    found = np.flatnonzero(top == seq)
    return int(found[0]) + 1 if len(found) else None


def _lifts(ranking: Ranking, place: int) -> list[tuple[str, int, float]]:
    """List (feature, row number of the memory that lifted, contribution)."""
    own = ranking.pool.own
    found = []
    for feature in FEATURES:
        if feature.lifters is None:
            continue
        source = max(feature.lifters(ranking.pool, place), key=lambda at: float(own[at]), default=place)
        contribution = float(ranking.parts[feature.name][place])
        if source != place and contribution > 0:
            found.append((feature.name, int(ranking.evidence.seqs[source]), contribution))
    return found
