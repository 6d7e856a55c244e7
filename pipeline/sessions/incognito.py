"""Incognito sessions: Reverie stores nothing of them."""

from pipeline.kernel.store import agent_sessions
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace


def begin_incognito(workspace: Workspace, session_id: str) -> agent_sessions.IncognitoSession:
    """Make a session incognito from now on; keep the start time if it already is."""
    with workspace.create().write() as db:
        agent_sessions.begin_incognito(db, session_id, utc_now())
        since = agent_sessions.incognito_since(db, session_id)
    assert since is not None
    return agent_sessions.IncognitoSession(session_id, since)


def end_incognito(workspace: Workspace, session_id: str) -> None:
    """End the incognito mode of a session."""
    if not workspace.exists:
        # A workspace without a store has no incognito sessions.
        return
    with workspace.database.write() as db:
        agent_sessions.end_incognito(db, session_id)


def list_incognito(
    workspace: Workspace, limit: int = 2**62, below: str | None = None
) -> list[agent_sessions.IncognitoSession]:
    """List the incognito sessions, latest first, after a position."""
    with workspace.database.read() as db:
        return agent_sessions.page_incognito(db, limit, below, workspace.person_id)
