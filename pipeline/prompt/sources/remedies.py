"""The line that reminds an agent of a remedy: an error that it met or that a prompt quotes was solved before."""

from sqlite3 import Connection
from typing import Final

from pipeline.context.quoting import quote
from pipeline.prompt.line import Line, LineSource, make_text_key
from pipeline.sessions.remedies import MAX_STEP_CHARS, Remedy, find_fixes
from pipeline.store.agent_sessions import ActionType
from pipeline.text.error_signature import pick_error_lines
from pipeline.text.normalize import shorten
from pipeline.times import local_date

CONSIDERED: Final = 3
# The newest errors that an error in a prompt is compared with, and how alike they must be.
COMPARED: Final = 300
LEAST_LIKENESS: Final = 0.8


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
