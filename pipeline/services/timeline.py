"""The timeline: every admitted memory by when it happened, and what is new since somebody looked."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.records import Memory
from pipeline.services.workspace import Workspace
from pipeline.store import changes, journal, work
from pipeline.store.changes import LoggedChange
from pipeline.store.journal import MOST_COUNTED, ArchivedFilter, JournalPlace, JournalQuery, SessionSpan
from pipeline.store.work import Undigested
from pipeline.text.normalize import normalize_id as normalize_name

__all__ = [
    "MOST_COUNTED",
    "ArchivedFilter",
    "JournalPlace",
    "JournalQuery",
    "LoggedChange",
    "News",
    "SessionSpan",
    "TimelinePage",
    "Undigested",
    "list_timeline",
    "normalize_name",
    "read_change_number",
    "read_news",
]

MOST_CHANGES = 100
MOST_WAITING = 100


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """A page of the timeline as of a change number: memories, their sessions, and what of them is not digested."""

    memories: tuple[Memory, ...]
    more: bool
    spans: Mapping[str, SessionSpan]
    digestion: Undigested
    number: int


@dataclass(frozen=True, slots=True)
class News:
    """What was changed after a change number, `more` if there was more than is listed, and what is not digested."""

    number: int
    changes: tuple[LoggedChange, ...]
    more: bool
    digestion: Undigested


def list_timeline(workspace: Workspace, query: JournalQuery, limit: int, before: JournalPlace | None) -> TimelinePage:
    """List memories by when they happened, the latest first, from before a place on."""
    with workspace.database.read() as db:
        number = changes.generation(db)
        found = journal.page(db, query, limit + 1, before)
        shown = found[:limit]
        sessions = {memory.session_id for memory in shown if memory.session_id is not None}
        spans = {session: journal.span(db, session) for session in sessions}
        digestion = work.find_undigested_among(db, [memory.seq for memory in shown])
    known = {session: span for session, span in spans.items() if span is not None}
    return TimelinePage(tuple(shown), len(found) > len(shown), known, digestion, number)


def read_change_number(workspace: Workspace) -> int:
    """Return the number of the last change."""
    with workspace.database.read() as db:
        return changes.generation(db)


def read_news(workspace: Workspace, after: int) -> News:
    """Return what was changed after a change number."""
    with workspace.database.read() as db:
        number = changes.generation(db)
        found = changes.after(db, after, MOST_CHANGES + 1) if number > after else []
        digestion = work.find_undigested(db, MOST_WAITING)
    # A store that was put back from a copy counts from less.
    more = number < after or len(found) > MOST_CHANGES
    return News(number, tuple(found[:MOST_CHANGES]), more, digestion)
