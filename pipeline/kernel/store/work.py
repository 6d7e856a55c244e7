"""The work table: pending work items per stage, their leases, and dead letters.

An item is claimed by a conditional update under a lease, deleted when done, retried later with growing delays when it
fails, and dead after MAX_ATTEMPTS tries. A claim counts as a try: a memory that kills its worker becomes a dead
letter, too. Times are seconds since the epoch.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.kernel.records import Stage
from pipeline.kernel.records.digestion import WorkItem
from pipeline.kernel.store.database import wake_on_commit
from pipeline.kernel.store.rows import Table, find_row, has_row, is_gone, list_rows, quote_values

MAX_ATTEMPTS = 5
# Ratio of the batch sizes of a first and a second try.
RETRY_BATCH_RATIO = 8
# The longest retry delay: an item with a later time was queued before the clock was set back.
MAX_RETRY_DELAY_S = 7200.0
_DUE = "dead = 0 AND (not_before <= :now OR not_before > :far) AND (lease_owner IS NULL OR lease_until <= :now)"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An item that failed permanently, and its number of tries; `queued_at` is the time of the first request."""

    memory_seq: int
    stage: Stage
    error: str
    attempts: int
    queued_at: float


@dataclass(frozen=True, slots=True)
class Undigested:
    """Pending digestion of the newest memories.

    `waiting` lists the stages by memory id, `failed` the stages that are dead letters. From the row number `since`
    on, all memories not listed are digested.
    """

    since: int
    waiting: Mapping[str, tuple[Stage, ...]]
    failed: Mapping[str, tuple[Stage, ...]]


# The stages that make a memory searchable and detect duplicates; a purge is no digestion.
DIGESTION_STAGES = (Stage.EMBED, Stage.ENTITIES, Stage.DEDUP)
# Capture works on turns: the row numbers of its items are those of turns.
MEMORY_STAGES = (*DIGESTION_STAGES, Stage.SCREEN, Stage.PURGE)
# The order of these changes no result, so what was said last is found first. Capture reads in the order of what was
# said: a message may replace what an earlier one stated.
NEWEST_FIRST = frozenset({Stage.CONCLUDE, Stage.EMBED_TURNS})


def add(db: Connection, seqs: Iterable[int], stages: Iterable[Stage], now: float) -> None:
    """Queue memories for stages; the commit wakes the workers. A queued item starts again."""
    rows = [(seq, stage, now) for stage in tuple(stages) for seq in seqs]
    db.executemany(
        """
        INSERT INTO work (memory_seq, stage, queued_at) VALUES (?, ?, ?)
        ON CONFLICT (stage, memory_seq) DO UPDATE SET
            attempts = 0, not_before = 0, lease_owner = NULL, lease_until = NULL, dead = 0, error = NULL,
            queued_at = excluded.queued_at
        """,
        rows,
    )
    wake_on_commit(db, *(stage for _, stage, _ in rows))


