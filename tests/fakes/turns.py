"""Turns of sessions, written as the door writes them, and BM25 as its papers write it."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pipeline.index.segment import K1, B, build_segment
from pipeline.kernel.records import Draft
from pipeline.kernel.store import changes, index_state, meta
from pipeline.kernel.store.database import Database
from pipeline.text.tokens import is_field
from pipeline.write.accept import commit, prepare

Row = tuple[int, list[str]]

NOON = "2026-03-04T12:00:00.000Z"


def write_turns(database: Database, turns: Iterable[tuple[str | None, str]]) -> list[Row]:
    """Write (session, text) turns, twins apart; return the (row number, terms) of each."""
    prepared = [prepare(Draft(text, session_id=session, occurred_at=NOON)) for session, text in turns]
    with database.read() as db:
        first = changes.generation(db)
    unique = [
        replace(item, memory=replace(item.memory, content_hash=f"{first + number}"))
        for number, item in enumerate(prepared)
    ]
    commit(database, unique)
    return [(first + number, item.tokens) for number, item in enumerate(prepared, start=1)]


def fold(database: Database, folder: Path, rows: Sequence[Row]) -> str:
    """Move rows from the tail into a new segment and make it current; return its name."""
    name = build_segment(folder, sorted(rows))
    with database.write() as db:
        meta.put(db, meta.SEGMENT, name)
        meta.put(db, meta.SEGMENT_COVERS, str(changes.generation(db)))
        for seq, _ in rows:
            index_state.drop_tokens(db, seq)
    return name


def bm25(documents: Sequence[Sequence[str]], query: Iterable[str]) -> list[float]:
    """Score documents of terms, one at a time; fields count for no length."""
    lengths = [sum(not is_field(term) for term in document) for document in documents]
    average = sum(lengths) / len(lengths)
    scores = [0.0] * len(documents)
    for term in dict.fromkeys(query):
        df = sum(term in document for document in documents)
        idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
        for place, document in enumerate(documents):
            tf = Counter(document)[term]
            scores[place] += idf * tf / (tf + K1 * (1 - B + B * lengths[place] / average))
    return scores
