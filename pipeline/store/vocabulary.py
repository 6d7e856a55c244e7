"""A workspace's own words: those that stand nearly everywhere, and those that belong together."""

from collections.abc import Sequence
from sqlite3 import Connection
from typing import NamedTuple

from pipeline.store.visibility import Filter, condition


class Text(NamedTuple):
    """What is read of a memory to learn its words."""

    seq: int
    content: str
    session_id: str | None
    occurred_at: str


class StopWord(NamedTuple):
    """A word and the share of memories that hold it."""

    word: str
    share: float


class Bridge(NamedTuple):
    """Two words, in order, and their pointwise mutual information in bits."""

    word: str
    other: str
    pmi: float


def texts(db: Connection, limit: int, before: int) -> list[Text]:
    """List what reaches the whole workspace, newest first, from below a row number."""
    clause, values = condition(Filter())
    rows = db.execute(
        f"SELECT seq, content, session_id, occurred_at FROM memory WHERE {clause} AND seq < ? "  # noqa: S608 - constant text
        "ORDER BY seq DESC LIMIT ?",
        (*values, before, limit),
    )
    return [Text(*row) for row in rows]


def replace(db: Connection, stop_words: Sequence[StopWord], bridges: Sequence[Bridge]) -> None:
    """Put a vocabulary in the place of the former one."""
    purge(db)
    db.executemany("INSERT INTO stop_word VALUES (?, ?)", stop_words)
    db.executemany("INSERT INTO bridge VALUES (?, ?, ?)", bridges)


def stop_words(db: Connection) -> list[StopWord]:
    """List the words that stand nearly everywhere, the most frequent first."""
    return [StopWord(*row) for row in db.execute("SELECT word, share FROM stop_word ORDER BY share DESC, word")]


def bridges(db: Connection) -> list[Bridge]:
    """List the words that belong together, the closest first."""
    return [Bridge(*row) for row in db.execute("SELECT word, other, pmi FROM bridge ORDER BY pmi DESC, word, other")]


def purge(db: Connection) -> None:
    """Forget every word: some may stand in a purged memory alone."""
    db.execute("DELETE FROM stop_word")
    db.execute("DELETE FROM bridge")
