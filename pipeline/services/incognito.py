"""Incognito: sessions and workspaces of which nothing is stored."""

from pipeline.store import agent_sessions
from pipeline.store.agent_sessions import IncognitoSession
from pipeline.times import utc_now
from pipeline.workspace import Workspace


def begin_incognito(workspace: Workspace, session_id: str) -> IncognitoSession:
    """Store nothing of a session from here on; since when stays as it was for one that is incognito already."""
    with workspace.create().write() as db:
        agent_sessions.begin_incognito(db, session_id, utc_now())
        since = agent_sessions.incognito_since(db, session_id)
    assert since is not None
    return IncognitoSession(session_id, since)


def end_incognito(workspace: Workspace, session_id: str) -> None:
    """Store again what a session says."""
    if not workspace.exists:
        # A workspace without a store has no incognito sessions.
        return
    with workspace.database.write() as db:
        agent_sessions.end_incognito(db, session_id)


def list_incognito(workspace: Workspace, limit: int = 2**62, below: str | None = None) -> list[IncognitoSession]:
    """List the sessions that are incognito, the latest first, from below a place on."""
    with workspace.database.read() as db:
        return agent_sessions.page_incognito(db, limit, below, workspace.person_id)
