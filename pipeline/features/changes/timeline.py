"""The timeline of memories, and news since the last visit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.kernel.records import Memory
from pipeline.kernel.records.people import qualified_name
from pipeline.kernel.store import changes, journal, memories, work
from pipeline.kernel.store.changes import LoggedChange
from pipeline.kernel.store.visibility import is_open_to
from pipeline.kernel.workspace import Workspace

MOST_CHANGES = 100
MOST_WAITING = 100


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """A page of the timeline at a change number: memories, their sessions, and their pending digestion."""

    memories: tuple[Memory, ...]
    more: bool
    spans: Mapping[str, journal.SessionSpan]
    digestion: work.Undigested
    number: int


@dataclass(frozen=True, slots=True)
class News:
    """The changes after a change number, `more` if the list is incomplete, and the pending digestion."""

    number: int
    changes: tuple[LoggedChange, ...]
    more: bool
    digestion: work.Undigested


def list_timeline(
    workspace: Workspace, query: journal.JournalQuery, limit: int, before: journal.JournalPosition | None
) -> TimelinePage:
    """List memories by the time when they happened, latest first, before a position."""
    who = workspace.person_id
    query = replace(query, person=who, session_id=qualified_name(who, query.session_id))
    with workspace.database.read() as db:
        number = changes.generation(db)
        page = journal.page(db, query, limit + 1, before)
        shown = page[:limit]
        sessions = {memory.session_id for memory in shown if memory.session_id is not None}
        spans = {session: journal.span(db, session) for session in sessions}
        digestion = work.find_undigested_among(db, [memory.seq for memory in shown])
    known = {session: span for session, span in spans.items() if span is not None}
    return TimelinePage(tuple(shown), len(page) > len(shown), known, digestion, number)


def read_change_number(workspace: Workspace) -> int:
    """Return the number of the last change."""
    with workspace.database.read() as db:
        return changes.generation(db)


def read_news(workspace: Workspace, after: int) -> News:
    """Return the changes after a change number."""
    with workspace.database.read() as db:
        number = changes.generation(db)
        logged = changes.after(db, after, MOST_CHANGES + 1) if number > after else []
        known = memories.by_ids(db, {change.memory_id for change in logged})
        digestion = work.find_undigested(db, MOST_WAITING)
    # A store that was restored from a snapshot has a lower number.
    more = number < after or len(logged) > MOST_CHANGES
    # Of deleted memories only the number is shown.
    visible = [
        change
        for change in logged[:MOST_CHANGES]
        if change.memory_id not in known or is_open_to(known[change.memory_id].scope, workspace.person_id)
    ]
    return News(number, tuple(visible), more, digestion)
