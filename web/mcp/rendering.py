"""Answers as lines for a model, in the same form as the output of hooks.

The form is shared on purpose: if an agent stores a line in this form, it is recognized as an echo.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from pipeline.kernel.errors import FieldError, InvalidField, NotFound
from pipeline.kernel.records import CUT, SHORT_ID, Outcome
from pipeline.kernel.times import age
from pipeline.text.quoting import ANYBODY, Speaker, find_speaker, flatten, quote
from web.http.receipt_text import describe_kept

SHORT_CHARS = 280
WHOLE = 26
MOST = 10_000
# The origin of this machine's memories if teams are asked too.
OWN = "local"
# The scope of memories without an owner.
NOBODYS = {"kind": "workspace", "id": None}

# Fields of a memory that an author fills, and fields that Reverie sets.
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


# Values that are not shown.
_UNSAID = (None, False, 0, "normal")


class ShownIds:
    """The full ids of shown memories by their ends; the least recently used ids are dropped."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._whole: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def short(self, whole: str) -> str:
        """Return the short form of an id, and remember the full id."""
        end = whole[-SHORT_ID:]
        with self._lock:
            known = self._whole.setdefault(end, whole)
            self._whole.move_to_end(end)
            if len(self._whole) > self._most:
                self._whole.popitem(last=False)
        return end if known == whole else whole

    def whole(self, shown_id: str) -> str:
        """Return the full id of a shown short id, else the given text."""
        text = shown_id.strip().strip("[]")
        with self._lock:
            return self._whole.get(text.upper(), text)

    def resolve_id(self, shown_id: str, name: str, ask: Callable[[str], str]) -> str:
        """Return the full id of a short id: one that was shown here, else the server's, because hooks show ids too.

        Raises InvalidField if no memory's id ends so.
        """
        text = shown_id.strip().strip("[]")
        if len(text) >= WHOLE:
            return text
        text = text.upper()
        with self._lock:
            memory_id = self._whole.get(text[-SHORT_ID:]) if len(text) >= SHORT_ID else None
        if memory_id is None and len(text) == SHORT_ID and text.isalnum():
            with suppress(NotFound):
                memory_id = ask(text)
        if memory_id is None or not memory_id.endswith(text):
            raise InvalidField(FieldError(name, "is not the id of a memory; use an id from recall or prepare"))
        return memory_id


def shorten(memory: Mapping[str, Any], chars: int = SHORT_CHARS) -> dict[str, Any]:
    """Return a memory or a hit with a shortened text."""
    text = str(memory["content"])
    return {**memory, "content": text if len(text) <= chars else text[: chars - 1].rstrip() + CUT}


def speaker_of(record: Mapping[str, Any]) -> Speaker:
    """Return the speaker of a memory, a goal, a lesson or a fact; an unknown source is not trusted."""
    source = str(record.get("source", "somebody"))
    # Trust on a team's server does not apply here: these are notes of other people.
    trust, said_by = (record.get("trust"), record.get("said_by")) if is_own(record) else (None, None)
    return find_speaker(source, trust, instructs=bool(record.get("instructs", True)), said_by=said_by)


def is_own(record: Mapping[str, Any]) -> bool:
    """Return whether a record is in this machine's memory, not in a team's."""
    return record.get("from") in (None, OWN)


