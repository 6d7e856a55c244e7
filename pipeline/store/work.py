"""The work table: what waits for a stage, who holds it, and what failed for good.

An item is claimed by a conditional update under a lease, deleted when done, put off with growing delays when it
fails, and dead after MAX_ATTEMPTS tries. A claim is a try: a memory that kills its worker ends as a dead letter too.
Times are seconds since the epoch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.records import Stage, WorkItem

MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An item that failed for good."""

    memory_seq: int
    stage: Stage
    error: str


def add(db: Connection, seqs: Iterable[int], stages: Iterable[Stage], now: float) -> None:
    """Queue memories for stages; an item that is there already starts afresh, whoever holds it."""
    db.executemany(
        """
        INSERT INTO work (memory_seq, stage, queued_at) VALUES (?, ?, ?)
        ON CONFLICT DO UPDATE SET
            attempts = 0, not_before = 0, lease_owner = NULL, lease_until = NULL, dead = 0, error = NULL,
            queued_at = excluded.queued_at
        """,
        [(seq, stage, now) for stage in tuple(stages) for seq in seqs],
    )


def claim(db: Connection, stage: Stage, owner: str, *, limit: int, lease_s: float, now: float) -> list[WorkItem]:
    """Lease up to `limit` due items of a stage.

    An item that was tried before is claimed alone: the one that breaks its worker must not take others along.
    """
    bury(db, now)
    ready = "stage = ? AND dead = 0 AND not_before <= ? AND (lease_owner IS NULL OR lease_until <= ?)"
    columns = "SELECT memory_seq, attempts FROM work WHERE"
    rows = db.execute(
        f"{columns} {ready} AND attempts = 0 ORDER BY memory_seq LIMIT ?",
        (stage, now, now, limit),
    ).fetchall()
    if not rows:
        rows = db.execute(
            f"{columns} {ready} ORDER BY not_before, memory_seq LIMIT 1",
            (stage, now, now),
        ).fetchall()
    db.executemany(
        "UPDATE work SET lease_owner = ?, lease_until = ?, attempts = attempts + 1 WHERE stage = ? AND memory_seq = ?",
        [(owner, now + lease_s, stage, seq) for seq, _ in rows],
    )
    return [WorkItem(seq, stage, attempts + 1) for seq, attempts in rows]


def complete(db: Connection, items: Sequence[WorkItem], owner: str) -> list[WorkItem]:
    """Finish the items that this owner still holds and return them; the others were taken over or queued afresh."""
    return [
        item
        for item in items
        if db.execute(
            "DELETE FROM work WHERE stage = ? AND memory_seq = ? AND lease_owner = ?",
            (item.stage, item.seq, owner),
        ).rowcount
    ]


def holds(db: Connection, item: WorkItem, owner: str) -> bool:
    """Tell whether the owner still holds an item."""
    row = db.execute(
        "SELECT 1 FROM work WHERE stage = ? AND memory_seq = ? AND lease_owner = ?",
        (item.stage, item.seq, owner),
    ).fetchone()
    return row is not None


def fail(db: Connection, item: WorkItem, owner: str, error: str, *, backoff_s: float, now: float) -> bool:
    """Put a failed item off, or bury it after the last try; return whether it is dead."""
    dead = item.attempts >= MAX_ATTEMPTS
    db.execute(
        """
        UPDATE work SET lease_owner = NULL, lease_until = NULL, not_before = ?, dead = ?, error = ?
        WHERE stage = ? AND memory_seq = ? AND lease_owner = ?
        """,
        (now + backoff_s * 2 ** (item.attempts - 1), dead, error, item.stage, item.seq, owner),
    )
    return dead


def give_back(db: Connection, items: Sequence[WorkItem], owner: str) -> None:
    """Return claimed items untouched, as if they had not been claimed."""
    db.executemany(
        """
        UPDATE work SET lease_owner = NULL, lease_until = NULL, attempts = attempts - 1
        WHERE stage = ? AND memory_seq = ? AND lease_owner = ?
        """,
        [(item.stage, item.seq, owner) for item in items],
    )


def bury(db: Connection, now: float) -> None:
    """Turn items whose holder vanished on the last try into dead letters."""
    db.execute(
        """
        UPDATE work SET dead = 1, lease_owner = NULL, lease_until = NULL,
            error = coalesce(error, 'the worker that held it ended without an answer')
        WHERE lease_owner IS NOT NULL AND lease_until <= ? AND attempts >= ?
        """,
        (now, MAX_ATTEMPTS),
    )


def owners(db: Connection) -> list[str]:
    """List the distinct holders of leases."""
    return [row[0] for row in db.execute("SELECT DISTINCT lease_owner FROM work WHERE lease_owner IS NOT NULL")]


def expire(db: Connection, owner: str) -> int:
    """End the leases of a holder that is known to be gone; return how many there were."""
    return db.execute("UPDATE work SET lease_until = 0 WHERE lease_owner = ?", (owner,)).rowcount


def retry(db: Connection, stage: Stage | None) -> int:
    """Give dead letters, of one stage or all, a fresh start; return how many there were."""
    return db.execute(
        "UPDATE work SET dead = 0, attempts = 0, not_before = 0, error = NULL "
        "WHERE dead = 1 AND stage = coalesce(?, stage)",
        (stage,),
    ).rowcount


def drop(db: Connection, seq: int) -> None:
    """Forget all work on a memory."""
    db.executemany("DELETE FROM work WHERE stage = ? AND memory_seq = ?", [(stage, seq) for stage in Stage])


def pending(db: Connection) -> dict[Stage, int]:
    """Count what is not done and not dead, by stage; every stage is named."""
    return _counts(db, dead=False)


def dead(db: Connection) -> dict[Stage, int]:
    """Count the dead letters by stage; every stage is named."""
    return _counts(db, dead=True)


def dead_letters(db: Connection, limit: int) -> list[DeadLetter]:
    """List dead letters with what ended them."""
    rows = db.execute("SELECT memory_seq, stage, error FROM work WHERE dead = 1 ORDER BY queued_at LIMIT ?", (limit,))
    return [DeadLetter(seq, Stage(stage), error or "") for seq, stage, error in rows]


def due(db: Connection, now: float) -> list[Stage]:
    """List the stages that have something to claim now."""
    rows = db.execute(
        """
        SELECT DISTINCT stage FROM work
        WHERE dead = 0 AND not_before <= ? AND (lease_owner IS NULL OR lease_until <= ?)
        """,
        (now, now),
    )
    return [Stage(row[0]) for row in rows]


def next_due(db: Connection, stage: Stage) -> float | None:
    """Return when the next unclaimed item of a stage is due, None when there is none."""
    row = db.execute(
        "SELECT min(not_before) FROM work WHERE stage = ? AND dead = 0 AND lease_owner IS NULL", (stage,)
    ).fetchone()
    return None if row[0] is None else float(row[0])


def oldest_pending(db: Connection) -> float | None:
    """Return when the oldest pending item was queued."""
    row = db.execute("SELECT min(queued_at) FROM work WHERE dead = 0").fetchone()
    return None if row[0] is None else float(row[0])


def _counts(db: Connection, *, dead: bool) -> dict[Stage, int]:
    counts = dict.fromkeys(Stage, 0)
    rows = db.execute("SELECT stage, count(*) FROM work WHERE dead = ? GROUP BY stage", (dead,))
    counts.update({Stage(stage): count for stage, count in rows})
    return counts
