"""List and read the sessions of agents: their names, turns, hook runs, actions and memories."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.errors import NotFound
from pipeline.records import Filter, Memory, Page, page_of
from pipeline.services.hook_runs import HookRunLog
from pipeline.store import agent_sessions, conclusions, memories, turns
from pipeline.store.hook_runs import HookRun
from pipeline.times import utc_now
from pipeline.workspace import Workspace


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session with a page of its turns and its latest hook runs, actions and memories, each list newest first.

    `concluded` starts with the most important conclusion. `next_cursor` is the start of the next page of turns.
    """

    session: agent_sessions.SessionSummary
    said: Sequence[turns.Turn]
    told: Sequence[HookRun]
    did: Sequence[agent_sessions.JournalRow]
    learnt: Sequence[Memory]
    concluded: Sequence[conclusions.Conclusion] = ()
    next_cursor: int | None = None


def list_sessions(workspace: Workspace, limit: int, skipped: int) -> Page[agent_sessions.SessionSummary]:
    """List sessions by their last activity, the latest first, after skipping some."""
    with workspace.database.read() as db:
        sessions = agent_sessions.list_sessions(db, limit + 1, skipped, workspace.person_id)
    return Page(sessions[:limit], skipped + limit if len(sessions) > limit else None)


def read_session(
    workspace: Workspace, runs: HookRunLog, session_id: str, limit: int, before: int | None = None
) -> SessionRecord:
    """Return a session with its latest records, and turns below a row number; raise NotFound if it does not exist."""
    with workspace.database.read() as db:
        summary = agent_sessions.find_session(db, session_id)
        said = page_of(turns.page(db, session_id, limit + 1, before), limit, lambda turn: turn.seq)
        concluded = conclusions.list_of_sessions(db, [session_id])
        did = agent_sessions.page_actions(db, session_id, limit, None)
        learnt = memories.page(db, Filter(session_id=session_id, viewer=workspace.onlooker), limit, None)
    hook_runs = runs.page(limit, None, workspace.id, session_id, workspace.person_id).items
    if summary is None:
        raise NotFound("There is no session with this id. `reverie sessions` lists them.")
    return SessionRecord(summary, said.items, hook_runs, did, learnt, concluded, said.next_cursor)


def rename_session(workspace: Workspace, session_id: str, name: str) -> agent_sessions.SessionSummary:
    """Rename a session; raise NotFound if there is no such session."""
    with workspace.database.write() as db:
        if agent_sessions.find_session(db, session_id) is not None:
            agent_sessions.rename_session(db, session_id, name, utc_now())
        session = agent_sessions.find_session(db, session_id)
    if session is None:
        raise NotFound("There is no session with this id. `reverie sessions` lists them.")
    return session


def list_actions(
    workspace: Workspace, session_id: str | None, limit: int, before: int | None
) -> Page[agent_sessions.JournalRow]:
    """List the actions of agents in one session or in all, newest first."""
    with workspace.database.read() as db:
        actions = agent_sessions.page_actions(db, session_id, limit + 1, before, workspace.person_id)
    return page_of(actions, limit, lambda row: row.seq)
