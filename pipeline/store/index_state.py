"""What the indexes must hold: the lexical tail since the segment was built, and which memories are embedded."""

import json
from collections.abc import Sequence
from sqlite3 import Connection

from pipeline.store import meta
from pipeline.store.database import wake_on_commit


def put_tokens(db: Connection, seq: int, tokens: Sequence[str], change_seq: int) -> None:
    """Keep a memory's tokens, in place of what the tail held of it."""
    db.execute(
        "INSERT INTO tail VALUES (?, ?, ?) "
        "ON CONFLICT (seq) DO UPDATE SET change_seq = excluded.change_seq, tokens = excluded.tokens",
        (seq, change_seq, " ".join(tokens)),
    )


def drop_tokens(db: Connection, seq: int) -> None:
    """Remove a memory from the tail."""
    db.execute("DELETE FROM tail WHERE seq = ?", (seq,))


def trim_tail(db: Connection, through_change: int) -> None:
    """Remove what a segment built at this change number covers."""
    db.execute("DELETE FROM tail WHERE change_seq <= ?", (through_change,))


def count_tail(db: Connection) -> int:
    """Count the rows of the tail."""
    return int(db.execute("SELECT count(*) FROM tail").fetchone()[0])


def list_tail_after(db: Connection, change_seq: int) -> list[tuple[int, int, list[str]]]:
    """List (row number, change number, tokens) of what was put after a change, in that order."""
    rows = db.execute(
        "SELECT seq, change_seq, tokens FROM tail WHERE change_seq > ? ORDER BY change_seq", (change_seq,)
    )
    return [(seq, change, tokens.split(" ") if tokens else []) for seq, change, tokens in rows]


def note_embedding(db: Connection, memory_seq: int, model: str, passages: int) -> None:
    """Note that a memory's vectors are in the index."""
    db.execute(
        "INSERT INTO embedding VALUES (?, ?, ?) "
        "ON CONFLICT (memory_seq) DO UPDATE SET model = excluded.model, passages = excluded.passages",
        (memory_seq, model, passages),
    )


def outdate_embedding(db: Connection, memory_seq: int) -> None:
    """Note that a memory's vectors are of an earlier text, until it is embedded again."""
    db.execute("UPDATE embedding SET passages = 0 WHERE memory_seq = ?", (memory_seq,))


def list_outdated(db: Connection, seqs: Sequence[int]) -> list[int]:
    """List those of some memories whose vectors are of an earlier text."""
    rows = db.execute(
        "SELECT memory_seq FROM embedding WHERE passages = 0 "
        "AND memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
        (json.dumps(list(seqs)),),
    )
    return [row[0] for row in rows]


def forget_embedding(db: Connection, memory_seq: int) -> None:
    """Note that a memory has no vectors."""
    db.execute("DELETE FROM embedding WHERE memory_seq = ?", (memory_seq,))


def list_expected_passages(db: Connection, model: str) -> dict[int, int]:
    """Return the number of passages that the index must hold for each memory."""
    return dict(db.execute("SELECT memory_seq, passages FROM embedding WHERE model = ?", (model,)).fetchall())


def count_expected_passages(db: Connection, model: str) -> int:
    """Count the passages that the index must hold."""
    total = db.execute("SELECT coalesce(sum(passages), 0) FROM embedding WHERE model = ?", (model,)).fetchone()[0]
    return int(total)


def find_serving_model(db: Connection) -> str | None:
    """Return the model whose vectors answer, None before anything was embedded."""
    return meta.get(db, meta.SERVING_MODEL)


def serve(db: Connection, model: str) -> None:
    """Have a model's vectors answer from now on."""
    before = find_serving_model(db)
    if before == model:
        return
    meta.put(db, meta.SERVING_MODEL, model)
    if before is not None:
        # The other's vectors are deleted by the sweep.
        meta.increment(db, meta.VECTORS_EPOCH)
        wake_on_commit(db, None)


def serve_when_whole(db: Connection, model: str) -> None:
    """Have a model's vectors answer as soon as no memory is embedded by another alone."""
    others = db.execute("SELECT 1 FROM embedding WHERE model != ? LIMIT 1", (model,)).fetchone()
    if others is None:
        serve(db, model)


def count_embedded_by(db: Connection) -> dict[str, int]:
    """Count the memories that each model embedded last."""
    return dict(db.execute("SELECT model, count(*) FROM embedding GROUP BY model").fetchall())


def list_unembedded(db: Connection, model: str) -> list[int]:
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
