"""Answers to likely questions: a worker computes them, and recall reads them instead of searching.

A stored answer contains row numbers, scores and relevances. It is valid in the state of the store that it was computed
in, so that it always equals the answer of a search; the memories themselves are read again.
"""

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cache
from importlib.resources import files
from sqlite3 import Connection

from pipeline.features.predictions import store as predictions
from pipeline.kernel.records import Filter
from pipeline.kernel.records.recall import NOTHING, Answer, Channel, ChannelReport, ChannelState, Hit, Query
from pipeline.kernel.store import changes, facts, memories, meta
from pipeline.kernel.times import utc_text
from pipeline.recall.annotations import find_annotations
from pipeline.recall.first_pass import find_vectors_generation
from pipeline.recall.query import parse_time_range
from pipeline.recall.relevance import NEARLY_RELEVANT

# The default of recall, and the minimum of hooks and `prepare`.
MIN_RELEVANCES = (None, NEARLY_RELEVANT)
# The number of memories that hooks consider; a request for more is searched.
DEPTH = 40
ALL_CHANNELS = tuple(Channel)
# The channels that contributed are not stored.
FOUND: Mapping[str, ChannelReport] = dict.fromkeys(Channel, ChannelReport(ChannelState.OK, 0.0))


@dataclass(frozen=True, slots=True)
class StoreState:
    """Everything besides the query that an answer depends on: the versions of the store's parts, and the local day."""

    key: Hashable
    day: date

    def fingerprint(self, text: str) -> str:
        """Return a text that changes whenever the answer to the owner's question may change, also with the code."""
        # Only relative times, such as "yesterday", mean something else tomorrow.
        midnight = datetime.combine(self.day, time()).astimezone()
        day = None if parse_time_range(text, midnight) is None else str(self.day)
        state = repr((self.key, day, _code_digest()))
        return hashlib.blake2b(state.encode(), digest_size=16).hexdigest()


def read_state(db: Connection, now: datetime) -> StoreState:
    """Return everything besides the query that an answer depends on, at a time (UTC)."""
    began_or_ended = facts.find_last_validity_change(db, utc_text(now))
    bridged = meta.get_int(db, meta.BRIDGES_GENERATION)
    key = changes.generation(db), meta.get(db, meta.SEGMENT), began_or_ended, *find_vectors_generation(db), bridged
    return StoreState(key, now.astimezone().date())


@cache
def _code_digest() -> str:
    """Return a digest of the code that ranks: machines that share a store may run different versions."""
    digest = hashlib.blake2b(digest_size=8)
    for package in ("recall", "index", "text"):
        sources = (file for file in files(f"pipeline.{package}").iterdir() if file.name.endswith(".py"))
        for source in sorted(sources, key=lambda file: file.name):
            digest.update(source.read_bytes())
    return digest.hexdigest()


def list_queries(text: str, budget_ms: int) -> Iterator[Query]:
    """Yield the queries that callers send for a question."""
    for least in MIN_RELEVANCES:
        yield Query(text, DEPTH, budget_ms=budget_ms, min_relevance=least)


def write_answers(answers: Mapping[Query, Answer]) -> str:
    """Return the answers to the queries of a question as the text to store."""
    return json.dumps(
        {
            str(query.min_relevance): [
                (hit.memory.seq, hit.score, hit.relevance, hit.literal_score) for hit in answer.hits
            ]
            for query, answer in answers.items()
        }
    )


def read_stored_answer(db: Connection, state: StoreState, query: Query) -> Answer | None:
    """Return the stored answer to a query; None if it must be searched."""
    is_stored = query.min_relevance in MIN_RELEVANCES and query.channels == ALL_CHANNELS
    if not is_stored or query.explain or query.filter != Filter():
        return None
    stored = predictions.find_answers(db, query.text)
    if stored is None or stored.state != state.fingerprint(query.text):
        return None
    rows = json.loads(stored.answers).get(str(query.min_relevance))
    if rows is None or (query.k > DEPTH and len(rows) == DEPTH):
        return None
    return _build_answer(db, rows[: query.k], query.filter)


def _build_answer(db: Connection, rows: list[tuple[int, float, float, float]], criteria: Filter) -> Answer | None:
    shown = memories.filter_showable(db, [seq for seq, *_ in rows], criteria)
    if len(shown) < len(rows):
        # The store was written to after its state was read.
        return None
    annotations = find_annotations(db, list(shown.values()))
    hits = (
        Hit(shown[seq], score, relevance, annotations=annotations.get(seq, NOTHING), literal_score=literal_score)
        for seq, score, relevance, literal_score in rows
    )
    return Answer(tuple(hits), FOUND, 0.0, is_stored=True)
