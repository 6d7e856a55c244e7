"""The session archive: what transcripts say of sessions, each message and action once, within a storage budget."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from sqlite3 import Connection

from pipeline.kernel.store import index_state, turns
from pipeline.kernel.store.rows import find_row, list_rows
from pipeline.kernel.store.turns import Role
from pipeline.kernel.store.visibility import named_by_condition


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


@dataclass(frozen=True, slots=True)
class ImportedCount:
    """The number of sessions that were read from transcripts, and the times of the first and the last message."""

    sessions: int = 0
    first_at: str | None = None
    last_at: str | None = None


def put_session(db: Connection, session: ArchivedSession) -> None:
    """Store a session, or complete what is known of it."""
    db.execute(
        """
        INSERT INTO agent_session AS known (id, agent, cwd, branch, name, started_at, turn_at, ended_at)
        VALUES (:id, :agent, :cwd, :branch, :name, :started_at, :last_at, :last_at)
        ON CONFLICT (id) DO UPDATE SET
            agent = excluded.agent, cwd = coalesce(nullif(known.cwd, ''), excluded.cwd),
            branch = coalesce(nullif(excluded.branch, ''), known.branch),
            name = coalesce(nullif(known.name, ''), excluded.name),
            started_at = min(known.started_at, excluded.started_at),
            turn_at = max(known.turn_at, excluded.turn_at),
            ended_at = max(coalesce(known.ended_at, ''), excluded.ended_at)
        """,
        asdict(session),
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
    return db.execute("SELECT text_hash, at FROM turn WHERE session_id = ? ORDER BY seq", (session_id,)).fetchall()


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


def count_imported(db: Connection, person: str | None = None) -> ImportedCount:
    """Count a person's sessions that were read from transcripts."""
    whose = named_by_condition("id", person)
    counted = f"SELECT count(*), min(started_at), max(turn_at) FROM agent_session WHERE agent IS NOT NULL AND {whose}"  # noqa: S608
    return find_row(db, ImportedCount, counted) or ImportedCount()


def list_imported(db: Connection, limit: int, now: str, person: str | None = None) -> list[ArchivedSession]:
    """List a person's sessions that were read from transcripts, the last active first; not those of the future."""
    return list_rows(
        db,
        ArchivedSession,
        "SELECT id, agent, cwd, branch, name, started_at, turn_at FROM agent_session "  # noqa: S608 - constant text
        f"WHERE agent IS NOT NULL AND turn_at <= ? AND {named_by_condition('id', person)} "
        "ORDER BY turn_at DESC, id LIMIT ?",
        (now, limit),
    )


# Budget

# What is deleted first: the agents' messages, then actions, then the words of the person.
_TURN_SIZE = "length(content)"
_ACTION_SIZE = "length(target) + coalesce(length(error), 0)"
_STEPS = (
    ("turn", _TURN_SIZE, f"role <> '{Role.USER}'"),
    ("action", _ACTION_SIZE, "true"),
    ("turn", _TURN_SIZE, f"role = '{Role.USER}'"),
)


def measure_sessions(db: Connection) -> int:
    """Return the size of all turns and actions in characters."""
    return sum(
        int(db.execute(f"SELECT coalesce(sum({size}), 0) FROM {table}").fetchone()[0])  # noqa: S608 - constant text
        for table, size in (("turn", _TURN_SIZE), ("action", _ACTION_SIZE))
    )


def trim_sessions(db: Connection, excess: int, most_rows: int) -> int:
    """Delete the oldest rows until an excess is gone, the words of the person last; return the freed characters.

    At most `most_rows` rows are deleted, so that other writes wait briefly. 0 means that nothing is left.
    """
    for table, size, condition in _STEPS:
        if freed := _delete_oldest(db, (table, size, condition), excess, most_rows):
            return freed
    return 0


def _delete_oldest(db: Connection, step: tuple[str, str, str], excess: int, most_rows: int) -> int:
    table, size, condition = step
    rows = db.execute(
        f"SELECT seq, {size} FROM {table} WHERE seq IN "  # noqa: S608 - constant text
        f"(SELECT seq FROM {table} WHERE {condition} ORDER BY at, seq LIMIT ?) ORDER BY at, seq",
        (most_rows,),
    ).fetchall()
    freed, seqs = 0, list[tuple[int]]()
    for seq, length in rows:
        if freed >= excess:
            break
        # An empty text takes some room, too.
        freed += max(int(length), 1)
        seqs.append((seq,))
    db.executemany(f"DELETE FROM {table} WHERE seq = ?", seqs)  # noqa: S608 - constant text
    if seqs and table == "turn":
        # The words of deleted messages must not stay in the index.
        index_state.request_turn_segment(db)
    return freed
