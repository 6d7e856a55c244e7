"""Agent sessions: agents' actions, the memories they saw, the starts of turns, and incognito sessions."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection

from pipeline.kernel.store import meta
from pipeline.kernel.store.rows import DELETE, Rows, Table, find_row, has_row, list_rows
from pipeline.kernel.store.subagents import list_subagents
from pipeline.kernel.store.visibility import named_by_condition

# The state of a session's last turn of which nothing is stored is a value of the workspace.
_SILENT_TURN = "silent_turn:"
_OPEN, _ENDED = "open", "ended"
# After every time.
LAST = "9999"


class ActionType(StrEnum):
    """The type of an action. Of commands that only read, failures are recorded, and a success after a failure."""

    EDIT = "edit"
    TEST = "test"
    COMMIT = "commit"
    DEPLOY = "deploy"
    COMMAND = "command"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Action:
    """An action of an agent on a target, and whether it succeeded.

    A failed action has the telling lines of its output, redacted, and their signature
    (`pipeline.text.error_signature`); a successful edit has a hash of the text that it replaced.
    """

    at: str
    session_id: str
    agent_id: str | None
    tool: str
    type: ActionType
    target: str
    ok: bool
    exit_code: int | None = None
    error: str | None = None
    error_signature: str | None = None
    replaced_hash: str | None = None


@dataclass(frozen=True, slots=True)
class JournalRow(Action):
    """An action and its row number."""

    seq: int = 0


_ACTIONS = Rows(Action, "action")
JOURNAL = Rows(JournalRow, "action")


def add_action(db: Connection, action: Action) -> None:
    """Store an action, unless it is a reading command that had not failed before in its session."""
    if not is_worth_storing(db, action):
        return
    db.execute(_ACTIONS.insert, _ACTIONS.values(action))


def has_action(db: Connection, action: Action) -> bool:
    """Return whether the same action of the same moment is stored."""
    return has_row(
        db,
        "SELECT 1 FROM action WHERE session_id = ? AND at = ? AND tool = ? AND target = ? LIMIT 1",
        (action.session_id, action.at, action.tool, action.target),
    )


def is_worth_storing(db: Connection, action: Action) -> bool:
    """Return whether an action changes something, failed with an error, or repeats a failure of its session."""
    if action.type is not ActionType.READ:
        return True
    if not action.ok:
        return action.error_signature is not None
    return has_row(
        db,
        "SELECT 1 FROM action WHERE session_id = ? AND type = ? AND target = ? AND ok = 0 LIMIT 1",
        (action.session_id, action.type, action.target),
    )


def list_actions(db: Connection, session_id: str, at: str, limit: int, before: str = LAST) -> list[Action]:
    """List a session's newest actions since a time (or all) and before another, in order of time."""
    newest = _ACTIONS.fetch(
        db,
        "WHERE session_id = ? AND at >= ? AND at < ? ORDER BY seq DESC LIMIT ?",
        (session_id, at, before, limit),
    )
    return newest[::-1]


def page_actions(
    db: Connection,
    session_id: str | None,
    limit: int,
    before: int | None,
    person: str | None = None,
    agent_id: str | None = None,
) -> list[JournalRow]:
    """List actions of one session, or of a subagent of it, or of all of a person, newest first, below a row number."""
    whose, values = ("session_id = ?", [session_id]) if session_id else (named_by_condition("session_id", person), [])
    if agent_id is not None:
        whose, values = f"{whose} AND agent_id = ?", [*values, agent_id]
    return JOURNAL.fetch(
        db,
        f"WHERE {whose} AND seq < ? ORDER BY seq DESC LIMIT ?",
        (*values, 2**62 if before is None else before, limit),
    )


def begin_turn(db: Connection, session_id: str, cwd: str, at: str) -> None:
    """Record the start of a session's next turn."""
    db.execute(
        "INSERT INTO agent_session (id, cwd, started_at, turn_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET turn_at = excluded.turn_at, cwd = excluded.cwd",
        (session_id, cwd, at, at),
    )


