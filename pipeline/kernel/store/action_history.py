"""Past actions of agents by error, command and file, without those of other people and of incognito sessions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.kernel.store.agent_sessions import JOURNAL, ActionType, JournalRow
from pipeline.kernel.store.rows import list_rows
from pipeline.kernel.store.turns import Role
from pipeline.kernel.store.visibility import named_by_condition, visible_sessions_condition

# The number of an error's newest occurrences that are looked at.
OCCURRENCES = 60
# Number of latest actions among which commands are counted.
ACTIONS_COUNTED = 5000
# A command of no known type is a way to work here only if several sessions used it.
LEAST_SESSIONS = 2


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """An error with its numbers of occurrences and sessions, its first and last time, and its last text."""

    signature: str
    error: str
    occurrences: int
    sessions: int
    first_at: str
    last_at: str


@dataclass(frozen=True, slots=True)
class CommandCount:
    """A command with its number of successes, the time of the last one and its row number."""

    target: str
    type: ActionType
    successes: int
    last_at: str
    last_seq: int


@dataclass(frozen=True, slots=True)
class EditCount:
    """A session that edited a file: how often, and when first and last."""

    session_id: str
    edits: int
    first_at: str
    last_at: str


@dataclass(frozen=True, slots=True)
class UsedCommand:
    """A command that succeeded, and the number of sessions that used it."""

    type: ActionType
    command: str
    sessions: int


def list_occurrences(
    db: Connection, signatures: Sequence[str], person: str | None, limit: int = OCCURRENCES
) -> list[JournalRow]:
    """List the newest failures with one of these signatures, newest first."""
    return JOURNAL.fetch(
        db,
        f"WHERE error_signature IN (SELECT value FROM json_each(?)) "  # noqa: S608
        f"AND {visible_sessions_condition(person)} ORDER BY at DESC, seq DESC LIMIT ?",
        (json.dumps(list(signatures)), limit),
    )


def list_errors(db: Connection, person: str | None, limit: int) -> dict[str, str]:
    """Return the different errors, most recent first: signature → text."""
    return dict(
        db.execute(
            "SELECT error_signature, max(error) FROM action WHERE error_signature IS NOT NULL "  # noqa: S608
            f"AND {visible_sessions_condition(person)} GROUP BY error_signature ORDER BY max(seq) DESC LIMIT ?",
            (limit,),
        ).fetchall()
    )


def list_following(db: Connection, failure: JournalRow, limit: int) -> list[JournalRow]:
    """List the actions of a session after one of its actions, in order."""
    return JOURNAL.fetch(
        db, "WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?", (failure.session_id, failure.seq, limit)
    )


def list_frequent_errors(db: Connection, person: str | None, least_sessions: int, limit: int) -> list[ErrorCount]:
    """List the errors that occurred in several sessions, by the number of sessions."""
    rows = db.execute(
        "SELECT error_signature, count(*), count(DISTINCT session_id), min(at), max(at), max(seq) FROM action "  # noqa: S608
        f"WHERE error_signature IS NOT NULL "
        f"AND {visible_sessions_condition(person)} "
        "GROUP BY error_signature HAVING count(DISTINCT session_id) >= ? "
        "ORDER BY count(DISTINCT session_id) DESC, max(at) DESC, error_signature LIMIT ?",
        (least_sessions, limit),
    ).fetchall()
    texts = dict(
        db.execute(
            "SELECT seq, error FROM action WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
            (json.dumps([row[5] for row in rows]),),
        ).fetchall()
    )
    return [
        ErrorCount(signature, texts[seq] or "", count, sessions, first, last)
        for signature, count, sessions, first, last, seq in rows
    ]


def list_commands(db: Connection, person: str | None, limit: int) -> list[CommandCount]:
    """List commands that succeeded, most recent first."""
    types = (ActionType.TEST, ActionType.COMMIT, ActionType.DEPLOY, ActionType.COMMAND)
    return list_rows(
        db,
        CommandCount,
        "SELECT target, type, sum(ok), max(CASE WHEN ok = 1 THEN at END), max(CASE WHEN ok = 1 THEN seq END) "  # noqa: S608
        f"FROM action WHERE type IN (?, ?, ?, ?) "
        f"AND {visible_sessions_condition(person)} "
        "GROUP BY target, type HAVING sum(ok) > 0 ORDER BY max(seq) DESC LIMIT ?",
        (*types, limit),
    )


def list_failures_since(db: Connection, command: CommandCount, person: str | None) -> list[JournalRow]:
    """List the failures of a command since its last success."""
    return JOURNAL.fetch(
        db,
        f"WHERE target = ? AND ok = 0 AND at > ? AND {visible_sessions_condition(person)} ORDER BY seq DESC LIMIT ?",
        (command.target, command.last_at, OCCURRENCES),
    )


def find_session(db: Connection, seq: int) -> str:
    """Return the session of an action."""
    return str(db.execute("SELECT session_id FROM action WHERE seq = ?", (seq,)).fetchone()[0])


def list_edited_files(db: Connection, person: str | None) -> list[str]:
    """List the files that agents edited, as the journal names them."""
    return list_rows(
        db,
        str,
        f"SELECT DISTINCT target FROM action WHERE type = ? AND ok = 1 AND {visible_sessions_condition(person)}",  # noqa: S608
        (ActionType.EDIT,),
    )


def list_editing_sessions(db: Connection, files: Sequence[str], person: str | None, limit: int) -> list[EditCount]:
    """List the sessions that edited some files, the last edit first."""
    return list_rows(
        db,
        EditCount,
        "SELECT session_id, count(*), min(at), max(at) FROM action "  # noqa: S608 - constant text
        f"WHERE type = ? AND ok = 1 AND target IN (SELECT value FROM json_each(?)) "
        f"AND {visible_sessions_condition(person)} "
        "GROUP BY session_id ORDER BY max(at) DESC, session_id LIMIT ?",
        (ActionType.EDIT, json.dumps(list(files)), limit),
    )


def list_commits(db: Connection, person: str | None, since: str, until: str) -> list[JournalRow]:
    """List the commits that agents made in a time."""
    return JOURNAL.fetch(
        db,
        f"WHERE type = ? AND ok = 1 AND at >= ? AND at <= ? AND {visible_sessions_condition(person)} ORDER BY at",
        (ActionType.COMMIT, since, until),
    )


def list_answers(db: Connection, session_id: str, since: str, limit: int) -> list[str]:
    """List what an agent said in a session from a time on, in order."""
    return list_rows(
        db,
        str,
        "SELECT content FROM turn WHERE session_id = ? AND role = ? AND at >= ? ORDER BY seq LIMIT ?",
        (session_id, Role.ASSISTANT, since, limit),
    )


def list_used_commands(db: Connection, limit: int, person: str | None = None) -> list[UsedCommand]:
    """List the commands that succeeded lately: tests and deployments first, then those of most sessions."""
    return list_rows(
        db,
        UsedCommand,
        "SELECT type, target, count(DISTINCT session_id) AS sessions FROM ("  # noqa: S608 - constant text
        f"SELECT type, target, session_id, ok, seq FROM action WHERE {named_by_condition('session_id', person)} "
        "ORDER BY seq DESC LIMIT ?) latest WHERE ok = 1 AND type IN (?, ?, ?) GROUP BY type, target "
        "HAVING type <> ? OR count(DISTINCT session_id) >= ? "
        "ORDER BY CASE WHEN type = ? THEN 1 ELSE 0 END, sessions DESC, max(seq) DESC LIMIT ?",
        (
            *(ACTIONS_COUNTED, ActionType.TEST, ActionType.DEPLOY, ActionType.COMMAND),
            *(ActionType.COMMAND, LEAST_SESSIONS, ActionType.COMMAND, limit),
        ),
    )
