"""Which memories are embedded, by which model, in how many passages: what the vector index must hold."""

from sqlite3 import Connection


def record(db: Connection, memory_seq: int, model: str, passages: int) -> None:
    """Note that a memory's vectors are in the index."""
    db.execute(
        "INSERT INTO embedding VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET model = excluded.model, passages = excluded.passages",
        (memory_seq, model, passages),
    )


def forget(db: Connection, memory_seq: int) -> None:
    """Note that a memory has no vectors."""
    db.execute("DELETE FROM embedding WHERE memory_seq = ?", (memory_seq,))


def expected(db: Connection, model: str) -> dict[int, int]:
    """Return the number of passages that the index must hold for each memory."""
    return dict(db.execute("SELECT memory_seq, passages FROM embedding WHERE model = ?", (model,)).fetchall())


def expected_total(db: Connection, model: str) -> int:
    """Count the passages that the index must hold."""
    total = db.execute("SELECT coalesce(sum(passages), 0) FROM embedding WHERE model = ?", (model,)).fetchone()[0]
    return int(total)


def missing(db: Connection, model: str) -> list[int]:
    """List memories that this model has not embedded and that do not wait for it either."""
    rows = db.execute(
        """
        SELECT seq FROM memory
        WHERE NOT EXISTS (SELECT 1 FROM embedding e WHERE e.memory_seq = memory.seq AND e.model = ?)
          AND NOT EXISTS (SELECT 1 FROM work w WHERE w.memory_seq = memory.seq AND w.stage = 'embed')
        """,
        (model,),
    )
    return [row[0] for row in rows]
