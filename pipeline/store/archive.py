"""The session archive: what transcripts say of sessions, each message and action once, within a storage budget."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.store import index_state, turns
from pipeline.store.turns import Role

# Room made at once when the budget is exceeded, so that the next messages do not exceed it again.
FREED_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class ArchivedSession:
    """A session as its transcript describes it; `last_at` is the time of its last message or action."""

    id: str
    agent: str
    cwd: str
    branch: str | None
    name: str | None
    started_at: str
    last_at: str


def put_session(db: Connection, session: ArchivedSession) -> None:
    """Store a session, or complete what is known of it."""
    row = db.execute(
        "SELECT cwd, branch, name, started_at, turn_at, ended_at FROM agent_session WHERE id = ?", (session.id,)
    ).fetchone()
    cwd, branch, name, started_at, turn_at, ended_at = row or ("", None, None, session.started_at, "", None)
    values = (
        cwd or session.cwd,
        min(started_at, session.started_at),
        max(turn_at, session.last_at),
        name or session.name,
        session.agent,
        session.branch or branch,
        max(ended_at or "", session.last_at),
        session.id,
    )
    if row is None:
        db.execute(
            "INSERT INTO agent_session (cwd, started_at, turn_at, name, agent, branch, ended_at, id) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
    else:
        db.execute(
            "UPDATE agent_session SET cwd = ?, started_at = ?, turn_at = ?, name = ?, agent = ?, branch = ?, "
            "ended_at = ? WHERE id = ?",
            values,
        )


def list_session_texts(db: Connection, session_id: str) -> list[tuple[int, str]]:
    """List the hashes and times of a session's messages, in order."""
    unhashed = db.execute(
        "SELECT seq, role, content FROM turn WHERE session_id = ? AND text_hash IS NULL", (session_id,)
    ).fetchall()
    if unhashed:
        # Stored by a version without hashes.
        db.executemany(
            "UPDATE turn SET text_hash = ? WHERE seq = ?",
            [(turns.hash_text(role, content), seq) for seq, role, content in unhashed],
        )
    rows = db.execute("SELECT text_hash, at FROM turn WHERE session_id = ? ORDER BY seq", (session_id,))
    return [(int(text_hash), str(at)) for text_hash, at in rows]


def list_session_actions(db: Connection, session_id: str) -> list[tuple[tuple[str, str], str]]:
    """List the tools with targets, and the times, of a session's actions, in order."""
    rows = db.execute("SELECT tool, target, at FROM action WHERE session_id = ? ORDER BY seq", (session_id,))
    return [((tool, target), at) for tool, target, at in rows]


def find_action_copies(db: Connection, times: Iterable[str]) -> set[tuple[tuple[str, str], str]]:
    """Return the tools with targets, and the times, of the actions at these times, of all sessions."""
    rows = db.execute(
        "SELECT tool, target, at FROM action WHERE at IN (SELECT value FROM json_each(?))",
        (json.dumps(list(times)),),
    )
    return {((tool, target), at) for tool, target, at in rows}


# Budget

# What is deleted first: the agents' messages, then actions, then the words of the person.
_TURN_SIZE = "length(content)"
_ACTION_SIZE = "length(target) + coalesce(length(error), 0)"
_STEPS = (
    ("turn", _TURN_SIZE, f"role <> '{Role.USER}'"),
    ("action", _ACTION_SIZE, "true"),
    ("turn", _TURN_SIZE, f"role = '{Role.USER}'"),
)


def measure_archive(db: Connection) -> int:
    """Return the size of all turns and actions in characters."""
    return sum(
        int(db.execute(f"SELECT coalesce(sum({size}), 0) FROM {table}").fetchone()[0])  # noqa: S608 - constant text
        for table, size in (("turn", _TURN_SIZE), ("action", _ACTION_SIZE))
    )


def trim_archive(db: Connection, budget: int) -> int:
    """Delete the oldest of what is stored above the budget, the words of the person last; return the freed size."""
    size = measure_archive(db)
    excess = size - int(budget * (1 - FREED_SHARE)) if size > budget else 0
    freed = 0
    for table, measure, condition in _STEPS:
        if freed < excess:
            freed += _delete_oldest(db, table, measure, condition, excess - freed)
    return freed


def _delete_oldest(db: Connection, table: str, measure: str, condition: str, excess: int) -> int:
    """Delete the oldest rows that together have at least a size, or all; return their size."""
    rows = db.execute(
        f"SELECT seq, size FROM (SELECT seq, {measure} AS size, sum({measure}) OVER (ORDER BY at, seq) AS running "  # noqa: S608 - constant text
        f"FROM {table} WHERE {condition}) sizes WHERE running - size < ?",
        (excess,),
    ).fetchall()
    db.executemany(f"DELETE FROM {table} WHERE seq = ?", [(seq,) for seq, _ in rows])  # noqa: S608 - constant text
    if rows and table == "turn":
        index_state.request_turn_segment(db)
    return sum(int(size) for _, size in rows)