def end_turn(db: Connection, session_id: str, at: str) -> None:
    """Record the end of a session's turn: its actions are summarized."""
    db.execute(
        "INSERT INTO agent_session (id, cwd, started_at, turn_at) VALUES (?, '', ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET turn_at = excluded.turn_at",
        (session_id, at, at),
    )


def find_turn_start(db: Connection, session_id: str) -> str | None:
    """Return the start of a session's current turn."""
    return find_row(db, str, "SELECT turn_at FROM agent_session WHERE id = ?", (session_id,))


def find_folder(db: Connection, session_id: str) -> str:
    """Return the folder of a session; empty if it is unknown."""
    return find_row(db, str, "SELECT cwd FROM agent_session WHERE id = ?", (session_id,)) or ""


def name_session(db: Connection, session_id: str, name: str, at: str) -> None:
    """Name a session that has no name yet."""
    db.execute(
        "INSERT INTO agent_session (id, cwd, started_at, turn_at, name) VALUES (?, '', ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET name = coalesce(agent_session.name, excluded.name)",
        (session_id, at, at, name),
    )


def has_succeeded_before(db: Connection, action: Action, since: str) -> bool:
    """Return whether a session did the same successfully since a time."""
    return has_row(
        db,
        "SELECT 1 FROM action WHERE session_id = ? AND at >= ? AND type = ? AND target = ? AND ok = 1 LIMIT 1",
        (action.session_id, since, action.type, action.target),
    )


def list_seen_versions(db: Connection, session_id: str, agent_id: str, seqs: Sequence[int]) -> dict[int, str]:
    """Return the memories that an agent has seen in a session: row number → version."""
    return dict(
        db.execute(
            "SELECT memory_seq, version FROM seen WHERE session_id = ? AND agent_id = ? "
            "AND memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
            (session_id, agent_id, json.dumps(seqs)),
        ).fetchall()
    )


def record_seen(db: Connection, session_id: str, agent_id: str, versions: Iterable[tuple[int, str]]) -> None:
    """Record the memories that an agent has seen."""
    db.executemany(
        "INSERT INTO seen VALUES (?, ?, ?, ?) "
        "ON CONFLICT (session_id, agent_id, memory_seq) DO UPDATE SET version = excluded.version",
        [(session_id, agent_id, seq, version) for seq, version in versions],
    )


def clear_seen(db: Connection, session_id: str) -> None:
    """Forget which memories a session has seen: the compaction of its context may have dropped them."""
    db.execute("DELETE FROM seen WHERE session_id = ?", (session_id,))


def forget_rested_sessions(db: Connection, before: str) -> None:
    """Forget what sessions whose last turn started before a time have seen, and those of them without records."""
    db.execute("DELETE FROM seen WHERE session_id IN (SELECT id FROM agent_session WHERE turn_at < ?)", (before,))
    db.execute(
        "DELETE FROM agent_session AS s WHERE s.turn_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM turn WHERE session_id = s.id) "
        "AND NOT EXISTS (SELECT 1 FROM action WHERE session_id = s.id) "
        "AND NOT EXISTS (SELECT 1 FROM memory WHERE session_id = s.id)",
        (before,),
    )


def forget_matching_actions(db: Connection, session_ids: Iterable[str], mentions: Callable[[Action], bool]) -> None:
    """Delete the actions of sessions that match."""
    listed = json.dumps(list(session_ids))
    actions = JOURNAL.fetch(db, "WHERE session_id IN (SELECT value FROM json_each(?))", (listed,))
    db.executemany("DELETE FROM action WHERE seq = ?", [(action.seq,) for action in actions if mentions(action)])


@dataclass(frozen=True, slots=True)
class IncognitoSession:
    """A session, and the time since which it is incognito, or None."""

    session_id: str
    since: str | None

    @property
    def place(self) -> str:
        """Return the session's position in the list."""
        return f"{self.since}{self.session_id}"


