"""Memories as the text that an agent reads: facts with their source, rules where somebody vouches for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.kinds import told
from pipeline.recall.remarks import NOTHING, Remarks
from pipeline.records import Memory, Trust
from pipeline.write.echo import HEADER, INNER_QUOTES, SHORT_ID

LONGEST_LINE = 600


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory to be shown, what is to be remarked on it, and under which id it is surfaced."""

    memory: Memory
    remarks: Remarks = NOTHING
    surface_id: str | None = None


def render_block(entries: Sequence[Entry], max_chars: int) -> str | None:
    """Render memories, most useful first, as far as they fit; None when not even one does."""
    lines = [render_line(entry) for entry in fitting(entries, max_chars)]
    return "\n".join([HEADER, *lines]) if lines else None


def fitting(entries: Sequence[Entry], max_chars: int) -> list[Entry]:
    """Return the entries that a block of so many characters holds: one that is too long makes room for the next."""
    kept = []
    used = len(HEADER)
    for entry in entries:
        length = 1 + len(render_line(entry))
        if used + length <= max_chars:
            kept.append(entry)
            used += length
    return kept


def render_line(entry: Entry) -> str:
    """Render one memory: its short id, kind and day, its text, and the remarks on it."""
    memory = entry.memory
    text = " ".join(told(memory).split())
    if len(text) > LONGEST_LINE:
        text = text[: LONGEST_LINE - 1].rstrip() + "…"
    if memory.trust is Trust.EVIDENCE or memory.instructs:
        # A quotation mark of its own would end the quotation early.
        text = f"{memory.source} noted: “{text.translate(INNER_QUOTES)}”"
    return f"- [{memory.id[-SHORT_ID:]} · {memory.kind} · {memory.occurred_at[:10]}] {text}{_notes(entry)}"


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
