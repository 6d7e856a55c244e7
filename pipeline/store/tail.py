"""The lexical tail: the tokens of what was written since the segment was built."""

from collections.abc import Sequence
from sqlite3 import Connection


def put(db: Connection, seq: int, tokens: Sequence[str], change_seq: int) -> None:
    """Keep a memory's tokens, in place of what the tail held of it."""
    db.execute("INSERT OR REPLACE INTO tail VALUES (?, ?, ?)", (seq, change_seq, " ".join(tokens)))


def drop(db: Connection, seq: int) -> None:
    """Remove a memory from the tail."""
    db.execute("DELETE FROM tail WHERE seq = ?", (seq,))


def trim(db: Connection, through_change: int) -> None:
    """Remove what a segment built at this change number covers."""
    db.execute("DELETE FROM tail WHERE change_seq <= ?", (through_change,))


def size(db: Connection) -> int:
    """Count the rows of the tail."""
    return int(db.execute("SELECT count(*) FROM tail").fetchone()[0])


def after(db: Connection, change_seq: int) -> list[tuple[int, int, list[str]]]:
    """List (row number, change number, tokens) of what was put after a change, in that order."""
    rows = db.execute(
        "SELECT seq, change_seq, tokens FROM tail WHERE change_seq > ? ORDER BY change_seq", (change_seq,)
    )
    return [(seq, change, tokens.split(" ") if tokens else []) for seq, change, tokens in rows]
