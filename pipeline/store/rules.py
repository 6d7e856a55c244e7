"""Lessons by the words that they hold, so that not every one of them has to be read."""

from collections.abc import Sequence
from sqlite3 import Connection

from pipeline.records import Kind, Memory, Viewer
from pipeline.store.memories import select
from pipeline.store.visibility import Filter, condition

_HOLDS = "instr(lower(content || details || coalesce(anchor, '')), ?)"


def holding(db: Connection, viewer: Viewer, words: Sequence[str], limit: int) -> list[Memory]:
    """List the newest lessons that a viewer may see and that hold one of some lower-case words anywhere."""
    clause, values = condition(Filter(kinds=(Kind.LESSON,), viewer=viewer))
    # SQLite knows the case of ASCII alone.
    if words and all(word.isascii() for word in words):
        clause = f"{clause} AND ({' OR '.join([_HOLDS] * len(words))})"
        values = [*values, *words]
    return select(db, f"{clause} ORDER BY seq DESC LIMIT ?", (*values, limit))
