"""Memories as the text that an agent reads: facts with their source, never orders."""

from collections.abc import Sequence

from pipeline.records import Memory, Trust

HEADER = "From this project's memory (recorded earlier; check before relying on it):"
# The end of a ULID is random; its beginning is the time, which neighbours share.
SHORT_ID = 8
LONGEST_LINE = 600

_INNER_QUOTES = str.maketrans({"“": "'", "”": "'"})


def render_block(memories: Sequence[Memory], max_chars: int) -> str | None:
    """Render memories, most useful first, as far as they fit; None when not even one does."""
    lines = [HEADER]
    used = len(HEADER)
    for memory in memories:
        line = _line(memory)
        if used + 1 + len(line) > max_chars:
            continue
        lines.append(line)
        used += 1 + len(line)
    return "\n".join(lines) if len(lines) > 1 else None


def _line(memory: Memory) -> str:
    text = " ".join(memory.content.split())
    if len(text) > LONGEST_LINE:
        text = text[: LONGEST_LINE - 1].rstrip() + "…"
    if memory.trust is Trust.EVIDENCE:
        # A quotation mark of its own would end the quotation early.
        text = text.translate(_INNER_QUOTES)
        text = f"{memory.source} noted: “{text}”"
    return f"- [{memory.id[-SHORT_ID:]} · {memory.kind} · {memory.occurred_at[:10]}] {text}"
