"""What a hook answers: the text for an agent, or why there is none, and how it came about."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.records import Memory
from pipeline.services.briefing import Briefing

# Why a hook told nothing.
HOOKS_OFF, RECALL_OFF = "hooks are off", "recall in hooks is off"
INCOGNITO, NOTHING_WRITTEN = "off the record", "nothing was written here yet"
HOST_NOTICE = "the host wrote all of the prompt"
NOTHING_ABOUT, NOTHING_TO_BRIEF = "nothing new is about it", "there is nothing to tell at the beginning"


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook tells an agent and the memories that it holds, or why it tells nothing.

    Of one that is not `is_kept` not even the run is kept. The `trace` says why each memory was told or left out.
    """

    text: str | None = None
    memories: tuple[Memory, ...] = ()
    reason: str | None = None
    is_late: bool = False
    is_kept: bool = True
    trace: Mapping[str, Any] | None = None


def trace_of(briefing: Briefing) -> dict[str, Any]:
    """Return why each memory was told or left out."""
    found = (*briefing.lessons, *briefing.decisions, *briefing.facts, *briefing.memories, *briefing.person)
    told = {memory.id for memory in (*briefing.shown, *briefing.person_shown)}
    return {
        "degraded": briefing.degraded,
        "found": [
            {
                "id": hit.memory.id,
                "score": round(hit.score, 4),
                "relevance": round(hit.relevance, 3),
                "told": hit.memory.id in told,
            }
            for hit in found
        ],
        "withheld": [memory.id for memory in briefing.withheld],
    }
