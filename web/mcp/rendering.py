"""Answers as lines for a model, in the form in which hooks show memories.

The form is shared on purpose: what an agent hands back in it is recognised as an echo.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from pipeline.errors import FieldError, InvalidField, NotFound
from pipeline.records import CUT, INNER_QUOTES, SHORT_ID, Trust
from pipeline.times import age

SHORT_CHARS = 280
WHOLE = 26
MOST = 10_000

_HIT = ("id", "kind", "content", "occurred_at", "session_id", "source", "trust", "score", "surface_id")
_MARKS = ("instructs", "stale", "contradicted_by", "candidate", "archived_at", "valid_from", "valid_to")


class ShownIds:
    """The whole ids of what was shown, by their ends; the longest unused are forgotten."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._whole: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def short(self, whole: str) -> str:
        """Return how an id is shown, and keep what it stands for."""
        end = whole[-SHORT_ID:]
        with self._lock:
            known = self._whole.setdefault(end, whole)
            self._whole.move_to_end(end)
            if len(self._whole) > self._most:
                self._whole.popitem(last=False)
        return end if known == whole else whole

    def resolve_id(self, given: str, name: str, ask: Callable[[str], str]) -> str:
        """Return the id that is meant: as shown here, else as whoever is asked knows it, for hooks show ids as well.

        Raises InvalidField for what ends no memory's id.
        """
        text = given.strip().strip("[]")
        if len(text) >= WHOLE:
            return text
        text = text.upper()
        with self._lock:
            found = self._whole.get(text[-SHORT_ID:]) if len(text) >= SHORT_ID else None
        if found is None and len(text) == SHORT_ID and text.isalnum():
            with suppress(NotFound):
                found = ask(text)
        if found is None or not found.endswith(text):
            raise InvalidField(FieldError(name, "is neither a whole id nor the end of one; recall it first"))
        return found


def shorten(memory: Mapping[str, Any], chars: int = SHORT_CHARS) -> dict[str, Any]:
    """Return a memory or hit with a short text and only what helps to choose; `cut` says that there is more."""
    kept = {name: memory[name] for name in _HIT if memory.get(name) is not None}
    kept |= {name: memory[name] for name in _MARKS if memory.get(name)}
    text = str(memory["content"])
    return kept | ({"content": text[: chars - 1].rstrip() + CUT, "cut": True} if len(text) > chars else {})


def render_memory(memory: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a memory in one line; what nobody vouches for stands in quotation marks, with its source."""
    text = " ".join(str(memory["content"]).split())
    if memory.get("trust") == Trust.EVIDENCE or memory.get("instructs"):
        text = f"{memory.get('source', 'somebody')} noted: “{text.translate(INNER_QUOTES)}”"
    head = f"- [{shown.short(memory['id'])} · {memory['kind']} · {age(memory['occurred_at'], now)}]"
    return f"{head} {text}{_notes(memory, shown)}"


def render_memories(memories: Iterable[Mapping[str, Any]], shown: ShownIds, none: str, now: datetime) -> str:
    """Render memories, or say that there is none."""
    return "\n".join(render_memory(memory, shown, now) for memory in memories) or none


def render_goal(goal: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a goal in one line."""
    due = f", due {goal['due_at'][:10]} ({age(goal['due_at'], now)})" if goal["due_at"] else ""
    title = " ".join(goal["title"].split())
    return f"- [{shown.short(goal['id'])} · {goal['status']} · {goal['progress']:.0%}{due}] {title}"


def render_fact(fact: Mapping[str, Any]) -> str:
    """Render a value and the time in which it holds."""
    until = f" until {fact['valid_to']}" if fact.get("valid_to") else ""
    value = json.dumps(fact["value"], ensure_ascii=False)
    if fact.get("trust") == Trust.EVIDENCE:
        value = f"{value} (as {fact.get('source', 'somebody')} noted)"
    return f"- {fact['subject']} {fact['attribute']} = {value}, since {fact['valid_from']}{until}"


def render_json(value: Any) -> str:
    """Render an answer as JSON without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def render_section(title: str, found: Sequence[str]) -> list[str]:
    """Return lines under a title, nothing where there are none."""
    return [f"{title}:", *found] if found else []


def _notes(memory: Mapping[str, Any], shown: ShownIds) -> str:
    notes = []
    if memory.get("stale"):
        notes.append("stale")
    if memory.get("contradicted_by"):
        notes.append("contradicted by " + ", ".join(f"[{shown.short(other)}]" for other in memory["contradicted_by"]))
    if memory.get("surface_id"):
        notes.append(f"surface {memory['surface_id']}")
    return f" ({'; '.join(notes)})" if notes else ""