def claim(db: Connection, stage: Stage, owner: str, *, limit: int, lease_s: float, now: float) -> list[WorkItem]:
    """Lease up to `limit` due items of a stage.

    An item that breaks its worker must not affect others: an item with two tries is claimed alone. Items with one try
    are claimed in small batches, because a killed worker or server leaves entire batches behind.
    """
    dead_letter_vanished(db, now)
    ready = f"SELECT memory_seq, attempts FROM work WHERE stage = :stage AND {_DUE}"  # noqa: S608 - constant text
    values = {"stage": stage, "limit": limit, **_moment(now)}
    first = f"{ready} AND attempts = 0 ORDER BY memory_seq {'DESC' if stage in NEWEST_FIRST else 'ASC'} LIMIT :limit"
    rows = db.execute(first, values).fetchall()
    if not rows:
        values["limit"] = max(1, limit // RETRY_BATCH_RATIO)
        rows = db.execute(f"{ready} AND attempts = 1 ORDER BY memory_seq LIMIT :limit", values).fetchall()
    if not rows:
        rows = db.execute(f"{ready} ORDER BY not_before, memory_seq LIMIT 1", values).fetchall()
    db.executemany(
        "UPDATE work SET lease_owner = ?, lease_until = ?, attempts = attempts + 1 WHERE stage = ? AND memory_seq = ?",
        [(owner, now + lease_s, stage, seq) for seq, _ in rows],
    )
    return [WorkItem(seq, stage, attempts + 1) for seq, attempts in rows]


def complete(db: Connection, items: Sequence[WorkItem], owner: str) -> list[WorkItem]:
    """Finish the items that this owner still has and return them; the others were taken over or queued again."""
    return [
        item
        for item in items
        if db.execute(
            "DELETE FROM work WHERE stage = ? AND memory_seq = ? AND lease_owner = ?",
            (item.stage, item.seq, owner),
        ).rowcount
    ]


def is_held(db: Connection, item: WorkItem, owner: str) -> bool:
    """Return whether the owner still has an item."""
    return has_row(
        db, "SELECT 1 FROM work WHERE stage = ? AND memory_seq = ? AND lease_owner = ?", (item.stage, item.seq, owner)
    )


def fail(db: Connection, item: WorkItem, owner: str, error: str, *, backoff_s: float, now: float) -> bool:
    """Schedule a retry of a failed item, or make it a dead letter after the last try; return whether it is dead."""
    dead = item.attempts >= MAX_ATTEMPTS
    db.execute(
        """
        UPDATE work SET lease_owner = NULL, lease_until = NULL, not_before = ?, dead = ?, error = ?
        WHERE stage = ? AND memory_seq = ? AND lease_owner = ?
        """,
        (now + backoff_s * 2 ** (item.attempts - 1), dead, error, item.stage, item.seq, owner),
    )
    return dead


def release(db: Connection, items: Sequence[WorkItem], owner: str) -> None:
    """Release claimed items as if they had not been claimed."""
    db.executemany(
        """
        UPDATE work SET lease_owner = NULL, lease_until = NULL, attempts = attempts - 1
        WHERE stage = ? AND memory_seq = ? AND lease_owner = ?
        """,
        [(item.stage, item.seq, owner) for item in items],
    )


def postpone(db: Connection, items: Sequence[WorkItem], owner: str, not_before: float) -> None:
    """Release claimed items until a time as if they had not been claimed."""
    release(db, items, owner)
    db.executemany(
        "UPDATE work SET not_before = ? WHERE stage = ? AND memory_seq = ? AND lease_owner IS NULL",
        [(not_before, item.stage, item.seq) for item in items],
    )


def dead_letter_vanished(db: Connection, now: float) -> None:
    """Make items dead letters if their holder vanished on the last try."""
    db.execute(
        """
        UPDATE work SET dead = 1, lease_owner = NULL, lease_until = NULL,
            error = coalesce(error, 'the worker that held it ended without an answer')
        WHERE lease_owner IS NOT NULL AND lease_until <= ? AND attempts >= ?
        """,
        (now, MAX_ATTEMPTS),
    )


def list_owners(db: Connection) -> list[str]:
    """List the distinct holders of leases."""
    return [row[0] for row in db.execute("SELECT DISTINCT lease_owner FROM work WHERE lease_owner IS NOT NULL")]


def expire(db: Connection, owner: str) -> int:
    """Expire the leases of a holder that is known to be gone; return their number."""
    return db.execute("UPDATE work SET lease_until = 0 WHERE lease_owner = ?", (owner,)).rowcount


def retry(db: Connection, stage: Stage | None) -> int:
    """Requeue dead letters of one stage or all; return their number."""
    retried = db.execute(
        "UPDATE work SET dead = 0, attempts = 0, not_before = 0, error = NULL "
        "WHERE dead = 1 AND stage = coalesce(?, stage)",
        (stage,),
    ).rowcount
    if retried:
        wake_on_commit(db, None)
    return retried


def drop(db: Connection, seq: int) -> None:
    """Delete all work of a memory."""
    db.executemany("DELETE FROM work WHERE stage = ? AND memory_seq = ?", [(stage, seq) for stage in MEMORY_STAGES])


def drop_captures(db: Connection, turn_seqs: Iterable[int]) -> None:
    """Delete the work of reading turns for memories."""
    db.executemany("DELETE FROM work WHERE stage = ? AND memory_seq = ?", [(Stage.CAPTURE, seq) for seq in turn_seqs])


def count_pending(db: Connection) -> dict[Stage, int]:
    """Count pending items by stage, including stages without any."""
    return _counts(db, dead=False)


def count_dead(db: Connection) -> dict[Stage, int]:
    """Count dead letters by stage, including stages without any."""
    return _counts(db, dead=True)


def list_dead_letters(db: Connection, limit: int, before: int | None = None) -> list[DeadLetter]:
    """List the dead letters of up to `limit` memories, the last written first, below a row number."""
    rows = db.execute(
        "SELECT memory_seq, stage, error, attempts, queued_at FROM work WHERE dead = 1 AND memory_seq IN "
        "(SELECT DISTINCT memory_seq FROM work WHERE dead = 1 AND memory_seq < ? ORDER BY memory_seq DESC LIMIT ?) "
        "ORDER BY memory_seq DESC, stage",
        (2**62 if before is None else before, limit),
    )
    return [DeadLetter(seq, Stage(stage), error or "", tries, at) for seq, stage, error, tries, at in rows]


def count_digested_since(db: Connection, created_at: str) -> tuple[int, int]:
    """Return the number of memories since a time, and how many of them are digested."""
    # Rows are in the order of their writing: the scan back ends at the first older row.
    last = db.execute(
        "SELECT coalesce((SELECT seq FROM memory WHERE created_at < ? ORDER BY seq DESC LIMIT 1), 0)", (created_at,)
    ).fetchone()[0]
    (written,) = db.execute("SELECT count(*) FROM memory WHERE seq > ?", (last,)).fetchone()
    (left,) = db.execute(
        "SELECT count(DISTINCT memory_seq) FROM work "
        "WHERE stage IN (SELECT value FROM json_each(?)) AND memory_seq > ?",
        (json.dumps(DIGESTION_STAGES), last),
    ).fetchone()
    return written, written - left


def oldest_by_stage(db: Connection) -> dict[Stage, float]:
    """Return the queue time of the oldest pending item of each stage."""
    return {
        Stage(stage): at
        for stage, at in db.execute("SELECT stage, min(queued_at) FROM work WHERE dead = 0 GROUP BY stage")
    }


def find_undigested(db: Connection, limit: int) -> Undigested:
    """Return the pending work of the newest memories, up to `limit` items per stage."""
    since, undigested = 0, []
    for stage in DIGESTION_STAGES:
        rows = db.execute(
            "SELECT w.memory_seq, w.stage, w.dead, m.id FROM work w JOIN memory m ON m.seq = w.memory_seq "
            "WHERE w.stage = ? ORDER BY w.memory_seq DESC LIMIT ?",
            (stage, limit),
        ).fetchall()
        if len(rows) == limit:
            since = max(since, rows[-1][0])
        undigested += [row[1:] for row in rows]
    return _group_undigested(since, undigested)


def find_undigested_among(db: Connection, seqs: Iterable[int]) -> Undigested:
    """Return the pending work of some memories."""
    return _group_undigested(
        0,
        db.execute(
            "WITH given (seq) AS MATERIALIZED (SELECT CAST(value AS BIGINT) FROM json_each(?)) "
            "SELECT w.stage, w.dead, m.id FROM given g CROSS JOIN json_each(?) d "
            "JOIN work w ON w.stage = d.value AND w.memory_seq = g.seq JOIN memory m ON m.seq = w.memory_seq",
            (json.dumps(list(seqs)), json.dumps(DIGESTION_STAGES)),
        ),
    )


def list_due_stages(db: Connection, now: float) -> list[Stage]:
    """List the stages with claimable items."""
    return list_rows(db, Stage, f"SELECT DISTINCT stage FROM work WHERE {_DUE}", _moment(now))  # noqa: S608


def list_leased_stages(db: Connection, now: float) -> list[Stage]:
    """List the stages of which a worker has items."""
    return list_rows(
        db, Stage, "SELECT DISTINCT stage FROM work WHERE lease_owner IS NOT NULL AND lease_until > ?", (now,)
    )


def find_next_claimable(db: Connection, now: float) -> float | None:
    """Return the earliest time at which an item can be claimed without new writes; None for never."""
    if list_due_stages(db, now):
        return now
    return find_row(db, float, "SELECT min(max(not_before, coalesce(lease_until, 0))) FROM work WHERE dead = 0")


def find_next_due(db: Connection, stage: Stage) -> float | None:
    """Return when the next unclaimed item of a stage is due, None if there is none."""
    return find_row(
        db, float, "SELECT min(not_before) FROM work WHERE stage = ? AND dead = 0 AND lease_owner IS NULL", (stage,)
    )


def oldest_pending(db: Connection) -> float | None:
    """Return the queue time of the oldest pending item."""
    return find_row(db, float, "SELECT min(queued_at) FROM work WHERE dead = 0")


def _moment(now: float) -> dict[str, float]:
    return {"now": now, "far": now + MAX_RETRY_DELAY_S}


def _counts(db: Connection, *, dead: bool) -> dict[Stage, int]:
    rows = db.execute("SELECT stage, count(*) FROM work WHERE dead = ? GROUP BY stage", (dead,))
    return dict.fromkeys(Stage, 0) | {Stage(stage): count for stage, count in rows}


def _group_undigested(since: int, rows: Iterable[tuple[str, int, str]]) -> Undigested:
    waiting: dict[str, tuple[Stage, ...]] = {}
    failed: dict[str, tuple[Stage, ...]] = {}
    for stage, is_dead, memory_id in rows:
        known = failed if is_dead else waiting
        known[memory_id] = (*known.get(memory_id, ()), Stage(stage))
    return Undigested(since, waiting, failed)


# A purge works on what is gone.
TABLES = (
    Table(
        "work",
        ("stage", "memory_seq"),
        text=("error",),
        memory=("memory_seq",),
        erasure=lambda db, memory: drop(db, memory.seq),
        orphans="work",
        orphaned=f"stage NOT IN ({quote_values(Stage)}) "  # noqa: S608 - constant text
        f"OR (stage IN ({quote_values((*DIGESTION_STAGES, Stage.SCREEN))}) AND {is_gone('work.memory_seq')}) "
        f"OR (stage IN ({quote_values((Stage.CAPTURE, Stage.CONCLUDE, Stage.EMBED_TURNS))}) "
        "AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.seq = work.memory_seq))",
    ),
)
