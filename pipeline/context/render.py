"""Memories as the text that an agent reads: facts with their source, rules where somebody vouches for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.kinds import render_text
from pipeline.recall.annotations import NOTHING, Annotations
from pipeline.records import Kind, Memory, Trust
from pipeline.records.line import HEADER, INNER_QUOTES, SHORT_ID
from pipeline.store.goals import UNFINISHED
from pipeline.times import age

LONGEST_LINE = 600


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory to be shown, what is to be remarked on it, and under which id it is surfaced."""

    memory: Memory
    remarks: Annotations = NOTHING
    surface_id: str | None = None


def render_block(entries: Sequence[Entry], max_chars: int, now: datetime) -> str | None:
    """Render memories, most useful first, as far as they fit; None when not even one does."""
    return block_of(entries, max_chars, now)[0]


def fitting(entries: Sequence[Entry], max_chars: int, now: datetime) -> list[Entry]:
    """Return the entries that a block of so many characters holds: one that is too long makes room for the next."""
    return block_of(entries, max_chars, now)[1]


def block_of(entries: Sequence[Entry], max_chars: int, now: datetime) -> tuple[str | None, list[Entry]]:
    """Return the block of `render_block` and the entries that it holds."""
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
    text = " ".join(render_text(memory).split())
    if len(text) > LONGEST_LINE:
        text = text[: LONGEST_LINE - 1].rstrip() + "…"
    if memory.trust is Trust.EVIDENCE or memory.instructs:
        # A quotation mark of its own would end the quotation early.
        text = f"{memory.source} noted: “{text.translate(INNER_QUOTES)}”"
    when = f"{age(memory.occurred_at, now)}{_due(memory, now)}"
    return f"- [{memory.id[-SHORT_ID:]} · {memory.kind} · {when}] {text}{_notes(entry)}"


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
    if entry.surface_id is not None:
        notes.append(f"surface {entry.surface_id}")
    return f" ({'; '.join(notes)})" if notes else ""
