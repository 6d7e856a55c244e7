"""The history of a project in its imported sessions: the last sessions, the current decisions, and its commands."""

from collections.abc import Collection
from datetime import datetime
from sqlite3 import Connection

from pipeline.context.open_work import END_OF_TIME, SectionRoom, list_requests
from pipeline.context.quoting import quote
from pipeline.context.turn import list_failing
from pipeline.records.hooks import AgentSession
from pipeline.store import action_history, agent_sessions, session_archive
from pipeline.store.conclusions import Conclusion, ConclusionKind, list_current
from pipeline.text.messages import is_follow_up, says_little
from pipeline.text.normalize import shorten
from pipeline.text.tokens import search_tokens
from pipeline.times import age, utc_text

MOST_CHARS = 900
SESSIONS, DECISIONS, COMMANDS = 3, 4, 3
# Numbers of records that are read to find those that say something.
SESSIONS_READ, CONCLUSIONS_READ, COMMANDS_READ, ACTIONS_READ = 12, 60, 12, 50
NAME_CHARS, REQUEST_CHARS, DECISION_CHARS, LONGEST_COMMAND = 60, 70, 140, 60
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
    commands = ", ".join(quote(command) for command in _list_commands(db, person))
    worked = [WORKED, f"- {commands}"] if commands else []
    room = SectionRoom(MOST_CHARS - sum(1 + len(line) for line in worked))
    sessions = [line for past in imported if (line := _describe(db, past, conclusions, now))][:SESSIONS]
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


def _describe(
    db: Connection, past: session_archive.ArchivedSession, conclusions: Collection[Conclusion], now: datetime
) -> str | None:
    """Return a session's line: when, by which agent, its name, the last request, and what it left open."""
    requests = [turn.content for turn in list_requests(db, past.id, "", END_OF_TIME)]
    name = past.name or ""
    parts = [quote(shorten(name, NAME_CHARS))] if name and not (is_follow_up(name) or says_little(name)) else []
    concluded = {_comparable(conclusion.content) for conclusion in conclusions}
    new = [text for text in requests if not (_says_the_same(text, name) or _comparable(text) in concluded)]
    last = new[-1] if new else None
    parts += [] if last is None else [f"asked {quote(shorten(' '.join(last.split()), REQUEST_CHARS))}"]
    if not parts:
        return None
    left = [
        conclusion.content
        for conclusion in conclusions
        if (conclusion.session_id, conclusion.kind) == (past.id, ConclusionKind.OPEN)
    ]
    failing = list_failing(agent_sessions.list_actions(db, past.id, "", ACTIONS_READ))
    ends = [quote(shorten(text, REQUEST_CHARS)) for text in left[:1]] or failing[:1]
    parts += [f"open: {end}" for end in ends]
    return f"- {age(past.last_at, now)} ({past.agent}): {'; '.join(parts)}"


def _list_commands(db: Connection, person: str | None) -> list[str]:
    used = [command.command for command in action_history.list_used_commands(db, COMMANDS_READ, person)]
    return [command for command in used if len(command) <= LONGEST_COMMAND][:COMMANDS]


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
