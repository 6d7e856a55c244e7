"""Lessons by age, by what became of the times that they were put before an agent, and by the words that they hold."""

import json
from collections.abc import Sequence
from sqlite3 import Connection

from pipeline.records import Filter, Kind, Memory, Viewer
from pipeline.store.impressions import Tally
from pipeline.store.memories import select
from pipeline.store.visibility import condition

_TEXT = (
    "content || ' ' || coalesce(json_extract(details, '$.rule'), '') || ' ' || "
    "coalesce(json_extract(details, '$.applies_when'), '')"
)

# A lesson as it stands, with the rule and the anchor that it has.
_WHOLE = "lower(content || details || coalesce(anchor, ''))"


def page(db: Connection, viewer: Viewer, words: Sequence[str], limit: int, before: int | None) -> list[Memory]:
    """List lessons that hold each of the words, newest first, from below a row number."""
    clause, values = _select_holding(viewer, words)
    return select(
        db,
        f"{clause} AND seq < ? ORDER BY seq DESC LIMIT ?",
        (*values, before if before is not None else 2**62, limit),
    )


def tallies(db: Connection, viewer: Viewer, words: Sequence[str]) -> list[tuple[int, Tally]]:
    """List the lessons, by row number, that hold each of the words and were shown, with their counts."""
    # Counted as the rows stand: in the order of the index each of them would be fetched by itself.
    counts = {
        seq: Tally(shown, followed, ignored)
        for seq, shown, followed, ignored in db.execute(
            "SELECT memory_seq, count(*), count(*) FILTER (WHERE followed = 1), count(*) FILTER (WHERE followed = 0) "
            "FROM impression NOT INDEXED GROUP BY memory_seq"
        )
    }
    clause, values = _select_holding(viewer, words)
    rows = db.execute(
        f"SELECT seq FROM memory WHERE seq IN (SELECT value FROM json_each(?)) AND {clause}",  # noqa: S608 - constant text
        (json.dumps(list(counts)), *values),
    )
    return [(seq, counts[seq]) for (seq,) in rows]


def list_mentioning(db: Connection, viewer: Viewer, words: Sequence[str], limit: int) -> list[Memory]:
    """List the newest lessons that a viewer may see and that hold one of some lower-case words anywhere."""
    clause, values = condition(Filter(kinds=(Kind.LESSON,), viewer=viewer))
    # SQLite knows the case of ASCII alone.
    if words and all(word.isascii() for word in words):
        clause = f"{clause} AND ({' OR '.join([f'instr({_WHOLE}, ?)'] * len(words))})"
        values = [*values, *words]
    return select(db, f"{clause} ORDER BY seq DESC LIMIT ?", (*values, limit))


def _select_holding(viewer: Viewer, words: Sequence[str]) -> tuple[str, list[str]]:
    clause, values = condition(Filter(kinds=(Kind.LESSON,), viewer=viewer))
    # Unlike LIKE, instr knows no wildcards; lower() knows ASCII alone, on both sides.
    return clause + f" AND instr(lower({_TEXT}), lower(?)) > 0" * len(words), [*values, *words]
