"""Recall, from a query to ranked hits.

    listing, when nothing is asked
    an answer that is still true, when there is one
    lexical and dense side by side → a pool of their best and what stands beside those
        → checked against the store → evidence → ranked

Recall never writes, never calls a language model, and never outlives its deadline by more than the final check.
"""

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import IndexUnavailable, NotFound
from pipeline.index.dense import DenseIndex, DenseScores
from pipeline.index.encoder import Encoder
from pipeline.index.lexical import LexicalIndex, LexicalScores
from pipeline.index.rows import taken
from pipeline.index.sessions import SessionMap
from pipeline.index.standings import Standings
from pipeline.recall.cache import AnswerCache
from pipeline.recall.channels import ChannelPool, ErrorSink, Found, elapsed_ms
from pipeline.recall.evidence import Candidates, gather
from pipeline.recall.explain import Verdict, signals_of, verdict
from pipeline.recall.gates import relevance
from pipeline.recall.literals import identifier_holders
from pipeline.recall.query import Answer, Channel, ChannelReport, ChannelState, Hit, Query
from pipeline.recall.question import Question, read_question
from pipeline.recall.rank import Integers, Ranking, rank
from pipeline.recall.remarks import NOTHING, brought_up_to_date, remarks_on
from pipeline.records import Filter, Memory, Viewer
from pipeline.store import changes, facts, memories, meta
from pipeline.store.database import Database
from pipeline.times import utc_text

BEST_OF_CHANNEL = 80
LIFTING = 20
NOBODY = np.empty(0, np.int64)
OFF = ChannelReport(ChannelState.OFF, 0.0)

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Reader:
    """Everything that recall reads of one workspace."""

    database: Database
    lexical: LexicalIndex
    dense: Callable[[], DenseIndex]
    sessions: SessionMap
    standings: Standings
    encoder: Callable[[], Encoder]
    channels: ChannelPool
    answers: AnswerCache
    on_error: ErrorSink


@dataclass(frozen=True, slots=True)
class Heard:
    """What a query asks, which memories may answer it (None for all), and what the channels found."""

    question: Question
    allowed: Mask | None
    found: Mapping[Channel, Found]


def warm(reader: Reader) -> None:
    """Load what the first lexical answer would otherwise wait for."""
    with reader.database.read() as db:
        reader.lexical.refresh(db)
        reader.standings.refresh(db)


def search(reader: Reader, query: Query) -> Answer:
    """Answer a query within its budget; an empty text lists by importance and recency."""
    began = time.perf_counter()
    if not query.text:
        return _listing(reader, query, began)
    now = datetime.now(UTC)
    with reader.database.read() as db:
        state = standing(db, now)
        query = _for_anybody(db, query)
    answer = reader.answers.get((state, query), lambda: _answer(reader, query, now), query.budget_ms / 1000)
    # A kept answer names the state of the store that it was computed from; files change without it.
    hits = tuple(replace(hit, remarks=brought_up_to_date(hit.memory, hit.remarks)) for hit in answer.hits)
    return replace(answer, hits=hits, took_ms=elapsed_ms(began))


def measure(reader: Reader, query: Query) -> Answer:
    """Answer a query anew, whatever is kept: for who wants to know what an answer takes."""
    began = time.perf_counter()
    if not query.text:
        return _listing(reader, query, began)
    with reader.database.read() as db:
        query = _for_anybody(db, query)
    return replace(_answer(reader, query, datetime.now(UTC)), took_ms=elapsed_ms(began))


def standing(db: Connection, now: datetime) -> Hashable:
    """Return everything beside the query that an answer depends on, as of a moment (UTC)."""
    began_or_ended = facts.last_turn(db, utc_text(now))
    state = changes.generation(db), meta.get(db, meta.SEGMENT), began_or_ended, *_vectors_generation(db)
    # Relative times in a query mean another span tomorrow.
    return state, now.date()


def why(reader: Reader, query: Query, memory_id: str) -> Verdict:
    """Say why a memory is or is not among a query's hits; raise NotFound for one that does not exist."""
    heard = _listen(reader, query, datetime.now(UTC))
    with reader.database.read() as db:
        memory = memories.get(db, memory_id)
        if memory is None:
            raise NotFound("no such memory")
        _, candidates, ranking = _ranked(reader, db, heard)
        return verdict(db, ranking, candidates, query, memory)


def _for_anybody(db: Connection, query: Query) -> Query:
    if query.filter.owns and not memories.owns_any(db, query.filter.viewer):
        # It is told what anybody is told, and what was found for anybody answers it.
        return replace(query, filter=replace(query.filter, viewer=Viewer()))
    return query


def _answer(reader: Reader, query: Query, now: datetime) -> Answer:
    began = time.perf_counter()
    heard = _listen(reader, query, now)
    with reader.database.read() as db:
        heard, candidates, ranking = _ranked(reader, db, heard)
        hits = _hits(db, ranking, candidates, query)
    reports = {channel: item.report for channel, item in heard.found.items()} | {Channel.GRAPH: OFF}
    settled = candidates.dense is None or candidates.dense.settled
    return Answer(hits, reports, elapsed_ms(began), settled)


