"""Events of a workspace for a reader: what was written, changed or removed, and which jobs ended.

A cursor is a position in the change log and in the ends of jobs. It names the time of its change, so that a cursor of
a log that was replaced, for example by a snapshot, is recognized.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pipeline.kernel.errors import FieldError, InvalidField, NotFound
from pipeline.kernel.records import Kind, Memory, Viewer
from pipeline.kernel.records.people import qualified_name
from pipeline.kernel.store import changes, journal, memories, work
from pipeline.kernel.store.changes import LoggedChange
from pipeline.kernel.store.visibility import is_open_to
from pipeline.kernel.times import utc_now
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


# Changes that are looked at in one read of the store.
PAGE = 200
MAX_TITLE_CHARS = 120
_CURSOR = re.compile(r"0|([0-9]{1,18})\.([0-9]{1,15})\.([0-9]{1,18})")


class EventType(StrEnum):
    """What happened to a memory, or that a job ended. After `reset`, the reader must list memories again."""

    WRITTEN = "written"
    CHANGED = "changed"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    RESTORED = "restored"
    PURGED = "purged"
    CANDIDATE = "candidate"
    JOB_DONE = "job_done"
    RESET = "reset"


# The type of a change; a relation or a lower importance is no event.
TYPES = {
    changes.CREATE: EventType.WRITTEN,
    changes.CANDIDATE: EventType.CANDIDATE,
    changes.MERGE: EventType.CHANGED,
    changes.EDIT: EventType.CHANGED,
    changes.CLOSE: EventType.SUPERSEDED,
    changes.SUPERSEDE: EventType.SUPERSEDED,
    changes.ARCHIVE: EventType.ARCHIVED,
    changes.RESTORE: EventType.RESTORED,
    changes.PURGE: EventType.PURGED,
}


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position after a change with its time (ms since the epoch), and after the end of a job."""

    number: int = 0
    stamp_ms: int = 0
    run: int = 0

    def __str__(self) -> str:
        return "0" if self == Cursor() else f"{self.number}.{self.stamp_ms}.{self.run}"


@dataclass(frozen=True, slots=True)
class Event:
    """One event, and the cursor after it. `title` is the start of the memory's text, if the reader asked for it."""

    cursor: Cursor
    type: EventType
    at: str
    memory_id: str | None = None
    kind: Kind | None = None
    title: str | None = None
    job: str | None = None
    ok: bool | None = None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events a reader wants: those of a viewer, of some types and kinds (empty for all)."""

    viewer: Viewer
    types: Collection[EventType] = field(default=())
    kinds: Collection[Kind] = field(default=())
    titles: bool = False

    def wants(self, event: Event) -> bool:
        """Return whether the reader wants an event. A reader of some kinds gets no ends of jobs."""
        if event.type is EventType.RESET:
            return True
        return (not self.types or event.type in self.types) and (not self.kinds or event.kind in self.kinds)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events after a cursor, the cursor after all that was looked at, and whether more follow."""

    events: tuple[Event, ...]
    cursor: Cursor
    more: bool


def parse_cursor(text: str, loc: str) -> Cursor:
    """Return the cursor of an event; raise InvalidField for other text. `0` is the beginning."""
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise InvalidField(FieldError(loc, "must be the cursor of an event, or 0"))
    return Cursor() if match[1] is None else Cursor(*(int(part) for part in match.groups()))


def find_end(workspace: Workspace) -> Cursor:
    """Return the cursor after everything that happened so far."""
    if not workspace.exists:
        return Cursor()
    with workspace.database.read() as db:
        number = changes.generation(db)
        return Cursor(number, changes.read_stamp(db, number) or 0, changes.find_last_run(db))


def read_events(workspace: Workspace, after: Cursor, wanted: EventFilter) -> EventPage:
    """Return a page of the events after a cursor; a page of an unknown cursor is a reset."""
    try:
        database = workspace.database
    except NotFound:
        # Nothing was written yet, or the workspace was deleted.
        return EventPage((), after, more=False) if after == Cursor() else _reset(Cursor())
    with database.read() as db:
        is_known = after.number == 0 or changes.read_stamp(db, after.number) == after.stamp_ms
        last_run = changes.find_last_run(db)
        # Old runs are deleted.
        lacks_runs = after.run > 0 and changes.count_runs(db, after.run) != last_run - after.run
        if not is_known or lacks_runs:
            number = changes.generation(db)
            return _reset(Cursor(number, changes.read_stamp(db, number) or 0, last_run))
        page = changes.list_visible(db, wanted.viewer, after.number, PAGE)
        runs = changes.list_finished_runs(db, after.run, PAGE)
        end = changes.generation(db)
    position = Cursor(page.number, page.stamp_ms or after.stamp_ms, after.run)
    events = [_event_of_change(change, after.run, wanted) for change in page.changes]
    # The ends of jobs follow the changes before them.
    ends = [_event_of_run(run, position) for run in runs] if page.number >= end else []
    if ends:
        position = ends[-1].cursor
    more = page.number < end or position.run < last_run
    return EventPage(tuple(event for event in (*events, *ends) if wanted.wants(event)), position, more)


def _reset(cursor: Cursor) -> EventPage:
    return EventPage((Event(cursor, EventType.RESET, utc_now()),), cursor, more=False)


def _event_of_change(change: changes.VisibleChange, run: int, wanted: EventFilter) -> Event:
    memory = change.memory
    kind = TYPES[change.op]
    title = None
    if memory is not None:
        if kind is EventType.WRITTEN and memory.candidate:
            # Another machine sent it.
            kind = EventType.CANDIDATE
        # An agent reads no index of a rule file.
        if wanted.titles and (memory.may_be_injected or not wanted.viewer.only_normal):
            title = " ".join(memory.content.split())[:MAX_TITLE_CHARS]
    cursor = Cursor(change.number, change.stamp_ms, run)
    return Event(cursor, kind, change.at, change.memory_id, change.kind, title)


def _event_of_run(run: changes.FinishedRun, position: Cursor) -> Event:
    cursor = Cursor(position.number, position.stamp_ms, run.number)
    return Event(cursor, EventType.JOB_DONE, run.at, job=run.name, ok=run.ok)
