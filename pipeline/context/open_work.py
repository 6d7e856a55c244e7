"""The state of the work: open goals, the last sessions (asked, done, open), recent activity and active arcs.

It is read from the store without a search, for messages that ask about progress or say too little to search.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from sqlite3 import Connection
from typing import TypeVar

from pipeline.context.last_exchange import describe_last_exchange
from pipeline.context.quoting import quote
from pipeline.context.render import Entry, render_line
from pipeline.context.turn import list_done, list_failing
from pipeline.recall.query import asks_progress, is_personal, parse_time_range
from pipeline.records import Filter, Kind, Memory, Viewer
from pipeline.records.hooks import AgentSession
from pipeline.store import agent_sessions, arcs, goals, memories, turns
from pipeline.store.agent_sessions import SessionSummary
from pipeline.store.arcs import VisibleArc
from pipeline.store.turns import Turn
from pipeline.text.messages import is_follow_up, is_wish, list_own_words, says_little
from pipeline.text.normalize import shorten
from pipeline.times import age, local_date, utc_text

T = TypeVar("T")

MOST_CHARS = 900
GOALS = 4
SESSIONS = 3
ARCS = 3
ACTIVITIES = 4
# Number of latest sessions and memories that are searched.
LOOKED_AT = 50
ACTIONS = 200
# Maximum number of a session's requests, their length, and the words that each must have to say something.
REQUESTS = 3
REQUEST_CHARS = 90
REQUEST_WORDS = 2
LAST_DAY = timedelta(hours=24)
LATELY = timedelta(days=14)
END_OF_TIME = "9999"
HAPPENED = (Kind.ACTIVITY, Kind.EPISODE, Kind.MILESTONE)
OPEN_GOALS = "Open goals, as recorded:"
LAST_SESSIONS = "The last sessions here, from their journals:"
RECENT = "Recent activity, as recorded:"
UNDER_WAY = "Under way, derived from the memories here:"


@dataclass(frozen=True, slots=True)
class OpenWork:
    """The state of the work as a text of limited length, and its records."""

    text: str = ""
    goals: tuple[Memory, ...] = ()
    activity: tuple[Memory, ...] = ()
    arcs: tuple[VisibleArc, ...] = ()

    @property
    def shown(self) -> tuple[Memory, ...]:
        """Return the memories in the text."""
        return (*self.goals, *self.activity)


def read_open_work(db: Connection, session: AgentSession, now: datetime, shown: Sequence[Memory] = ()) -> OpenWork:
    """Return the open goals, the activity of the last 24 hours, and the active arcs; without some shown memories."""
    viewer, known = session.viewer, {memory.seq for memory in shown}
    unfinished = [goal for goal in _list_normal(goals.list_unfinished(db, viewer, GOALS)) if goal.seq not in known]
    since = utc_text(now - LAST_DAY)
    summaries, summarized = summarize_sessions(db, session, since, None, now)
    noted = [memory for memory in _list_activity(db, viewer, since, summarized) if memory.seq not in known]
    threads = list_active_arcs(db, viewer, ARCS)
    room = SectionRoom(MOST_CHARS)
    shown_goals = room.add(OPEN_GOALS, unfinished, [render_line(Entry(goal), now) for goal in unfinished])
    room.add(LAST_SESSIONS, summaries, summaries)
    activity = room.add(RECENT, noted, [render_line(Entry(memory), now) for memory in noted])
    shown_arcs = room.add(
        UNDER_WAY,
        threads,
        [f"- {quote(arc.title)} ({arc.size} memories, last {local_date(arc.last_at)})" for arc in threads],
    )
    return OpenWork("\n".join(room.lines), tuple(shown_goals), tuple(activity), tuple(shown_arcs))


def summarize_sessions(
    db: Connection, session: AgentSession, since: str, until: str | None, now: datetime
) -> tuple[list[str], frozenset[str]]:
    """Return a line for each of the last other sessions in a time: asked, done, open; and the ids of these sessions."""
    summaries: list[_SessionWork] = []
    for summary in agent_sessions.list_sessions_since(db, since, LOOKED_AT, session.viewer.person):
        # With an end, a session that went on later may be listed before another that was the last one then.
        if until is None and len(summaries) == SESSIONS:
            break
        if summary.id == session.id or (until is not None and summary.first_at >= until):
            continue
        work = _read_work(db, summary, since, until or END_OF_TIME)
        if work is not None:
            summaries.append(work)
    last = sorted(summaries, key=lambda work: work.last_at, reverse=True)[:SESSIONS]
    return [f"- {age(work.last_at, now)}: {work.text}" for work in last], frozenset(work.id for work in last)


def summarize_sessions_asked_for(
    db: Connection, session: AgentSession, message: str, now: datetime
) -> tuple[list[str], frozenset[str]]:
    """Return a header and a line for each of the last sessions, of the time that a message names if there were any.

    If the message names no time, they follow the last exchange, of this session if there was one.
    """
    times = parse_time_range(message, now)
    lines: list[str] = []
    summarized = frozenset[str]()
    stopped = _describe_last_exchange(db, session, now) if times is None else []
    if times is not None and times.since is not None:
        until = None if times.until is None else utc_text(times.until)
        lines, summarized = summarize_sessions(db, session, utc_text(times.since), until, now)
    if not lines:
        lines, summarized = summarize_sessions(db, session, utc_text(now - LATELY), None, now)
    return [*stopped, *([LAST_SESSIONS, *lines] if lines else [])], summarized


def _describe_last_exchange(db: Connection, session: AgentSession, now: datetime) -> list[str]:
    """Describe the last exchange of a session, or of the latest other one of the person."""
    since = utc_text(now - LATELY)
    latest = agent_sessions.list_sessions_since(db, since, SESSIONS, session.viewer.person)
    names = dict.fromkeys([*([] if session.id is None else [session.id]), *(summary.id for summary in latest)])
    return next(filter(None, (describe_last_exchange(db, name) for name in names)), [])


@dataclass(frozen=True, slots=True)
class _SessionWork:
    """What a session was asked, what it did and what it left open in a time, and when it last did so."""

    id: str
    last_at: str
    text: str


def _read_work(db: Connection, summary: SessionSummary, since: str, until: str) -> _SessionWork | None:
    """Return the work of a session in a time; None if nothing of it is known."""
    did = [action for action in agent_sessions.list_actions(db, summary.id, since, ACTIONS) if action.at < until]
    requests = list_requests(db, summary.id, since, until)
    asked = [quote(shorten(" ".join(turn.content.split()), REQUEST_CHARS)) for turn in requests]
    if not asked and summary.name and summary.first_at >= since and not asks_progress(summary.name):
        asked = [quote(summary.name)]
    parts = [f"asked {', '.join(asked)}"] if asked else []
    for label, found in (("done", list_done(did)), ("open", list_failing(did))):
        parts += [f"{label}: {'; '.join(found)}"] if found else []
    last_at = max([action.at for action in did] + [turn.at for turn in requests], default=summary.last_at)
    return _SessionWork(summary.id, last_at, "; ".join(parts)) if parts else None


def list_requests(db: Connection, session_id: str, since: str, until: str) -> list[Turn]:
    """List a person's last messages that ask for something: no statements that became memories, nor short answers."""
    unstored = turns.list_unstored(db, session_id, since, until, LOOKED_AT)
    return [turn for turn in unstored if _is_request(turn.content)][-REQUESTS:]


