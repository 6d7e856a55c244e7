"""Answers as lines for a model, in the form in which hooks show memories.

The form is shared on purpose: what an agent hands back in it is recognised as an echo.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from pipeline.context.quoting import ANYBODY, Speaker, find_speaker, flatten
from pipeline.errors import FieldError, InvalidField, NotFound
from pipeline.records import CUT, SHORT_ID
from pipeline.times import age

SHORT_CHARS = 280
WHOLE = 26
MOST = 10_000
# What is said to be from here, where teams are asked too.
OWN = "local"
# The scope of what has no owner.
NOBODYS = {"kind": "workspace", "id": None}

# What of a memory can be read beside its text, whoever filled it in, and what Reverie says of it itself.
_FIELDS = ("details", "tags", "metadata", "anchor", "branch", "session_id", "scope")
_STATE = (
    "source",
    "trust",
    "tier",
    "importance",
    "pinned",
    "candidate",
    "instructs",
    "created_at",
    "occurred_at",
    "updated_at",
    "archived_at",
    "valid_from",
    "valid_to",
    "expires_at",
    "sensitivity",
    "recall_count",
    "merge_count",
)


# What goes without saying.
_UNSAID = (None, False, 0, "normal")


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

    def whole(self, given: str) -> str:
        """Return the id that was shown as such an end, else what was given."""
        text = given.strip().strip("[]")
        with self._lock:
            return self._whole.get(text.upper(), text)

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
    """Return a memory or a hit with a short text."""
    text = str(memory["content"])
    return {**memory, "content": text if len(text) <= chars else text[: chars - 1].rstrip() + CUT}


def speaker_of(record: Mapping[str, Any]) -> Speaker:
    """Return who says the texts of a memory, a goal, a lesson or a fact; who is not known to be trusted is not."""
    source = str(record.get("source", "somebody"))
    # Whoever vouches for it on a team's server, here it is what others noted.
    trust = record.get("trust") if is_own(record) else None
    return find_speaker(source, trust, instructs=bool(record.get("instructs", True)))


def is_own(record: Mapping[str, Any]) -> bool:
    """Tell whether something is of this machine's own memory, not of a team's."""
    return record.get("from") in (None, OWN)


def render_memory(memory: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a memory in one line."""
    said = speaker_of(memory).say(str(memory["content"]))
    return f"{_head(memory, shown, now)} {said}{_notes(memory, shown)}"


def render_memories(memories: Iterable[Mapping[str, Any]], shown: ShownIds, none: str, now: datetime) -> str:
    """Render memories, or say that there is none."""
    return "\n".join(render_memory(memory, shown, now) for memory in memories) or none


def render_record(memory: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a memory whole: its text with its lines, its fields, edges and history."""
    speaker = speaker_of(memory)
    rows = [f"{_head(memory, shown, now)}{_notes(memory, shown)}", speaker.say_lines(str(memory["content"]))]
    fields = {name: memory[name] for name in _FIELDS if memory[name] and memory[name] != NOBODYS}
    # Who repeated the text later, and by that made it trusted, or added tags to it, need not have said the rest.
    merged = any(entry["event"] == "merged" for entry in memory["history"])
    rows += [f"{name}: {(ANYBODY if merged else speaker).say(value)}" for name, value in fields.items()]
    rows.append(", ".join(f"{name} {memory[name]}" for name in _STATE if memory[name] not in _UNSAID))
    if memory["edges"]:
        rows.append(f"edges: {render_edges(memory['edges'], shown)}")
    if memory["entities"]:
        rows.append(f"mentions: {ANYBODY.say([entity['name'] for entity in memory['entities']])}")
    if memory["chain"]:
        rows.append(f"because: {' → '.join(ANYBODY.say(one['content']) for one in memory['chain'])}")
    rows += [_render_change(entry, memory) for entry in memory["history"]]
    return "\n".join(rows)


def render_edges(edges: Iterable[Mapping[str, Any]], shown: ShownIds) -> str:
    """Render how a memory bears on others, and others on it."""
    return ", ".join(f"{edge['kind']} {edge['direction']} [{shown.short(edge['id'])}]" for edge in edges) or "none"


def render_goal(goal: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a goal in one line."""
    due = f", due {goal['due_at'][:10]} ({age(goal['due_at'], now)})" if goal["due_at"] else ""
    head = f"- [{shown.short(goal['id'])} · {goal['status']} · {goal['progress']:.0%}{due}]"
    return f"{head} {speaker_of(goal).say(goal['title'])}"


def render_fact(fact: Mapping[str, Any]) -> str:
    """Render a value and the time in which it holds."""
    until = f" until {fact['valid_to']}" if fact.get("valid_to") else ""
    said = speaker_of(fact).say(f"{fact['subject']} {fact['attribute']} = {flatten(fact['value'])}")
    return f"- {said}, since {fact['valid_from']}{until}"


def render_section(title: str, found: Sequence[str]) -> list[str]:
    """Return lines under a title, nothing where there are none."""
    return [f"{title}:", *found] if found else []


def _head(memory: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    team = "" if is_own(memory) else f" · team {memory['from']}"
    return f"- [{shown.short(memory['id'])} · {memory['kind']} · {age(memory['occurred_at'], now)}{team}]"


def _render_change(entry: Mapping[str, Any], memory: Mapping[str, Any]) -> str:
    """Render an earlier state; who vouches for a memory now need not have vouched for it then."""
    source = str(entry["detail"].get("source", memory["source"]))
    told = {"content": entry["content"]} if entry["content"] else {}
    return f"{entry['at']} {entry['event']}: {Speaker(source).say({**told, **entry['detail']})}"


def _notes(memory: Mapping[str, Any], shown: ShownIds) -> str:
    notes = []
    if memory.get("stale"):
        notes.append("stale")
    if memory.get("contradicted_by"):
        notes.append("contradicted by " + ", ".join(f"[{shown.short(other)}]" for other in memory["contradicted_by"]))
    if memory.get("superseded_by"):
        notes.append(f"superseded by [{shown.short(memory['superseded_by'])}]")
    if memory.get("surface_id"):
        notes.append(f"surface {memory['surface_id']}")
    return f" ({'; '.join(notes)})" if notes else ""
