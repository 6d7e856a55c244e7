"""The state of the work: open goals, the last sessions (asked, done, open), recent activity and active arcs.

It is read from the store without a search, for messages that ask about progress or say too little to search. The first
session after an import is shown the history of the imported sessions in the same way.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.records import Filter, Kind, Memory, Viewer
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.registry import collect
from pipeline.kernel.store import action_history, agent_sessions, memories, session_archive, turns
from pipeline.kernel.store.agent_sessions import SessionSummary
from pipeline.kernel.store.conclusions import Conclusion, ConclusionKind, list_current
from pipeline.kernel.store.session_archive import ArchivedSession
from pipeline.kernel.store.turns import Role, Turn
from pipeline.kernel.times import age, local_date, utc_text
from pipeline.prompt.render import Entry, SectionRoom, list_shown_unasked, render_line
from pipeline.prompt.tool_calls.turn import list_done, list_failing
from pipeline.recall.query import asks_progress, is_personal, parse_time_range
from pipeline.text.messages import is_follow_up, is_small_talk, is_wish, list_own_words, says_little
from pipeline.text.normalize import shorten
from pipeline.text.own_words import join_own_lines
from pipeline.text.quoting import quote
from pipeline.text.tokens import search_tokens

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
STOPPED = "Where the work stopped:"
MESSAGE_CHARS = 240
# The latest turns that are searched: tools and short answers may follow the last message that says something.
TURNS_SEARCHED = 40
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
    arcs: tuple[Any, ...] = ()

    @property
    def shown(self) -> tuple[Memory, ...]:
        """Return the memories in the text."""
        return (*self.goals, *self.activity)


def read_open_work(db: Connection, session: AgentSession, now: datetime, shown: Sequence[Memory] = ()) -> OpenWork:
    """Return the open goals, the activity of the last 24 hours, and the active arcs; without some shown memories."""
    viewer, known = session.viewer, {memory.seq for memory in shown}
    open_goals = list_shown_unasked(collect("list_unfinished", db, viewer, GOALS))
    unfinished = [goal for goal in open_goals if goal.seq not in known]
    since = utc_text(now - LAST_DAY)
    summaries, summarized = summarize_sessions(db, session, since, None, now)
    noted = [memory for memory in _list_activity(db, viewer, since, summarized) if memory.seq not in known]
    # Outlines of code are no work.
    threads = [thread for thread in collect("list_threads", db, viewer, LOOKED_AT) if not thread.is_outline][:ARCS]
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


def describe_last_exchange(db: Connection, session_id: str) -> list[str]:
    """Return a header, the last message of a session that says something, and the last answer; none without one."""
    latest = [turn for turn in turns.page(db, session_id, TURNS_SEARCHED, None) if turn.content.strip()]
    messages = (turn for turn in latest if turn.role is Role.USER)
    message = next((turn for turn in messages if _says_something(turn.content)), None)
    if message is None:
        return []
    answer = next((turn for turn in latest if turn.role is Role.ASSISTANT and turn.seq > message.seq), None)
    lines = [STOPPED, f"- the user said: {quote(shorten(join_own_lines(message.content), MESSAGE_CHARS))}"]
    return (
        lines
        if answer is None
        else [*lines, f"- the agent answered: {quote(shorten(' '.join(answer.content.split()), MESSAGE_CHARS))}"]
    )


def _says_something(message: str) -> bool:
    own = join_own_lines(message)
    return bool(own) and not (is_small_talk(own) or says_little(own) or asks_progress(own))


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
    return [memory for memory in list_shown_unasked(latest) if memory.session_id not in summarized][:ACTIVITIES]


# The history of a project in its imported sessions: the last sessions, the current decisions, and its commands

DECISIONS, COMMANDS = 4, 3
# Numbers of records that are read to find those that say something.
SESSIONS_READ, CONCLUSIONS_READ, COMMANDS_READ, ACTIONS_READ = 12, 60, 12, 50
NAME_CHARS, PAST_REQUEST_CHARS, DECISION_CHARS, LONGEST_COMMAND = 60, 70, 140, 60
# The share of the words of a shown memory in a decision, which then says the same.
SAID_SHARE = 0.8
PAST_SESSIONS = "The last sessions in this project, from their transcripts:"
DECIDED = "Decided in past sessions (check before relying on it):"
# Behind a quotation.
OF_AGENT = " (said by the agent)"
WORKED = "Commands that worked in past sessions:"


def describe_past_sessions(
    db: Connection, session: AgentSession, now: datetime, shown: Collection[str] = ()
) -> list[str]:
    """Return lines about the imported sessions; none without them. Texts that are `shown` anyway are left out."""
    person = session.viewer.person
    imported = [
        past
        for past in session_archive.list_imported(db, SESSIONS_READ, utc_text(now), person)
        if past.id != session.id
    ]
    if not imported:
        return []
    conclusions = list_current(db, CONCLUSIONS_READ, person)
    used = [command.command for command in action_history.list_used_commands(db, COMMANDS_READ, person)]
    short = [quote(command) for command in used if len(command) <= LONGEST_COMMAND][:COMMANDS]
    worked = [WORKED, f"- {', '.join(short)}"] if short else []
    room = SectionRoom(MOST_CHARS - sum(1 + len(line) for line in worked))
    sessions = [line for past in imported if (line := _describe_past_session(db, past, conclusions, now))][:SESSIONS]
    room.add(PAST_SESSIONS, sessions, sessions)
    known = [frozenset(search_tokens(text)) for text in shown]
    decided = [
        f"- {age(conclusion.at, now)}: {quote(shorten(conclusion.content, DECISION_CHARS))}"
        f"{OF_AGENT if conclusion.is_of_agent else ''}"
        for conclusion in conclusions
        if conclusion.kind != ConclusionKind.OPEN and not _is_said(conclusion.content, known)
    ][:DECISIONS]
    room.add(DECIDED, decided, decided)
    return [*room.lines, *worked]


def _describe_past_session(
    db: Connection, past: ArchivedSession, conclusions: Collection[Conclusion], now: datetime
) -> str | None:
    """Return a session's line: when, by which agent, its name, the last request, and what it left open."""
    requests = [turn.content for turn in list_requests(db, past.id, "", END_OF_TIME)]
    name = past.name or ""
    parts = [quote(shorten(name, NAME_CHARS))] if name and not (is_follow_up(name) or says_little(name)) else []
    concluded = {_comparable(conclusion.content) for conclusion in conclusions}
    new = [text for text in requests if not (_says_the_same(text, name) or _comparable(text) in concluded)]
    last = new[-1] if new else None
    parts += [] if last is None else [f"asked {quote(shorten(' '.join(last.split()), PAST_REQUEST_CHARS))}"]
    if not parts:
        return None
    left = [
        conclusion.content
        for conclusion in conclusions
        if (conclusion.session_id, conclusion.kind) == (past.id, ConclusionKind.OPEN)
    ]
    failing = list_failing(agent_sessions.list_actions(db, past.id, "", ACTIONS_READ))
    ends = [quote(shorten(text, PAST_REQUEST_CHARS)) for text in left[:1]] or failing[:1]
    parts += [f"open: {end}" for end in ends]
    return f"- {age(past.last_at, now)} ({past.agent}): {'; '.join(parts)}"


def _is_said(text: str, known: Collection[frozenset[str]]) -> bool:
    """Return whether a text says what one of some others says, by their words."""
    tokens = set(search_tokens(text))
    return any(others and len(others & tokens) >= SAID_SHARE * len(others) for others in known)


def _comparable(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def _says_the_same(text: str, name: str) -> bool:
    """Return whether a session was named by the start of a text."""
    start = _comparable(name).rstrip("….")
    return bool(start) and _comparable(text).startswith(start)
