"""SQL of the journal as acts need it: what failed, and what was taken back."""

import json
from collections.abc import Collection
from sqlite3 import Connection

from pipeline.kernel.records import Kind, Memory
from pipeline.kernel.store import memories
from pipeline.kernel.store.agent_sessions import JOURNAL, ActionType, JournalRow
from pipeline.kernel.store.rows import has_row
from pipeline.kernel.store.visibility import visible_sessions_condition

# The newest actions that are read when a workspace is opened.
MOST_ACTIONS = 20_000


def last_action(db: Connection) -> tuple[int, str]:
    """Return the number and the time of the last action."""
    return db.execute("SELECT seq, at FROM action ORDER BY seq DESC LIMIT 1").fetchone() or (0, "")


def is_action(db: Connection, seq: int, at: str) -> bool:
    """Return whether there is an action with a number and a time; numbers of deleted actions are used again."""
    return has_row(db, "SELECT 1 FROM action WHERE seq = ? AND at = ?", (seq, at))


def list_new_actions(db: Connection, after: int) -> list[JournalRow]:
    """List the failures, edits and commands of git after an action, in order."""
    newest = JOURNAL.fetch(
        db,
        "WHERE seq > ? AND (ok = 0 OR type IN (?, ?) OR target LIKE '%git %') ORDER BY seq DESC LIMIT ?",
        (after, ActionType.EDIT, ActionType.COMMIT, MOST_ACTIONS),
    )
    return newest[::-1]


def list_visible(db: Connection, seqs: Collection[int], person: str | None) -> list[JournalRow]:
    """List the actions among some that a person may see, the newest first."""
    return JOURNAL.fetch(
        db,
        "WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) "  # noqa: S608 - constant text
        f"AND {visible_sessions_condition(person)} ORDER BY seq DESC",
        (json.dumps(list(seqs)),),
    )


def list_lessons(db: Connection, after: int, limit: int) -> list[Memory]:
    """List the lessons that are neither archived nor candidates, above a row number and in row order."""
    return memories.select(
        db,
        "archived_at IS NULL AND candidate = 0 AND kind = ? AND seq > ? ORDER BY seq LIMIT ?",
        (Kind.LESSON, after, limit),
    )
