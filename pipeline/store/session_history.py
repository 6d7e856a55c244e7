"""What imported sessions say of a project: the last sessions, the conclusions that are current, and its commands."""

import json
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.store.agent_sessions import ActionType
from pipeline.store.conclusions import ConclusionKind
from pipeline.store.visibility import named_by_condition

# Number of latest actions among which commands are counted.
ACTIONS_COUNTED = 5000
# A command of no known type is a way to work here only if several sessions used it.
LEAST_SESSIONS = 2
# The kind of a conclusion that leaves something open.
OPEN = ConclusionKind.OPEN


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """A session that was read from a transcript: its agent, its name and the time of its last message."""

    id: str
    agent: str
    name: str | None
    last_at: str


@dataclass(frozen=True, slots=True)
class CurrentConclusion:
    """A conclusion of a session that no later session replaced."""

    session_id: str
    kind: str
    content: str
    topic: tuple[str, ...]
    at: str


@dataclass(frozen=True, slots=True)
class UsedCommand:
    """A command that succeeded, and the number of sessions that used it."""

    type: ActionType
    command: str
    sessions: int


@dataclass(frozen=True, slots=True)
class ImportedCount:
    """The number of sessions that were read from transcripts, and the times of the first and the last message."""

    sessions: int = 0
    first_at: str | None = None
    last_at: str | None = None


def count_imported(db: Connection, person: str | None = None) -> ImportedCount:
    """Count a person's sessions that were read from transcripts."""
    row = db.execute(
        "SELECT count(*), min(started_at), max(turn_at) FROM agent_session "  # noqa: S608 - constant text
        f"WHERE agent IS NOT NULL AND {named_by_condition('id', person)}"
    ).fetchone()
    return ImportedCount(*row)


def list_imported(db: Connection, limit: int, now: str, person: str | None = None) -> list[ImportedSession]:
    """List a person's sessions that were read from transcripts, the last active first; not those of the future."""
    rows = db.execute(
        "SELECT id, agent, name, turn_at FROM agent_session "  # noqa: S608 - constant text
        f"WHERE agent IS NOT NULL AND turn_at <= ? AND {named_by_condition('id', person)} "
        "ORDER BY turn_at DESC, id LIMIT ?",
        (now, limit),
    )
    return [ImportedSession(*row) for row in rows]


def list_current_conclusions(db: Connection, limit: int, person: str | None = None) -> list[CurrentConclusion]:
    """List the conclusions of a person's sessions that are current, newest first."""
    rows = db.execute(
        "SELECT session_id, kind, content, topic, at FROM conclusion "  # noqa: S608 - constant text
        f"WHERE superseded_by IS NULL AND {named_by_condition('session_id', person)} "
        "ORDER BY at DESC, seq DESC LIMIT ?",
        (limit,),
    )
    return [
        CurrentConclusion(session_id, kind, content, tuple(json.loads(topic)), at)
        for session_id, kind, content, topic, at in rows
    ]


def list_used_commands(db: Connection, limit: int, person: str | None = None) -> list[UsedCommand]:
    """List the commands that succeeded lately: tests and deployments first, then those of most sessions."""
    rows = db.execute(
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
    return [UsedCommand(ActionType(action_type), command, sessions) for action_type, command, sessions in rows]
