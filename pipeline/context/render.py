"""Memories as the text that an agent reads: facts with their source, rules where somebody vouches for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.context.quoting import find_speaker
from pipeline.kinds import render_text
from pipeline.records import HEADER, SHORT_ID, Kind, Memory
from pipeline.records.recall import NOTHING, Annotations
from pipeline.store.goals import UNFINISHED
from pipeline.times import age

LONGEST_LINE = 600


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory to be shown, what is to be remarked on it, the id of its impression, and the part that is shown."""

    memory: Memory
    remarks: Annotations = NOTHING
    impression_id: str | None = None
    excerpt: str | None = None


def render_block(entries: Sequence[Entry], max_chars: int, now: datetime) -> tuple[str | None, list[Entry]]:
    """Render memories, most useful first, as far as they fit, and list these; one that is too long makes room.

    The text is None when not even one fits.
    """
    kept, lines = [], [HEADER]
    used = len(HEADER)
    for entry in entries:
        line = render_line(entry, now)
        if used + 1 + len(line) <= max_chars:
            kept.append(entry)
            lines.append(line)
            used += 1 + len(line)
    return ("\n".join(lines) if kept else None), kept


def render_line(entry: Entry, now: datetime) -> str:
    """Render one memory: its short id, kind and age, its text, and the remarks on it."""
    memory = entry.memory
    text = " ".join((entry.excerpt or render_text(memory)).split())
    if len(text) > LONGEST_LINE:
        text = text[: LONGEST_LINE - 1].rstrip() + "…"
    said = find_speaker(memory.source, memory.trust, instructs=memory.instructs).say(text)
    when = f"{age(memory.occurred_at, now)}{_due(memory, now)}"
    return f"- [{memory.id[-SHORT_ID:]} · {memory.kind} · {when}] {said}{_notes(entry)}"


def _due(memory: Memory, now: datetime) -> str:
    due = memory.details.get("due_at")
    if memory.kind is not Kind.GOAL or not due or memory.details.get("status", UNFINISHED[0]) not in UNFINISHED:
        return ""
    return f", due {age(due, now)}"


def _notes(entry: Entry) -> str:
    notes = []
    if entry.remarks.stale:
        notes.append("stale")
    if entry.remarks.contradicted_by:
        short = ", ".join(f"[{memory_id[-SHORT_ID:]}]" for memory_id in entry.remarks.contradicted_by)
        notes.append(f"contradicted by {short}")
    if entry.remarks.superseded_by:
        notes.append(f"superseded by [{entry.remarks.superseded_by[-SHORT_ID:]}]")
    if entry.impression_id is not None:
        notes.append(f"surface {entry.impression_id}")
    return f" ({'; '.join(notes)})" if notes else ""
