"""The sessions of subagents, which are linked with the sessions that started them."""

from sqlite3 import Connection

from pipeline.kernel.records import OWNED
from pipeline.kernel.store.rows import list_rows


def name_subagent_session(session_id: str, agent_id: str) -> str:
    """Return the id of the session of a subagent; a person's names have the person in front."""
    return f"{session_id}.{agent_id.rpartition(OWNED)[2]}"


def find_agent(session_id: str, parent: str) -> str:
    """Return the name of the subagent of a session, which `parent` started."""
    person, owned, _ = parent.rpartition(OWNED)
    return f"{person}{owned}{session_id.removeprefix(parent)[1:]}"


def link_subagent(db: Connection, session_id: str, parent: str, cwd: str, name: str, at: str) -> None:
    """Record that a session is that of a subagent, which another session started."""
    db.execute(
        "INSERT INTO agent_session (id, cwd, started_at, turn_at, name, parent) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET turn_at = excluded.turn_at, parent = excluded.parent",
        (session_id, cwd, at, at, name, parent),
    )


def list_subagents(db: Connection, session_id: str) -> list[str]:
    """List the sessions of the subagents that a session started, in order."""
    return list_rows(db, str, "SELECT id FROM agent_session WHERE parent = ? ORDER BY started_at, id", (session_id,))
