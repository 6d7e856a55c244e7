"""Search the sessions of a workspace by what was said in them."""

from datetime import UTC, datetime

from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.records import Filter
from pipeline.kernel.records.recall import Answer, Query, SessionHit
from pipeline.kernel.store import index_state
from pipeline.kernel.workspace import Workspace
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.relevance import calibrate
from pipeline.sessions import search
from pipeline.sessions.search import SessionQuery
from pipeline.text.memory_terms import embedded_text
from pipeline.text.messages import is_function_word
from pipeline.text.tokens import list_tokens, search_tokens

# Sessions in an answer of recall.
SESSIONS_BESIDE = 3
# A memory with this share of a quote's words says the same.
SAID_SHARE = 0.7
# A session that is less sure than a memory must contain so many words of the query more than each memory.
MORE_WORDS = 2


def search_sessions(
    workspace: Workspace,
    contexts: SearchContexts,
    text: str,
    limit: int = 5,
    *,
    relevant_only: bool = False,
    except_session: str | None = None,
    only_normal: bool = True,
) -> list[SessionHit]:
    """Return the sessions of the workspace's person that are most about a text, best first.

    Sessions of other people and incognito sessions are left out, and so is `except_session`, the session that asks.
    With `relevant_only`, an unrelated text has no results. With `only_normal`, turns that a private memory was made of
    are not quoted: they are only for the person. With either, turns are left out whose memory is not current.
    Raises NotFound for a workspace that does not exist.
    """
    only_current = only_normal or relevant_only
    query = SessionQuery(text, workspace.person_id, limit, relevant_only, except_session, only_normal, only_current)
    context, now = contexts.get(workspace), datetime.now(UTC)
    # The segment may be replaced between our snapshot and its opening; a new snapshot names the new one.
    for attempt in (1, 2):
        try:
            return search.search_sessions(context.database, context.turns, query, now, context.turn_dense)
        except IndexUnavailable as error:
            if attempt == 2:
                request_turn_repair(workspace, error)
    return []


def find_sessions_beside(
    workspace: Workspace, contexts: SearchContexts, query: Query, answer: Answer
) -> list[SessionHit]:
    """Return the sessions that are surely about a query and say something that the memories found for it do not.

    There are none for a query with a filter, which selects memories, and none after the deadline of the query.
    """
    viewer = query.filter.viewer
    is_unfiltered = query.filter == Filter(viewer=viewer, current=query.filter.current)
    if not (workspace.exists and query.text and is_unfiltered) or answer.took_ms > query.budget_ms:
        return []
    found = search_sessions(
        workspace,
        contexts,
        query.text,
        SESSIONS_BESIDE,
        relevant_only=True,
        except_session=viewer.session,
        only_normal=viewer.only_normal,
    )
    if not found:
        return []
    said = [
        (hit.memory.metadata.get("turn"), frozenset(list_tokens(embedded_text(hit.memory))))
        for hit in answer.hits[: query.k]
    ]
    found = [session for session in found if not any(_is_said(session, turn, words) for turn, words in said)]
    # What surely answers the query is a memory, which is current; a session may be about something else.
    surest = max((hit.relevance for hit in answer.hits), default=0.0)
    asked = {word for word in search_tokens(query.text) if not is_function_word(word)}
    covered = max((len(asked & words) for _, words in said), default=0)
    return [
        session
        for session in found
        if calibrate(session.relevance) > surest
        or len(asked.intersection(search_tokens(session.quote))) >= covered + MORE_WORDS
    ]


def make_turns_searchable(workspace: Workspace) -> None:
    """Build the index of turns if a search would miss some: only the first of those outside of it are searched."""
    # A server only searches, and need not load what builds an index.
    from pipeline.features.indexing import job as indexes
    from pipeline.index.documents import TURNS
    from pipeline.index.storage import open_storage, shared_turn_segments

    database, settings = workspace.database, workspace.home_settings
    if indexes.needs_segment(database, index_state.MOST_TAIL_TURNS, TURNS):
        shared = shared_turn_segments(workspace.paths, open_storage(settings))
        indexes.rebuild_segment(database, workspace.paths.turn_segments, shared, TURNS)
        indexes.request_vectors(database)


def _is_said(session: SessionHit, turn: object, words: frozenset[str]) -> bool:
    """Return whether a memory was made of the quoted turn, or contains most words of the quote."""
    quoted = frozenset(search_tokens(session.quote))
    return turn == session.turn_seq or len(quoted & words) >= SAID_SHARE * len(quoted)


def request_turn_repair(workspace: Workspace, error: IndexUnavailable) -> None:
    """Have the index of turns made again."""
    with workspace.database.write() as db:
        is_news = not index_state.is_turn_segment_wanted_anew(db)
        index_state.request_turn_segment(db, anew=True)
    if is_news:
        workspace.operations.record_error("sessions", str(error), workspace=workspace.id)
