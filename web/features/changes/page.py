"""Timeline of memories by day and session, with live updates."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Annotated, Any, NamedTuple

from flask import Response, request, url_for
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from pipeline.features.changes import events as change_log
from pipeline.kernel.records import MAX_SESSION_ID_CHARS, Kind, Memory, ScopeKind, Source, Stage
from pipeline.kernel.store.journal import MOST_COUNTED, ArchivedFilter, JournalPosition, JournalQuery, SessionSpan
from pipeline.kernel.store.work import Undigested
from pipeline.kernel.times import utc_text
from pipeline.kernel.workspace import Workspace
from pipeline.text.normalize import normalize_id as normalize_name
from web.dashboard.filters import local_day, reader_zone
from web.dashboard.sign_in import watch_caller
from web.dashboard.view import PAGE_SIZE, Link, Query, Search, Section, View, show
from web.http.streams import RETRY_MS, Step, Streams, find_streams, format_event, format_retry

section = Section("timeline", link=Link("Timeline", "timeline_journal", "Memory"))

_NAME = StringConstraints(strip_whitespace=True, max_length=MAX_SESSION_ID_CHARS)
Name = Annotated[str, _NAME, AfterValidator(normalize_name)]
Tag = Annotated[str, BeforeValidator(lambda tag: tag.strip().lower()), StringConstraints(pattern=r"^[a-z0-9-]{1,50}$")]
Cursor = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z_\d{1,18}$")]
STAGES = {Stage.EMBED: "embedding", Stage.ENTITIES: "entities", Stage.DEDUP: "duplicate check"}
_CHANGE_NUMBER = re.compile(r"\d{1,18}")


class TimelineQuery(Query):
    """Filter of the timeline; `since` and `until` are inclusive days in the time zone of the reader."""

    before: Cursor | None = None
    kind: Kind | None = None
    source: Source | None = None
    scope: ScopeKind | None = None
    owner: Name | None = None
    tag: Tag | None = None
    entity: Search | None = None
    session: Name | None = None
    since: date | None = None
    until: date | None = None
    archived: ArchivedFilter | None = None

    def to_journal_query(self) -> JournalQuery:
        """Return the filter as a service query."""
        return JournalQuery(
            kind=self.kind,
            source=self.source,
            scope=self.scope,
            owner=self.owner,
            tag=self.tag,
            entity=self.entity,
            session_id=self.session,
            since=None if self.since is None else _begin_day(self.since),
            # Times compare as text, so the limit is the start of the next day; the last possible day has none.
            until=None if self.until in (None, date.max) else _begin_day(self.until + timedelta(days=1)),
            archived=self.archived,
        )

    @property
    def narrowed(self) -> dict[str, Any]:
        """Return all parameters except the cursor."""
        return {name: value for name, value in self if value is not None and name != "before"}


class DigestionSign(NamedTuple):
    """Processing state of a memory (`waiting` or `failed`) and its text."""

    state: str
    text: str


@dataclass(frozen=True, slots=True)
class SessionOfDay:
    """The memories of one session, or of no session, on one day."""

    session_id: str | None
    span: SessionSpan | None
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class TimelineDay:
    """A day in the time zone of the reader with its sessions, the latest first."""

    date: date
    sittings: tuple[SessionOfDay, ...]

    def name(self, now: datetime) -> str:
        """Return the title of the day: Today, Yesterday or the date."""
        called = {now.date(): "Today", now.date() - timedelta(days=1): "Yesterday"}
        return called.get(self.date, f"{self.date:%A} {self.date.day} {self.date:%B %Y}")


@section.page("/timeline", TimelineQuery)
def journal(view: View) -> str:
    """Show a page of the timeline."""
    return show(
        "timeline.html",
        view,
        title="Timeline",
        kinds=list(Kind),
        sources=list(Source),
        scopes=list(ScopeKind),
        archived=list(ArchivedFilter),
        **_list(view),
    )


@section.page("/timeline/rows", TimelineQuery)
def rows(view: View) -> str:
    """Return only the rows of the page, for the script that updates it."""
    return show("timeline_rows.html", view, **_list(view))


@section.page("/timeline/events", empty_too=True)
def happenings(view: View, *, after: Annotated[int, Field(ge=0, lt=2**62)] | None = None) -> Response:
    """Send the changes after a change number (default: the current one) for a limited time, as server-sent events."""
    last = request.headers.get("Last-Event-ID", "")
    if _CHANGE_NUMBER.fullmatch(last):
        after = int(last)
    if after is None:
        after = change_log.read_change_number(view.workspace)
    stream = events(
        Watch(view.workspace, after),
        find_streams("dashboard", view.container, threads_each=3),
        watch_caller(view.workspace_id),
    )
    return Response(stream, mimetype="text/event-stream")


def group_by_day(memories: Iterable[Memory], spans: Mapping[str, SessionSpan]) -> list[TimelineDay]:
    """Group memories, newest first, by day and then by session."""
    days = []
    for day, group in groupby(memories, key=lambda memory: local_day(memory.occurred_at)):
        sittings: dict[str | None, list[Memory]] = {}
        for memory in group:
            sittings.setdefault(memory.session_id, []).append(memory)
        days.append(
            TimelineDay(
                date.fromisoformat(day),
                tuple(
                    SessionOfDay(session, spans.get(session) if session is not None else None, tuple(those))
                    for session, those in sittings.items()
                ),
            )
        )
    return days


def _begin_day(day: date) -> str:
    try:
        return utc_text(datetime.combine(day, datetime.min.time(), reader_zone()))
    except OverflowError:
        return day.isoformat()


def describe_digestion(digestion: Undigested) -> dict[str, DigestionSign]:
    """Return the processing state of unprocessed memories by id."""
    waiting, failed = (
        {known: ", ".join(STAGES[stage] for stage in stages) for known, stages in some.items()}
        for some in (digestion.waiting, digestion.failed)
    )
    return {known: DigestionSign("waiting", f"pending: {stages}") for known, stages in waiting.items()} | {
        known: DigestionSign("failed", f"failed: {stages}") for known, stages in failed.items()
    }


def _list(view: View) -> dict[str, Any]:
    query: TimelineQuery = view.query
    before = None if query.before is None else _read_place(query.before)
    page = change_log.list_timeline(view.workspace, query.to_journal_query(), PAGE_SIZE, before)
    return {
        "days": group_by_day(page.memories, page.spans),
        "local_now": view.now.astimezone(reader_zone()),
        "next_url": _older(query, page.memories[-1]) if page.more else None,
        "digestion": describe_digestion(page.digestion),
        "number": page.number,
        "most_counted": MOST_COUNTED,
    }


def _older(query: TimelineQuery, last: Memory) -> str:
    # Always link to the full page, also from the rows that a script requests.
    return url_for("dashboard.timeline_journal", **query.narrowed, before=f"{last.occurred_at}_{last.seq}")


def _read_place(cursor: str) -> JournalPosition:
    at, _, seq = cursor.partition("_")
    return JournalPosition(at, int(seq))


class Watch:
    """The changes that a page has received, and the changes since then."""

    def __init__(self, workspace: Workspace, after: int) -> None:
        self._workspace = workspace
        self._number = after
        self._digestion: Undigested | None = None

    def step(self) -> Step:
        """Return the news as a step of a stream, which no number of events ends."""
        return Step(self.news(), 0, self._number, more=False)

    def news(self) -> bytes:
        """Return events for all changes that were not sent yet."""
        news = change_log.read_news(self._workspace, self._number)
        events = b""
        if news.changes or news.more:
            listed = [{"id": change.memory_id, "op": change.op} for change in news.changes]
            events += format_event("changes", {"changes": listed, "more": news.more}, news.number)
        # Send the state with every change, since it covers all changes up to this number.
        if news.number != self._number or news.digestion != self._digestion:
            events += format_event("digestion", asdict(news.digestion), news.number)
        self._number, self._digestion = news.number, news.digestion
        return events


def events(watch: Watch, streams: Streams, has_access: Callable[[], bool] = lambda: True) -> Iterator[bytes]:
    """Yield events until the time limit, or until the caller loses access."""
    yield format_retry(RETRY_MS)
    # Reserve after the first read: an unread response would never release its stream.
    yield from streams.follow(lambda: watch.step() if has_access() else None, lambda: None, most=1)
