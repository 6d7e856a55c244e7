"""Past actions of agents by error, command and file, without those of other people and of incognito sessions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.store.agent_sessions import JOURNAL, ActionType, JournalRow
from pipeline.store.rows import Rows
from pipeline.store.turns import Role
from pipeline.store.visibility import named_by_condition

# The number of an error's newest occurrences that are looked at.
OCCURRENCES = 60


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
class SessionConclusion:
    """A conclusion of a session, and the names that it is about."""

    session_id: str
    kind: str
    content: str
    topic: tuple[str, ...]
    at: str


_CONCLUSIONS = Rows(SessionConclusion, "conclusion")


def list_occurrences(
    db: Connection, signatures: Sequence[str], person: str | None, limit: int = OCCURRENCES
) -> list[JournalRow]:
    """List the newest failures with one of these signatures, newest first."""
    rows = db.execute(
        f"{JOURNAL.select} WHERE error_signature IN (SELECT value FROM json_each(?)) "  # noqa: S608
        f"AND {_visible(person)} ORDER BY at DESC, seq DESC LIMIT ?",
        (json.dumps(list(signatures)), limit),
    )
    return JOURNAL.read_all(rows)


def list_errors(db: Connection, person: str | None, limit: int) -> dict[str, str]:
    """Return the different errors, most recent first: signature → text."""
    rows = db.execute(
        "SELECT error_signature, max(error) FROM action WHERE error_signature IS NOT NULL "  # noqa: S608
        f"AND {_visible(person)} GROUP BY error_signature ORDER BY max(seq) DESC LIMIT ?",
        (limit,),
    )
    return dict(rows.fetchall())


def list_following(db: Connection, failure: JournalRow, limit: int) -> list[JournalRow]:
    """List the actions of a session after one of its actions, in order."""
    rows = db.execute(
        f"{JOURNAL.select} WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (failure.session_id, failure.seq, limit),
    )
    return JOURNAL.read_all(rows)


def _visible(person: str | None) -> str:
    return f"session_id NOT IN (SELECT session_id FROM incognito) AND {named_by_condition('session_id', person)}"  # noqa: S608


def list_frequent_errors(db: Connection, person: str | None, least_sessions: int, limit: int) -> list[ErrorCount]:
    """List the errors that occurred in several sessions, by the number of sessions."""
    rows = db.execute(
        "SELECT error_signature, count(*), count(DISTINCT session_id), min(at), max(at), max(seq) FROM action "  # noqa: S608
        f"WHERE error_signature IS NOT NULL AND {_visible(person)} "
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
    rows = db.execute(
        "SELECT target, type, sum(ok), max(CASE WHEN ok = 1 THEN at END), max(CASE WHEN ok = 1 THEN seq END) "  # noqa: S608
        f"FROM action WHERE type IN (?, ?, ?, ?) AND {_visible(person)} "
        "GROUP BY target, type HAVING sum(ok) > 0 ORDER BY max(seq) DESC LIMIT ?",
        (*types, limit),
    )
    return [CommandCount(target, ActionType(kind), int(ok), at, seq) for target, kind, ok, at, seq in rows]


def list_failures_since(db: Connection, command: CommandCount, person: str | None) -> list[JournalRow]:
    """List the failures of a command since its last success."""
    rows = db.execute(
        f"{JOURNAL.select} WHERE target = ? AND ok = 0 AND at > ? AND {_visible(person)} ORDER BY seq DESC LIMIT ?",
        (command.target, command.last_at, OCCURRENCES),
    )
    return JOURNAL.read_all(rows)


def find_session(db: Connection, seq: int) -> str:
    """Return the session of an action."""
    return str(db.execute("SELECT session_id FROM action WHERE seq = ?", (seq,)).fetchone()[0])


def list_edited_files(db: Connection, person: str | None) -> list[str]:
    """List the files that agents edited, as the journal names them."""
    rows = db.execute(
        f"SELECT DISTINCT target FROM action WHERE type = ? AND ok = 1 AND {_visible(person)}",  # noqa: S608
        (ActionType.EDIT,),
    )
    return [target for (target,) in rows]


def list_editing_sessions(db: Connection, files: Sequence[str], person: str | None, limit: int) -> list[EditCount]:
    """List the sessions that edited some files, the last edit first."""
    rows = db.execute(
        "SELECT session_id, count(*), min(at), max(at) FROM action "  # noqa: S608 - constant text
        f"WHERE type = ? AND ok = 1 AND target IN (SELECT value FROM json_each(?)) AND {_visible(person)} "
        "GROUP BY session_id ORDER BY max(at) DESC, session_id LIMIT ?",
        (ActionType.EDIT, json.dumps(list(files)), limit),
    )
    return [EditCount(*row) for row in rows]


def list_commits(db: Connection, person: str | None, since: str, until: str) -> list[JournalRow]:
    """List the commits that agents made in a time."""
    rows = db.execute(
        f"{JOURNAL.select} WHERE type = ? AND ok = 1 AND at >= ? AND at <= ? AND {_visible(person)} ORDER BY at",
        (ActionType.COMMIT, since, until),
    )
    return JOURNAL.read_all(rows)


def list_answers(db: Connection, session_id: str, since: str, limit: int) -> list[str]:
    """List what an agent said in a session from a time on, in order."""
    rows = db.execute(
        "SELECT content FROM turn WHERE session_id = ? AND role = ? AND at >= ? ORDER BY seq LIMIT ?",
        (session_id, Role.ASSISTANT, since, limit),
    )
    return [content for (content,) in rows]


def list_conclusions(db: Connection, session_ids: Sequence[str]) -> list[SessionConclusion]:
    """List the current conclusions of sessions, newest first."""
    rows = db.execute(
        f"{_CONCLUSIONS.select} "  # noqa: S608 - constant text
        "WHERE session_id IN (SELECT value FROM json_each(?)) AND superseded_by IS NULL ORDER BY at DESC, seq DESC",
        (json.dumps(list(session_ids)),),
    )
    return _CONCLUSIONS.read_all(rows)


def list_conclusions_about(db: Connection, name: str, person: str | None, limit: int) -> list[SessionConclusion]:
    """List the current conclusions whose topic contains a name, newest first."""
    rows = db.execute(
        f"{_CONCLUSIONS.select} WHERE superseded_by IS NULL "  # noqa: S608 - constant text
        "AND EXISTS (SELECT 1 FROM json_each(topic) WHERE lower(value) = ? OR lower(value) LIKE ?) "
        f"AND {_visible(person)} ORDER BY at DESC, seq DESC LIMIT ?",
        (name.lower(), f"%/{name.lower()}", limit),
    )
    return _CONCLUSIONS.read_all(rows)


def list_names(db: Connection, session_ids: Sequence[str]) -> dict[str, str]:
    """Return the names of sessions that have one."""
    rows = db.execute(
        "SELECT id, name FROM agent_session WHERE name IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(session_ids)),),
    )
    return dict(rows.fetchall())