def _listen(reader: Reader, query: Query, now: datetime) -> Heard:
    """Ask the channels, side by side and within the budget."""
    deadline = time.perf_counter() + query.budget_ms / 1000
    question = read_question(query.text, now)
    allowed = _allowed(reader, query.filter)
    searches = {
        Channel.LEXICAL: lambda: _lexical(reader, question),
        Channel.DENSE: lambda: _dense(reader, query.text, allowed),
    }
    wanted = {channel: find for channel, find in searches.items() if channel in query.channels}
    found = reader.channels.run(wanted, deadline, reader.on_error)
    return Heard(question, allowed, dict.fromkeys(searches, Found(OFF)) | found)


def _ranked(reader: Reader, db: Connection, heard: Heard) -> tuple[Heard, Candidates, Ranking]:
    """Rank what the channels found; one whose index breaks only now is left out as if it had never answered."""
    candidates = _candidates(reader, db, heard)
    try:
        evidence = gather(db, reader.sessions, reader.standings, heard.question, candidates)
    except IndexUnavailable as error:
        reader.on_error(Channel.DENSE, error)
        cold = Found(replace(heard.found[Channel.DENSE].report, state=ChannelState.COLD))
        return _ranked(reader, db, replace(heard, found={**heard.found, Channel.DENSE: cold}))
    return heard, candidates, rank(evidence)


def _hits(db: Connection, ranking: Ranking, candidates: Candidates, query: Query) -> tuple[Hit, ...]:
    shown: dict[int, Memory] = {}
    probable, order = relevance(ranking), ranking.order
    if query.least_relevance:
        order = order[: query.k]
        order = order[probable[order] >= query.least_relevance]
    seqs = ranking.evidence.seqs[order].tolist()
    # The store has the last word; where it takes hits away, the next ones move up.
    for start in range(0, len(seqs), query.k):
        shown |= memories.showable(db, seqs[start : start + query.k], query.filter)
        if len(shown) >= query.k:
            break
    found = list(shown.values())[: query.k]
    places = np.searchsorted(ranking.evidence.seqs, [memory.seq for memory in found])
    signals = signals_of(db, ranking, candidates, places) if query.explain else [None] * len(found)
    scores, relevances = ranking.score[places].tolist(), probable[places].tolist()
    remarks = remarks_on(db, found)
    noted = [remarks.get(memory.seq, NOTHING) for memory in found]
    return tuple(Hit(*parts) for parts in zip(found, scores, relevances, signals, noted, strict=True))


def _listing(reader: Reader, query: Query, began: float) -> Answer:
    with reader.database.read() as db:
        leading = memories.leading(db, query.filter, query.k)
        remarks = remarks_on(db, leading)
    hits = tuple(
        Hit(memory, memory.importance, relevance=1.0, remarks=remarks.get(memory.seq, NOTHING)) for memory in leading
    )
    return Answer(hits, dict.fromkeys(Channel, OFF), elapsed_ms(began))


def _allowed(reader: Reader, wanted: Filter) -> Mask | None:
    # A narrow filter must choose before the channels rank, or their best may all be filtered away.
    if not wanted.narrows and not wanted.owns:
        return None
    with reader.database.read() as db:
        seqs = memories.visible_seqs(db, wanted) if wanted.narrows else memories.owned_seqs(db, wanted)
        size = memories.last_seq(db) + 1
        allowed = np.zeros(size, np.bool_)
        if not wanted.narrows:
            reader.standings.refresh(db)
            allowed |= taken(reader.standings.visible, np.arange(size)).astype(np.bool_)
    allowed[seqs] = True
    return allowed


def _lexical(reader: Reader, question: Question) -> LexicalScores:
    try:
        with reader.database.read() as db:
            return reader.lexical.search(db, question.tokens)
    except IndexUnavailable:
        # The segment may have been replaced between our snapshot and its opening; a new snapshot names the new one.
        with reader.database.read() as db:
            return reader.lexical.search(db, question.tokens)


def _dense(reader: Reader, text: str, allowed: Mask | None) -> DenseScores:
    vector = reader.encoder().encode_query(text)
    with reader.database.read() as db:
        generation = _vectors_generation(db)
    only = None if allowed is None else np.flatnonzero(allowed).tolist()
    return reader.dense().search(vector, generation, 2 * BEST_OF_CHANNEL, only)


def _vectors_generation(db: Connection) -> tuple[int, int]:
    return meta.get_int(db, meta.VECTORS_EPOCH), meta.get_int(db, meta.VECTORS_GENERATION)


def _candidates(reader: Reader, db: Connection, heard: Heard) -> Candidates:
    """Pool each channel's best, what stands beside the very best of them, and who holds an identifier."""
    reader.sessions.refresh(db)
    reader.standings.refresh(db)
    allowed = reader.standings.visible if heard.allowed is None else heard.allowed
    lexical, dense = heard.found[Channel.LEXICAL].scores, heard.found[Channel.DENSE].scores
    tops: dict[Channel, Integers] = {}
    for channel, scores in ((Channel.LEXICAL, lexical), (Channel.DENSE, dense)):
        if scores is not None:
            tops[channel] = scores.top(BEST_OF_CHANNEL, allowed)
    holders = [] if lexical is None else identifier_holders(heard.question, lexical)
    lifted = [reader.sessions.around(top[:LIFTING]) for top in tops.values()]
    pooled = np.unique(np.concatenate([*tops.values(), *lifted, *holders, NOBODY]))
    pooled = pooled[taken(allowed, pooled).astype(np.bool_)]
    return Candidates(pooled, tops, lexical, dense, holders)