def begin_incognito(db: Connection, session_id: str, at: str) -> None:
    """Make a session and its subagents incognito."""
    names = [session_id, *list_subagents(db, session_id)]
    db.executemany("INSERT INTO incognito VALUES (?, ?) ON CONFLICT DO NOTHING", [(name, at) for name in names])


def end_incognito(db: Connection, session_id: str) -> None:
    """End the incognito mode of a session and its subagents."""
    names = [session_id, *list_subagents(db, session_id)]
    db.executemany("DELETE FROM incognito WHERE session_id = ?", [(name,) for name in names])


def incognito_since(db: Connection, session_id: str) -> str | None:
    """Return since when a session is incognito, None if it is not."""
    return find_row(db, str, "SELECT since FROM incognito WHERE session_id = ?", (session_id,))


def is_any_incognito(db: Connection, sessions: Collection[str]) -> bool:
    """Return whether any of some sessions is incognito."""
    sought = "SELECT 1 FROM incognito WHERE session_id IN (SELECT value FROM json_each(?)) LIMIT 1"
    return bool(sessions) and has_row(db, sought, (json.dumps(list(sessions)),))


def begin_silent_turn(db: Connection, session_id: str) -> None:
    """Store nothing of a session before its next prompt."""
    meta.put(db, f"{_SILENT_TURN}{session_id}", _OPEN)


def end_silent_turn(db: Connection, session_id: str) -> None:
    """End the silent turn of a session; a host may still deliver messages of it."""
    meta.put(db, f"{_SILENT_TURN}{session_id}", _ENDED)


def has_ended_turn(db: Connection, session_id: str) -> bool:
    """Return whether a silent turn of a session ended, and none of its messages was delivered since."""
    return meta.get(db, f"{_SILENT_TURN}{session_id}") == _ENDED


def drop_ended_turn(db: Connection, session_id: str) -> None:
    """Forget that a silent turn of a session ended."""
    meta.drop(db, f"{_SILENT_TURN}{session_id}")


def is_any_turn_silent(db: Connection, sessions: Collection[str]) -> bool:
    """Return whether nothing of the current turn of one of some sessions is stored."""
    return any(meta.get(db, f"{_SILENT_TURN}{session}") == _OPEN for session in sessions)


def is_any_silent(db: Connection, sessions: Collection[str]) -> bool:
    """Return whether one of some sessions is incognito, or its current turn is silent."""
    # One statement: each event of an agent asks.
    sought = (
        "SELECT 1 FROM incognito WHERE session_id IN (SELECT value FROM json_each(?)) UNION ALL "
        "SELECT 1 FROM meta WHERE value = ? AND key IN (SELECT value FROM json_each(?)) LIMIT 1"
    )
    turns = [f"{_SILENT_TURN}{session}" for session in sessions]
    return has_row(db, sought, (json.dumps(list(sessions)), _OPEN, json.dumps(turns)))


def forget_actions(db: Connection, session_id: str, since: str) -> None:
    """Delete the actions of a session since a time."""
    db.execute("DELETE FROM action WHERE session_id = ? AND at >= ?", (session_id, since))


