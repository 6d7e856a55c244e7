"""Lines for what past sessions decided about a prompt."""

from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.context.past_sessions import OF_AGENT
from pipeline.context.quoting import quote
from pipeline.prompt.fill import DECISIONS_HEADER
from pipeline.prompt.line import Key, Line, LineSource, make_text_key
from pipeline.sessions.decisions import Decision
from pipeline.text.normalize import shorten
from pipeline.times import local_date

TITLE_CHARS: Final = 60


def make_decision_lines(groups: Sequence[Sequence[Decision]]) -> Iterator[Line]:
    """Yield the lines of groups of decisions, one for each past session; the first of a group carries the others."""
    score = 0.0
    for group in groups:
        first: Key | None = None
        session = None
        for decision in group:
            conclusion = decision.conclusion
            key = make_text_key(LineSource.DECISION, f"{conclusion.session_id}\0{conclusion.content}")
            text = _render(decision, continues=conclusion.session_id == session)
            score -= 1.0
            source = LineSource.DECISION
            yield Line(key, source, conclusion.kind, conclusion.content, score, text, DECISIONS_HEADER, follows=first)
            first, session = first or key, conclusion.session_id


def _render(decision: Decision, *, continues: bool) -> str:
    conclusion = decision.conclusion
    said = f"{quote(conclusion.content)}{OF_AGENT if conclusion.is_of_agent else ''}"
    if continues:
        return f"- also: {said}"
    title = f" {quote(shorten(decision.title, TITLE_CHARS))}" if decision.title else ""
    if decision.is_replaced:
        return f"- before, replaced in part, in session{title} ({local_date(conclusion.at)}): {said}"
    current = ", replacing an earlier decision" if decision.replaces else ""
    return f"- decided in session{title} ({local_date(conclusion.at)}){current}: {said}"