def render_memory(memory: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a memory in one line."""
    quoted = speaker_of(memory).say(str(memory["content"]))
    return f"{_head(memory, shown, now)} {quoted}{_notes(memory, shown)}"


def render_session(session: Mapping[str, Any], now: datetime) -> str:
    """Render a session that a search found, with its quote, in one line."""
    names = [
        f"session {quote(session['session_id'])}",
        *map(quote, filter(None, [session["agent"]])),
        age(session["at"], now),
    ]
    speaker = Speaker("the user" if session["role"] == "user" else str(session["role"]), verb="said")
    return f"- [{' · '.join(names)}] {speaker.say(session['quote'])}"


def render_memories(memories: Iterable[Mapping[str, Any]], shown: ShownIds, none: str, now: datetime) -> str:
    """Render memories, or return the text for none."""
    return "\n".join(render_memory(memory, shown, now) for memory in memories) or none


def render_record(memory: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a full memory: its text with all lines, its fields, edges and history."""
    speaker = speaker_of(memory)
    rows = [f"{_head(memory, shown, now)}{_notes(memory, shown)}", speaker.say_lines(str(memory["content"]))]
    fields = {name: memory[name] for name in _FIELDS if memory[name] and memory[name] != NOBODYS}
    # After a merge, the trusted source of the text need not be the source of the other fields.
    merged = any(entry["event"] == "merged" for entry in memory["history"])
    rows += [f"{name}: {(ANYBODY if merged else speaker).say(value)}" for name, value in fields.items()]
    rows.append(", ".join(f"{name} {memory[name]}" for name in _STATE if memory[name] not in _UNSAID))
    if memory["edges"]:
        rows.append(f"edges: {render_edges(memory['edges'], shown)}")
    if memory["entities"]:
        rows.append(f"mentions: {ANYBODY.say([entity['name'] for entity in memory['entities']])}")
    if memory["chain"]:
        rows.append(f"because: {' → '.join(ANYBODY.say(cause['content']) for cause in memory['chain'])}")
    rows += [_render_change(entry, memory) for entry in memory["history"]]
    return "\n".join(rows)


def render_edges(edges: Iterable[Mapping[str, Any]], shown: ShownIds) -> str:
    """Render the edges of a memory."""
    return ", ".join(f"{edge['kind']} {edge['direction']} [{shown.short(edge['id'])}]" for edge in edges) or "none"


def render_section(title: str, lines: Sequence[str]) -> list[str]:
    """Return lines under a title, no title without lines."""
    return [f"{title}:", *lines] if lines else []


def _head(memory: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    team = "" if is_own(memory) else f" · team {memory['from']}"
    return f"- [{shown.short(memory['id'])} · {memory['kind']} · {age(memory['occurred_at'], now)}{team}]"


def _render_change(entry: Mapping[str, Any], memory: Mapping[str, Any]) -> str:
    """Render an earlier state by its own source, because today's trust need not have applied then."""
    source = str(entry["detail"].get("source", memory["source"]))
    content = {"content": entry["content"]} if entry["content"] else {}
    return f"{entry['at']} {entry['event']}: {Speaker(source).say({**content, **entry['detail']})}"


def _notes(memory: Mapping[str, Any], shown: ShownIds) -> str:
    notes = []
    if memory.get("stale"):
        notes.append("stale")
    notes += memory.get("broken", ())
    if memory.get("contradicted_by"):
        notes.append("contradicted by " + ", ".join(f"[{shown.short(other)}]" for other in memory["contradicted_by"]))
    if memory.get("superseded_by"):
        notes.append(f"superseded by [{shown.short(memory['superseded_by'])}]")
    if memory.get("surface_id"):
        notes.append(f"surface {memory['surface_id']}")
    return f" ({'; '.join(notes)})" if notes else ""


def render_outcome(shown_ids: ShownIds, receipt: Mapping[str, Any]) -> str:
    """Render the receipt of a write in one line."""
    # A rejected write has no memory to read.
    is_stored = receipt["outcome"] != Outcome.REJECTED
    shown = f" [{shown_ids.short(receipt.get('duplicate_of') or receipt['id'])}]" if is_stored else ""
    renamed = ", ".join(f"{tag} as {stored}" for tag, stored in (receipt.get("renamed_tags") or {}).items())
    reason = f": {explain_reason(receipt['reason'])}" if receipt.get("reason") else ""
    tags = f"; tags stored: {flatten(renamed)}" if renamed else ""
    return f"{receipt['outcome']}{shown}{reason}{describe_kept(receipt)}{tags}"


def explain_reason(reason: str) -> str:
    """Return why a memory was not stored, with what an agent should do."""
    wants_nothing = "incognito. Your user does not want this session or message to be stored; do not retry."
    return wants_nothing if reason == "incognito" else reason
