"""Say why a briefing showed each memory or left it out."""

from typing import Any

from pipeline.context.briefing import Briefing


def trace_of(briefing: Briefing) -> dict[str, Any]:
    """Return why each memory was shown or left out."""
    hits = (*briefing.lessons, *briefing.decisions, *briefing.facts, *briefing.memories, *briefing.person)
    shown_ids = {memory.id for memory in (*briefing.shown, *briefing.person_shown)}
    return {
        "degraded": briefing.degraded,
        "found": [
            {
                "id": hit.memory.id,
                "score": round(hit.score, 4),
                "relevance": round(hit.relevance, 3),
                "told": hit.memory.id in shown_ids,
            }
            for hit in hits
        ],
    }