def _is_request(message: str) -> bool:
    return len(list_own_words(message)) >= REQUEST_WORDS and not (
        is_follow_up(message)
        or says_little(message)
        or asks_progress(message)
        or (is_personal(message) and not is_wish(message))
    )


def _list_activity(db: Connection, viewer: Viewer, since: str, summarized: frozenset[str]) -> list[Memory]:
    """List what happened since a time, without what the summaries of sessions already say."""
    criteria = Filter(kinds=HAPPENED, viewer=viewer)
    latest = memories.list_latest_happened(db, criteria, since, ACTIVITIES + len(summarized), LOOKED_AT)
    return [memory for memory in _list_normal(latest) if memory.session_id not in summarized][:ACTIVITIES]


def _list_normal(candidates: Sequence[Memory]) -> list[Memory]:
    return [memory for memory in candidates if memory.may_be_injected]


def list_active_arcs(db: Connection, viewer: Viewer, limit: int) -> list[VisibleArc]:
    """List the active arcs, without those that consist mainly of outlines of code, which are no work."""
    return [arc for arc in arcs.list_active(db, viewer, LOOKED_AT) if not is_outline(arc)][:limit]


def is_outline(arc: VisibleArc) -> bool:
    """Return whether an arc consists mainly of outlines of code."""
    return 2 * sum(member.kind is Kind.CODE for member in arc.members) > len(arc.members)


class SectionRoom:
    """Lines in sections, as many as fit."""

    def __init__(self, most_chars: int) -> None:
        self.lines: list[str] = []
        self._left = most_chars

    def add(self, header: str, records: Sequence[T], lines: Sequence[str]) -> list[T]:
        """Add the lines of a section that fit, and return their records."""
        added: list[T] = []
        for record, line in zip(records, lines, strict=True):
            new = [line] if added else [header, line]
            size = sum(1 + len(text) for text in new)
            if size <= self._left:
                self.lines += new
                self._left -= size
                added.append(record)
        return added
