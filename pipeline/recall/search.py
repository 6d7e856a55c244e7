"""Recall, from a query to ranked hits.

    listing, when nothing is asked
    lexical and dense side by side → a pool of their best and what stands beside those
        → checked against the store → ranked

Recall never writes, never calls a language model, and never outlives its deadline by more than the final check.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

import numpy as np

from pipeline.analysis import search_tokens
from pipeline.errors import IndexUnavailable
from pipeline.index.encoder import Encoder
from pipeline.index.lexical import LexicalIndex, LexicalScores
from pipeline.index.sessions import SessionMap
from pipeline.index.vectors import DenseIndex, DenseScores
from pipeline.recall.channels import ChannelPool, ErrorSink, Found, elapsed_ms
from pipeline.recall.query import Answer, Channel, ChannelReport, ChannelState, Hit, Query
from pipeline.recall.rank import REACH, ChannelScores, Floats, Pool, Ranking, channel_scores, rank
from pipeline.store import memories, meta
from pipeline.store.database import Database
from pipeline.store.memories import Filter

BEST_OF_CHANNEL = 120
LIFTING = 40
# From here on a channel's best counts in full: this share of the question's information, this cosine.
CONVINCING_COVERAGE = 0.55
CONVINCING_COSINE = 0.6
OFF = ChannelReport(ChannelState.OFF, 0.0)


@dataclass(frozen=True, slots=True)
class Reader:
    """Everything that recall reads of one workspace."""

    database: Database
    lexical: LexicalIndex
    dense: Callable[[], DenseIndex]
    sessions: SessionMap
    encoder: Callable[[], Encoder]
    channels: ChannelPool
    on_error: ErrorSink


def search(reader: Reader, query: Query) -> Answer:
    """Answer a query within its budget; an empty text lists by importance and recency."""
    began = time.perf_counter()
    if not query.text:
        return _listing(reader, query, began)
    allowed = _allowed(reader, query.filter)
    found = reader.channels.run(
        {
            Channel.LEXICAL: lambda: _lexical(reader, query.text),
            Channel.DENSE: lambda: _dense(reader, query.text, allowed),
        },
        began + query.budget_ms / 1000,
        reader.on_error,
    )
    with reader.database.read() as db:
        ranking = rank(_pool(reader, db, found, query.filter, allowed))
        hits = _hits(db, ranking, query.k)
    reports = {channel: item.report for channel, item in found.items()} | {Channel.GRAPH: OFF}
    return Answer(tuple(hits), reports, elapsed_ms(began))


def _hits(db: Connection, ranking: Ranking, k: int) -> list[Hit]:
    places = ranking.order[:k].tolist()
    seqs = ranking.pool.seqs[places].tolist()
    shown = memories.by_seqs(db, seqs)
    return [
        Hit(shown[seq], float(ranking.score[place]), ranking.signals(place))
        for seq, place in zip(seqs, places, strict=True)
    ]


def _listing(reader: Reader, query: Query, began: float) -> Answer:
    with reader.database.read() as db:
        leading = memories.leading(db, query.filter, query.k)
    hits = tuple(Hit(memory, memory.importance, None) for memory in leading)
    return Answer(hits, dict.fromkeys(Channel, OFF), elapsed_ms(began))


def _allowed(reader: Reader, wanted: Filter) -> "np.ndarray[Any, np.dtype[np.int64]] | None":
    # A narrow filter must choose before the channels rank, or their best may all be filtered away.
    if not wanted.narrows:
        return None
    with reader.database.read() as db:
        return np.array(sorted(memories.visible_seqs(db, wanted)), np.int64)


def _lexical(reader: Reader, text: str) -> LexicalScores:
    tokens = search_tokens(text)
    try:
        with reader.database.read() as db:
            return reader.lexical.search(db, tokens)
    except IndexUnavailable:
        # The segment may have been replaced between our snapshot and its opening; a new snapshot names the new one.
        with reader.database.read() as db:
            return reader.lexical.search(db, tokens)


def _dense(reader: Reader, text: str, allowed: Any) -> DenseScores:
    vector = reader.encoder().encode_query(text)
    with reader.database.read() as db:
        generation = meta.get_int(db, meta.VECTORS_EPOCH), meta.get_int(db, meta.VECTORS_GENERATION)
    only = None if allowed is None else allowed.tolist()
    return reader.dense().search(vector, generation, 2 * BEST_OF_CHANNEL, only)


def _pool(reader: Reader, db: Connection, found: Mapping[Channel, Found], wanted: Filter, allowed: Any) -> Pool:
    reader.sessions.refresh(db)
    answered = {channel: item.scores for channel, item in found.items() if item.scores is not None}
    tops = {channel: scores.top(BEST_OF_CHANNEL, allowed) for channel, scores in answered.items()}
    candidates = {seq for top in tops.values() for seq, _ in top}
    for top in tops.values():
        candidates.update(reader.sessions.neighbours([seq for seq, _ in top[:LIFTING]], REACH))
    shown = memories.standing(db, candidates, wanted)
    seqs = [row.seq for row in shown]
    channels = {channel: _aligned(tops[channel], scores, seqs) for channel, scores in answered.items()}
    places = [reader.sessions.place(seq) for seq in seqs]
    return Pool(
        seqs=np.array(seqs, np.int64),
        sessions=np.array([session for session, _ in places], np.int64),
        positions=np.array([position for _, position in places], np.int64),
        importance=np.array([row.importance for row in shown], np.float64),
        days=np.array([row.days for row in shown], np.float64),
        channels=channels,
        coverage=_coverage(answered.get(Channel.LEXICAL), channels, len(seqs)),
    )


def _aligned(
    top: Sequence[tuple[int, float]], scores: LexicalScores | DenseScores, seqs: Sequence[int]
) -> ChannelScores:
    if isinstance(scores, LexicalScores):
        floor, convincing = 0.0, CONVINCING_COVERAGE * scores.ceiling
    else:
        floor, convincing = top[-1][1] if top else 0.0, CONVINCING_COSINE
    # What another channel or a neighbour brought in gets this channel's true score, where it has one.
    raw = [floor if score is None else score for score in scores.of(seqs)]
    return channel_scores(top, floor, convincing, np.array(seqs, np.int64), np.array(raw, np.float64))


def _coverage(lexical: LexicalScores | None, channels: Mapping[Channel, ChannelScores], count: int) -> Floats:
    if lexical is None or lexical.ceiling <= 0:
        return np.zeros(count)
    return (channels[Channel.LEXICAL].raw / lexical.ceiling).clip(max=1.0)
