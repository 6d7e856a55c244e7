"""Rules in a person's words that forbid a command or a change of a file, and may therefore guard tool calls."""

import re

from pipeline.context.advice import read_message
from pipeline.kinds import render_text
from pipeline.records import CAPTURED_TAG, Kind, Memory, Source

# The tag of a rule that its person wants to be reminded of, but not to block calls with.
REMINDER_TAG = "reminder-only"
# Closed classes, in the languages of capture: absolute prohibitions, and those with a condition.
_NEVER = re.compile(
    r"\b(?:never|under no circumstances|nie|niemals|auf keinen fall|keinesfalls|nunca|jam[aá]s|jamais|en aucun cas)\b"
    r"|\b(?:do not|don['’]?t|must not|mustn['’]t|may not|nicht|kein\w*|no|ne|pas)\b.{1,120}?"
    r"\b(?:without|unless|before|until|ohne|bevor|außer|sin|salvo|antes de|sans|sauf|avant)\b",
    re.IGNORECASE | re.DOTALL,
)
# A verb of running, and the command after it.
_RUNS = re.compile(
    r"\b(?:run|running|execute|executing|invoke|call|launch|lances?|lancer|lancez|ex[eé]cut\w+|ejecut\w+|corr[ae]\w*|"
    r"starte?)\s+[`\w./-]{3,}\s+[`\w./-]{3,}"
    r"|[`\w./-]{3,}\s+[`\w./-]{3,}\s+(?:ausf[uü]hren|laufen lassen|starten|aufrufen)\b",
    re.IGNORECASE,
)


def forbids_call(text: str) -> bool:
    """Return whether a text forbids something, and names a file or a command by which a tool call is recognized."""
    return _NEVER.search(text) is not None and (bool(read_message(text).words) or _RUNS.search(text) is not None)


def may_guard(memory: Memory) -> bool:
    """Return whether a memory is a rule in a person's words that could block calls and does not yet."""
    said = memory.source is Source.USER or (memory.source is Source.AMBIENT and CAPTURED_TAG in memory.tags)
    return (
        said
        and memory.kind is Kind.LESSON
        and not memory.instructs
        and memory.details.get("severity") != "critical"
        and REMINDER_TAG not in memory.tags
        and forbids_call(render_text(memory))
    )
