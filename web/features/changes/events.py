"""Events of a workspace as a stream: what was written, changed or removed, and which jobs ended."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

from flask import Response
from pydantic import BeforeValidator, StringConstraints

from pipeline.features.changes.events import (
    Cursor,
    Event,
    EventFilter,
    EventPage,
    EventType,
    find_end,
    parse_cursor,
    read_events,
)
from pipeline.kernel.records import Kind
from pipeline.kernel.times import utc_now
from web.http import bodies
from web.http.access import may_enter
from web.http.access_log import note_later
from web.http.answers import Answer
from web.http.call import Call
from web.http.endpoint import Api, Endpoint
from web.http.streams import MEDIA_TYPE, RETRY_MS, Step, Streams, find_streams, format_event, format_position

api = Api("events", 135)

LAST_EVENT_ID = "Last-Event-ID"
# A client that reads slowly or asks for a long history gets the rest after it reconnects.
MAX_EVENTS = 2000
WANTED_TYPES = tuple(kind for kind in EventType if kind is not EventType.RESET)


def _list_pattern(values: Iterable[StrEnum]) -> str:
    value = f"(?:{'|'.join(values)})"
    return f"^{value}(?:,{value}){{0,19}}$"


class EventsQuery(bodies.QueryString, bodies.ViewerFields):
    """The cursor to continue after (default: now; `0` is the beginning), and filters; lists are separated by commas.

    `titles` adds the start of each memory's text.
    """

    after: Annotated[str, StringConstraints(max_length=64)] | None = None
    type: Annotated[str, StringConstraints(pattern=_list_pattern(WANTED_TYPES))] | None = None
    kind: Annotated[str, StringConstraints(pattern=_list_pattern(Kind))] | None = None
    titles: bool = False

    def filter(self, call: Call) -> EventFilter:
        """Return the filters as a record."""
        types = frozenset(EventType(name) for name in self.type.split(",")) if self.type else frozenset()
        kinds = frozenset(Kind(name) for name in self.kind.split(",")) if self.kind else frozenset()
        return EventFilter(self.viewer(call.caller), types, kinds, self.titles)


class EventAnswer(Answer, of=Event, optional=("memory_id", "kind", "title", "job", "ok")):
    """One event. Fields that do not belong to its type are omitted."""

    cursor: Annotated[str, BeforeValidator(str)]
    workspace: str


@api.route(Endpoint("GET", "/v1/events", answer=EventAnswer, media_type=MEDIA_TYPE))
def watch_events(call: Call, query: EventsQuery) -> Response:
    """Stream events as server-sent events; continue after `Last-Event-ID` or `after`."""
    workspace, wanted = call.workspace, query.filter(call)
    cursor = _find_cursor(call, query) or find_end(workspace)
    reader = Reader(
        partial(read_events, workspace, wanted=wanted), cursor, call.workspace_id, note_later(call.container.access_log)
    )
    return stream_response(reader.stream(open_streams(call), watch_access(call)))


class Reader:
    """A client of the stream, and how far it has read."""

    def __init__(
        self,
        read: Callable[[Cursor], EventPage],
        cursor: Cursor,
        workspace_id: str,
        note_memories: Callable[[list[str]], None],
    ) -> None:
        self._read = read
        self._cursor = cursor
        self._workspace_id = workspace_id
        self._note_memories = note_memories

    def stream(self, streams: Streams, has_access: Callable[[], bool]) -> Iterator[bytes]:
        """Yield events until a limit is reached, the caller loses access, or the server stops."""
        yield format_position(self._cursor, RETRY_MS)
        # Reserve after the first block: an unread response would never release its stream.
        yield from streams.follow(lambda: self._read_step() if has_access() else None, lambda: None, MAX_EVENTS)

    def _read_step(self) -> Step:
        page = self._read(self._cursor)
        self._cursor = page.cursor
        return Step(self._format(page.events), len(page.events), page.cursor, page.more)

    def _format(self, events: Iterable[Event]) -> bytes:
        listed = [event for event in events if event.memory_id is not None]
        if listed:
            self._note_memories([event.memory_id for event in listed if event.memory_id is not None])
        return b"".join(format_event(event.type, self._describe(event), event.cursor) for event in events)

    def _describe(self, event: Event) -> dict[str, Any]:
        known = {part.name: getattr(event, part.name) for part in fields(event)}
        return EventAnswer.model_validate({**known, "workspace": self._workspace_id}).model_dump()


def _find_cursor(call: Call, query: EventsQuery) -> Cursor | None:
    # A client that reconnects repeats its first query and adds the header.
    if last := call.headers.get(LAST_EVENT_ID):
        return parse_cursor(last, LAST_EVENT_ID)
    return None if query.after is None else parse_cursor(query.after, "after")


def open_streams(call: Call) -> Streams:
    """Return the limits of streams of clients, in addition to those of the dashboard."""
    return find_streams("event", call.container, threads_each=4)


def stream_response(blocks: Iterable[bytes]) -> Response:
    """Return the response of a stream of server-sent events."""
    response = Response(blocks, mimetype=MEDIA_TYPE)
    # Otherwise nginx collects the events of a stream before it forwards them.
    response.headers["X-Accel-Buffering"] = "no"
    return response


def watch_access(call: Call) -> Callable[[], bool]:
    """Return a function that checks whether the caller still has access."""
    services, caller, token = call.container, call.caller, call.container.token

    def has_access() -> bool:
        if caller.person is None:
            return services.token == token
        holder = services.people.find_holder(caller.token_id or "", utc_now())
        return holder is not None and may_enter(holder, call.workspace_id, services.people)

    return has_access
