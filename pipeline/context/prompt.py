"""What an agent is told when a person sends a prompt: a few relevant memories, or nothing."""

from dataclasses import dataclass

from pipeline.context.render import render_block
from pipeline.recall.gates import relevant
from pipeline.recall.query import Query
from pipeline.recall.search import Reader, search

CONSIDERED = 8


@dataclass(frozen=True, slots=True)
class PromptLimits:
    """The deadline in milliseconds and the longest block in characters."""

    budget_ms: int
    max_chars: int


def prompt_context(reader: Reader, prompt: str, limits: PromptLimits) -> str | None:
    """Return a context block for a prompt, None when nothing in memory is about it."""
    answer = search(reader, Query(prompt, k=CONSIDERED, budget_ms=limits.budget_ms))
    hits = relevant(answer.hits)
    return render_block([hit.memory for hit in hits], limits.max_chars) if hits else None
