"""What the optional model gets about a turn besides its message: tool calls, and memories that it may concern.

Both are bounded, and contain nothing that is private or commands its reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.records import Filter, Memory, Viewer
from pipeline.kernel.records.people import owner_of, personal_scope
from pipeline.kernel.store import agent_sessions, edges, memories, turns
from pipeline.kernel.store.agent_sessions import Action
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.turns import Turn
from pipeline.text.normalize import shorten
from pipeline.text.tokens import search_tokens

MAX_CALLS = 12
MAX_CALL_CHARS = 160
MAX_MEMORIES = 12
MAX_MEMORY_CHARS = 200
# The newest memories and actions among which to choose.
LOOKED_AT = 300


@dataclass(frozen=True, slots=True)
class ModelContext:
    """The last tool calls before and after a message, and the active memories that it may concern."""

    calls: Sequence[Action] = ()
    manifest: Sequence[Memory] = ()

    def as_fields(self) -> dict[str, Any]:
        """Return the context as fields of a prompt."""
        return {
            "tool_calls": [summarize_call(call) for call in self.calls],
            "memories": [
                {"id": memory.id, "text": shorten(memory.content, MAX_MEMORY_CHARS)} for memory in self.manifest
            ],
        }

    def find_id(self, memory_id: str | None) -> str | None:
        """Return an ID that the model names if it is one of the context."""
        return memory_id if any(memory.id == memory_id for memory in self.manifest) else None


def summarize_call(call: Action) -> str:
    """Return a tool call in one line: its type, its target, and whether it failed."""
    failure = "" if call.ok else f" (failed{f': {call.error}' if call.error else ''})"
    return shorten(f"{call.type} {call.target}{failure}", MAX_CALL_CHARS)


def read_context(database: Database, person: Database | None, turn: Turn, message: str) -> ModelContext:
    """Read the context of a turn from its workspace and, if given, from its person's store."""
    who = owner_of(turn.session_id)
    viewer = Viewer(person=who, session=turn.session_id, only_normal=True)
    with database.read() as db:
        calls = _list_calls(db, turn)
        known = list_open(db, Filter(viewer=viewer, current=True))
    if person is not None:
        with person.read() as db:
            known += list_open(db, Filter(scope=personal_scope(who), viewer=viewer, current=True))
    return ModelContext(calls, choose_related(known, message))


def list_open(db: Connection, criteria: Filter) -> list[Memory]:
    """List the newest memories that a new one may replace, without those of sessions that are incognito by now."""
    newest = memories.page(db, criteria, LOOKED_AT, None)
    return [memory for memory in edges.list_open_to_edges(db, [memory.seq for memory in newest]) if not memory.pinned]


def choose_related(known: Sequence[Memory], text: str) -> list[Memory]:
    """Return the memories that share most words with a text, none that shares no word."""
    words = set(search_tokens(text))
    shared = [(len(words & set(search_tokens(memory.content))), memory) for memory in known if memory.may_be_injected]
    related = sorted(
        (pair for pair in shared if pair[0]), key=lambda pair: (pair[0], pair[1].occurred_at), reverse=True
    )
    return [memory for _, memory in related[:MAX_MEMORIES]]


def _list_calls(db: Connection, turn: Turn) -> list[Action]:
    """Return the last tool calls between the person's messages before and after a turn."""
    since, until = turns.find_times_around(db, turn)
    calls = agent_sessions.list_actions(db, turn.session_id, since, LOOKED_AT)
    return [call for call in calls if call.at < until][-MAX_CALLS:]