def page_incognito(
    db: Connection, limit: int = 2**62, below: str | None = None, person: str | None = None
) -> list[IncognitoSession]:
    """List a person's incognito sessions, latest first, below a position."""
    # All times have the same length, so text order is time order.
    position, whose = "(since || session_id)", named_by_condition("session_id", person)
    return list_rows(
        db,
        IncognitoSession,
        f"SELECT session_id, since FROM incognito WHERE {whose} "  # noqa: S608 - constant text
        f"AND (CAST(? AS TEXT) IS NULL OR {position} < ?) ORDER BY {position} DESC LIMIT ?",
        (below, below, limit),
    )


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session: name, start and last activity, the numbers of turns, actions and memories, agent and branch.

    `parent` is the session that started this one as a subagent.
    """

    id: str
    name: str | None
    first_at: str
    last_at: str
    turns: int
    actions: int
    memories: int
    agent: str | None = None
    branch: str | None = None
    parent: str | None = None


_SESSIONS = """
    WITH asked (id) AS (SELECT value FROM json_each(?))
    SELECT s.session_id, min(n.name), min(s.first_at), max(s.last_at), sum(s.turns), sum(s.actions), sum(s.memories),
        min(n.agent), min(n.branch), min(n.parent)
    FROM (
        SELECT session_id, min(at) AS first_at, max(at) AS last_at, count(*) AS turns, 0 AS actions, 0 AS memories
            FROM turn WHERE {among} GROUP BY session_id
        UNION ALL
        SELECT session_id, min(at), max(at), 0, count(*), 0 FROM action WHERE {among} GROUP BY session_id
        UNION ALL
        SELECT session_id, min(occurred_at), max(occurred_at), 0, 0, count(*)
            FROM memory WHERE session_id IS NOT NULL AND archived_at IS NULL AND {among} GROUP BY session_id
        UNION ALL
        SELECT session_id, started_at, turn_at, 0, 0, 0
            FROM (SELECT id AS session_id, started_at, turn_at FROM agent_session) named WHERE {among}
    ) s LEFT JOIN agent_session n ON n.id = s.session_id
    WHERE {whose} GROUP BY s.session_id ORDER BY max(s.last_at) DESC, s.session_id LIMIT ? OFFSET ?
"""
_NO_SUBAGENT = "n.parent IS NULL"
_AMONG_ASKED = "session_id IN (SELECT id FROM asked)"
# The first condition on memories is that of the index.
_ACTIVE_SINCE = """
    SELECT session_id FROM turn WHERE at >= ?1 UNION SELECT session_id FROM action WHERE at >= ?1
    UNION SELECT session_id FROM memory
        WHERE occurred_at <> '' AND occurred_at >= ?1 AND session_id IS NOT NULL AND archived_at IS NULL
    UNION SELECT id FROM agent_session WHERE turn_at >= ?1
"""


def list_sessions(db: Connection, limit: int, skipped: int, person: str | None = None) -> list[SessionSummary]:
    """List a person's sessions without those of subagents, the last active first, after skipping some."""
    whose = f"{_NO_SUBAGENT} AND {named_by_condition('s.session_id', person)}"
    return list_rows(db, SessionSummary, _SESSIONS.format(among="true", whose=whose), ("[]", limit, skipped))


def list_sessions_since(db: Connection, since: str, limit: int, person: str | None = None) -> list[SessionSummary]:
    """List a person's sessions that were active since a time, without those of subagents, the last active first."""
    active = [session_id for (session_id,) in db.execute(_ACTIVE_SINCE, (since,))]
    if not active:
        return []
    whose = f"{_NO_SUBAGENT} AND {named_by_condition('s.session_id', person)}"
    return list_rows(
        db, SessionSummary, _SESSIONS.format(among=_AMONG_ASKED, whose=whose), (json.dumps(active), limit, 0)
    )


def find_session(db: Connection, session_id: str) -> SessionSummary | None:
    """Return the summary of a session."""
    values = json.dumps([session_id]), 1, 0
    return find_row(db, SessionSummary, _SESSIONS.format(among=_AMONG_ASKED, whose="true"), values)


def rename_session(db: Connection, session_id: str, name: str, at: str) -> None:
    """Rename a session."""
    name_session(db, session_id, name, at)
    db.execute("UPDATE agent_session SET name = ? WHERE id = ?", (name, session_id))


TABLES = (
    Table("agent_session", ("id",), text=("name",), quoting={"name": "name = NULL"}),
    Table(
        "action",
        text=("error", "error_signature"),
        quoting={"error": "error = NULL, error_signature = NULL"},
    ),
    Table("seen", ("session_id", "agent_id", "memory_seq"), memory=("memory_seq",), erasure=DELETE),
    Table("incognito", ("session_id",)),
)
