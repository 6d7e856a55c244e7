"""Search the sessions of a workspace by what was said in them."""

from datetime import UTC, datetime

from pipeline.archive import search
from pipeline.archive.search import SessionQuery
from pipeline.errors import IndexUnavailable
from pipeline.recall.contexts import SearchContexts
from pipeline.records.sessions import SessionHit
from pipeline.store import index_state
from pipeline.workspace import Workspace


def search_sessions(
    workspace: Workspace,
    contexts: SearchContexts,
    text: str,
    limit: int = 5,
    *,
    relevant_only: bool = False,
    except_session: str | None = None,
) -> list[SessionHit]:
    """Return the sessions of the workspace's person that are most about a text, best first.

    Sessions of other people and incognito sessions are left out, and so is `except_session`, the session that asks.
    With `relevant_only`, an unrelated text has no results.
    """
    if not workspace.exists:
        return []
    query = SessionQuery(text, workspace.person_id, limit, relevant_only, except_session)
    context, now = contexts.get(workspace), datetime.now(UTC)
    try:
        return search.search_sessions(context.database, context.turns, query, now)
    except IndexUnavailable as error:
        first = error
    try:
        # The segment may have been replaced between our snapshot and its opening; a new snapshot names the new one.
        return search.search_sessions(context.database, context.turns, query, now)
    except IndexUnavailable:
        _request_repair(workspace, first)
        return []


def _request_repair(workspace: Workspace, error: IndexUnavailable) -> None:
    with workspace.database.write() as db:
        is_news = not index_state.is_turn_segment_wanted_anew(db)
        index_state.request_turn_segment(db, anew=True)
    if is_news:
        workspace.operations.record_error("sessions", str(error), workspace=workspace.id)
