"""The expected content of the indexes: the lexical tail since the last segment, and the embedded memories."""

import json
from collections.abc import Sequence
from sqlite3 import Connection

from ulid import ULID

from pipeline.kernel.store import meta
from pipeline.kernel.store.database import wake_on_commit
from pipeline.kernel.store.rows import DELETE, Table, find_row, list_rows

# Turns outside of the segment are split into words by every process that searches, so they are limited.
MOST_TAIL_TURNS = 4_000
# At the start of a request for a segment of turns that must not reuse the present one.
_ANEW = "anew:"


def put_tokens(db: Connection, seq: int, tokens: Sequence[str], change_seq: int) -> None:
    """Store a memory's tokens in the tail, replacing older ones."""
    db.execute(
        "INSERT INTO tail VALUES (?, ?, ?) "
        "ON CONFLICT (seq) DO UPDATE SET change_seq = excluded.change_seq, tokens = excluded.tokens",
        (seq, change_seq, " ".join(tokens)),
    )


def drop_tokens(db: Connection, seq: int) -> None:
    """Remove a memory from the tail."""
    db.execute("DELETE FROM tail WHERE seq = ?", (seq,))


def trim_tail(db: Connection, through_change: int) -> None:
    """Remove the tail rows that a segment with this change number covers."""
    db.execute("DELETE FROM tail WHERE change_seq <= ?", (through_change,))


def count_tail(db: Connection) -> int:
    """Count the rows of the tail."""
    return int(db.execute("SELECT count(*) FROM tail").fetchone()[0])


def list_tail_seqs(db: Connection) -> set[int]:
    """Return the row numbers in the tail."""
    return {seq for (seq,) in db.execute("SELECT seq FROM tail")}


def list_tail_after(db: Connection, change_seq: int) -> list[tuple[int, int, list[str]]]:
    """List (row number, change number, tokens) of tail rows after a change, in order."""
    rows = db.execute(
        "SELECT seq, change_seq, tokens FROM tail WHERE change_seq > ? ORDER BY change_seq", (change_seq,)
    )
    return [(seq, change, tokens.split(" ") if tokens else []) for seq, change, tokens in rows]


def request_turn_segment(db: Connection, *, anew: bool = False) -> None:
    """Request a new segment of turns because some were deleted, or, with `anew`, because the present one is damaged.

    Without a segment, only processes that check their hits have words of turns in memory.
    """
    if meta.get(db, meta.TURN_SEGMENT) is not None:
        # Each request is distinct: a segment that was begun before it does not fulfil it.
        meta.put(db, meta.TURN_SEGMENT_WANTED, f"{_ANEW if anew else ''}{ULID()}")
        wake_on_commit(db, None)


def is_turn_segment_wanted_anew(db: Connection) -> bool:
    """Return whether the next segment of turns must not reuse the present one."""
    return (meta.get(db, meta.TURN_SEGMENT_WANTED) or "").startswith(_ANEW)


def note_turns_added(db: Connection, last_seq: int) -> None:
    """Request a new segment of turns if too many turns, of which this is the last, are outside of the present one."""
    is_many = last_seq - meta.get_int(db, meta.TURN_SEGMENT_COVERS) >= MOST_TAIL_TURNS
    if is_many and meta.get(db, meta.TURN_SEGMENT_WANTED) is None:
        meta.put(db, meta.TURN_SEGMENT_WANTED, str(ULID()))
        wake_on_commit(db, None)


def note_embedding(db: Connection, memory_seq: int, model: str, passages: int, statements: str | None = None) -> None:
    """Record that a memory's vectors are in the index, and what its text states."""
    db.execute(
        "INSERT INTO embedding VALUES (?, ?, ?, ?) ON CONFLICT (memory_seq) DO UPDATE "
        "SET model = excluded.model, passages = excluded.passages, statements = excluded.statements",
        (memory_seq, model, passages, statements),
    )


def outdate_embedding(db: Connection, memory_seq: int) -> None:
    """Record that a memory's vectors belong to an earlier text until it is embedded again; drop its statements."""
    db.execute("UPDATE embedding SET passages = 0, statements = NULL WHERE memory_seq = ?", (memory_seq,))


def list_outdated(db: Connection, seqs: Sequence[int]) -> list[int]:
    """List which of some memories have vectors of an earlier text."""
    # Usually none has: with the sign, the index of those that have is read, and not the row of each memory.
    return list_rows(
        db,
        int,
        "SELECT memory_seq FROM embedding WHERE passages = 0 "
        "AND +memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
        (json.dumps(list(seqs)),),
    )


def forget_embedding(db: Connection, memory_seq: int) -> None:
    """Record that a memory has no vectors."""
    db.execute("DELETE FROM embedding WHERE memory_seq = ?", (memory_seq,))


def list_expected_passages(db: Connection, model: str) -> dict[int, int]:
    """Return the expected number of passages per memory."""
    return dict(db.execute("SELECT memory_seq, passages FROM embedding WHERE model = ?", (model,)).fetchall())


def count_expected_passages(db: Connection, model: str) -> int:
    """Count the expected passages."""
    return find_row(db, int, "SELECT sum(passages) FROM embedding WHERE model = ?", (model,)) or 0


def find_serving_model(db: Connection) -> str | None:
    """Return the model whose vectors are used in searches, None before the first embedding."""
    return meta.get(db, meta.SERVING_MODEL)


def serve(db: Connection, model: str) -> None:
    """Use a model's vectors in searches from now on."""
    before = find_serving_model(db)
    if before == model:
        return
    meta.put(db, meta.SERVING_MODEL, model)
    if before is not None:
        # The sweep deletes the other model's vectors.
        meta.increment(db, meta.VECTORS_EPOCH)
        wake_on_commit(db, None)


def serve_when_whole(db: Connection, model: str) -> None:
    """Use a model's vectors in searches as soon as it has embedded every memory."""
    others = db.execute("SELECT 1 FROM embedding WHERE model != ? LIMIT 1", (model,)).fetchone()
    if others is None:
        serve(db, model)


def count_embedded_by(db: Connection) -> dict[str, int]:
    """Count the memories per model that embedded them last."""
    return dict(db.execute("SELECT model, count(*) FROM embedding GROUP BY model").fetchall())


def list_unembedded(db: Connection, model: str) -> list[int]:
    """List memories that this model has not embedded and that are not queued for it."""
    return list_rows(
        db,
        int,
        """
        SELECT seq FROM memory
        WHERE NOT EXISTS (SELECT 1 FROM embedding e WHERE e.memory_seq = memory.seq AND e.model = ?)
          AND NOT EXISTS (SELECT 1 FROM work w WHERE w.memory_seq = memory.seq AND w.stage = 'embed')
        """,
        (model,),
    )


TABLES = (
    Table(
        "embedding", ("memory_seq",), text=("statements",), memory=("memory_seq",), erasure=DELETE, orphans="embeddings"
    ),
    Table(
        "tail",
        text=("tokens",),
        memory=("seq",),
        erasure=DELETE,
        orphans="tail",
        orphaned="NOT EXISTS "
        "(SELECT 1 FROM memory WHERE memory.seq = tail.seq AND archived_at IS NULL AND candidate = 0)",
    ),
)
