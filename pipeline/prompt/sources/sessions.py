"""Lines from past sessions: what the person said, what was decided, and the remedies that worked against an error."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from sqlite3 import Connection
from typing import Final

from pipeline.features.lessons.prohibitions import is_about_to_break
from pipeline.kernel.records import SAID_HEADER, SHORT_ID
from pipeline.kernel.store.agent_sessions import ActionType
from pipeline.kernel.times import age, local_date
from pipeline.prompt.line import DECISIONS_HEADER, Key, Line, LineSource, make_text_key
from pipeline.prompt.start.open_work import OF_AGENT
from pipeline.sessions.decisions import Decision
from pipeline.sessions.own_words import OwnMessage
from pipeline.sessions.remedies import MAX_STEP_CHARS, Remedy, find_fixes
from pipeline.text.error_signature import pick_error_lines
from pipeline.text.excerpts import find_excerpt
from pipeline.text.normalize import shorten
from pipeline.text.quoting import quote
from pipeline.text.tokens import search_tokens

LINE_CHARS: Final = 240
# The version of a message in its key: a message never changes. Its row number is below zero.
VERSION: Final = "said"
TITLE_CHARS: Final = 60
CONSIDERED: Final = 3
# The newest errors that an error in a prompt is compared with, and how alike they must be.
COMPARED: Final = 300
LEAST_LIKENESS: Final = 0.8


def make_message_lines(messages: Sequence[OwnMessage], prompt: str, now: datetime) -> list[Line]:
    """Return a line for each message, which replaces the lines of the memories that were made of it."""
    asked = frozenset(search_tokens(prompt))
    return [
        Line(
            (-message.turn_seq, VERSION),
            LineSource.MESSAGE,
            LineSource.MESSAGE,
            message.text,
            message.score,
            _render_message(message, asked, now),
            SAID_HEADER,
            message.score,
            memories=message.memories,
            again=is_about_to_break(message.text, prompt),
        )
        for message in messages
    ]


def _render_message(message: OwnMessage, asked: frozenset[str], now: datetime) -> str:
    marks = [f"{memory.id[-SHORT_ID:]} · {memory.kind}" for memory in message.memories[:1]]
    text = find_excerpt(message.text, asked, LINE_CHARS)
    return f"- [{' · '.join([*marks, age(message.at, now)])}] {quote(text)}"


def make_decision_lines(groups: Sequence[Sequence[Decision]]) -> Iterator[Line]:
    """Yield the lines of groups of decisions, one for each past session; the first of a group carries the others."""
    score = 0.0
    for group in groups:
        first: Key | None = None
        session = None
        for decision in group:
            conclusion = decision.conclusion
            key = make_text_key(LineSource.DECISION, f"{conclusion.session_id}\0{conclusion.content}")
            text = _render_decision(decision, continues=conclusion.session_id == session)
            score -= 1.0
            yield Line(
                key,
                LineSource.DECISION,
                conclusion.kind,
                conclusion.content,
                score,
                text,
                DECISIONS_HEADER,
                follows=first,
            )
            first, session = first or key, conclusion.session_id


def _render_decision(decision: Decision, *, continues: bool) -> str:
    conclusion = decision.conclusion
    said = f"{quote(conclusion.content)}{OF_AGENT if conclusion.is_of_agent else ''}"
    if continues:
        return f"- also: {said}"
    title = f" {quote(shorten(decision.title, TITLE_CHARS))}" if decision.title else ""
    if decision.is_replaced:
        return f"- before, replaced in part, in session{title} ({local_date(conclusion.at)}): {said}"
    current = ", replacing an earlier decision" if decision.replaces else ""
    return f"- decided in session{title} ({local_date(conclusion.at)}){current}: {said}"


def find_remedy_lines(db: Connection, prompt: str, person: str | None) -> list[Line]:
    """Return the line for the best remedy that worked against an error in a prompt, or against one much like it."""
    error = "\n".join(pick_error_lines(prompt))
    if not error:
        return []
    remedies = find_fixes(db, error, person, CONSIDERED, COMPARED).remedies
    sure = [one for one in remedies if one.confirmed and one.steps and one.likeness >= LEAST_LIKENESS]
    return [make_remedy_line(one) for one in sure[:1]]


def make_remedy_line(remedy: Remedy) -> Line:
    """Return the line for a remedy; its steps are quoted, because a hostile project chooses its names and commands."""
    steps = ", then ".join(
        f"{'editing ' if step.type is ActionType.EDIT else ''}{quote(shorten(step.target, MAX_STEP_CHARS))}"
        for step in remedy.steps
    )
    text = f"Seen before: this error was solved by {steps} ({local_date(remedy.at)})."
    source = LineSource.REMEDY
    return Line(make_text_key(source, remedy.failure.error_signature or ""), source, source, steps, 1.0, text)
