"""The lexical tail: an FTS5 index over what was written since the segment was built."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection


@dataclass(frozen=True, slots=True)
class TailStatistics:
    """What BM25 needs to know of the tail: rows, tokens, and rows that hold each asked token."""

    rows: int
    tokens: int
    document_frequency: dict[str, int]


def put(db: Connection, seq: int, tokens: Sequence[str], change_seq: int) -> None:
    """Index a memory's tokens, replacing what the tail held of it."""
    drop(db, seq)
    add(db, seq, tokens, change_seq)


def add(db: Connection, seq: int, tokens: Sequence[str], change_seq: int) -> None:
    """Index a memory that the tail does not hold yet."""
    db.execute("INSERT INTO tail (rowid, tokens) VALUES (?, ?)", (seq, " ".join(tokens)))
    db.execute("INSERT INTO tail_row VALUES (?, ?, ?)", (seq, change_seq, len(tokens)))


def drop(db: Connection, seq: int) -> None:
    """Remove a memory from the tail."""
    if db.execute("DELETE FROM tail_row WHERE seq = ?", (seq,)).rowcount:
        db.execute("DELETE FROM tail WHERE rowid = ?", (seq,))


def trim(db: Connection, through_change: int) -> None:
    """Remove what a segment built at this change number covers."""
    covered = [row[0] for row in db.execute("SELECT seq FROM tail_row WHERE change_seq <= ?", (through_change,))]
    db.executemany("DELETE FROM tail WHERE rowid = ?", [(seq,) for seq in covered])
    db.executemany("DELETE FROM tail_row WHERE seq = ?", [(seq,) for seq in covered])


def scrub(db: Connection) -> None:
    """Rewrite the full-text index so that no page keeps the tokens of a removed memory."""
    db.execute("INSERT INTO tail (tail) VALUES ('optimize')")


def size(db: Connection) -> int:
    """Count the rows of the tail."""
    return int(db.execute("SELECT count(*) FROM tail_row").fetchone()[0])


def seqs(db: Connection) -> list[int]:
    """List the memories that the tail holds."""
    return [row[0] for row in db.execute("SELECT seq FROM tail_row")]


def matches(db: Connection, tokens: Iterable[str], limit: int) -> list[tuple[int, list[str]]]:
    """Return the rows that hold any of the tokens, best by FTS5's own rank first, with all their tokens."""
    query = " OR ".join(_quoted(token) for token in dict.fromkeys(tokens))
    if not query:
        return []
    rows = db.execute("SELECT rowid, tokens FROM tail WHERE tail MATCH ? ORDER BY rank LIMIT ?", (query, limit))
    return [(seq, text.split(" ")) for seq, text in rows]


def statistics(db: Connection, tokens: Iterable[str]) -> TailStatistics:
    """Return the tail's size and the document frequency of the given tokens."""
    rows, total = db.execute("SELECT count(*), coalesce(sum(length), 0) FROM tail_row").fetchone()
    wanted = list(dict.fromkeys(tokens))
    marks = ",".join("?" * len(wanted))
    found = db.execute(f"SELECT term, doc FROM tail_terms WHERE term IN ({marks})", wanted)  # noqa: S608 - only "?" marks
    return TailStatistics(rows, total, dict(found))


def _quoted(token: str) -> str:
    doubled = token.replace('"', '""')
    return f'"{doubled}"'
