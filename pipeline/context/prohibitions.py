"""Rules in a person's words that forbid a command or a change of a file, and may therefore guard tool calls."""

from pipeline.context.command_rules import forbids_command
from pipeline.kinds import render_text
from pipeline.records import CAPTURED_TAG, Kind, Memory, Source

# The tag of a rule that its person wants to be reminded of, but not to block calls with.
REMINDER_TAG = "reminder-only"


def may_guard(memory: Memory) -> bool:
    """Return whether a memory is a rule in a person's words that could block calls and does not yet."""
    said = memory.source is Source.USER or (memory.source is Source.AMBIENT and CAPTURED_TAG in memory.tags)
    return (
        said
        and memory.kind is Kind.LESSON
        and not memory.instructs
        and memory.details.get("severity") != "critical"
        and REMINDER_TAG not in memory.tags
        and forbids_command(render_text(memory))
    )
