"""Which memories may be shown to an agent without a request, and which ones it has seen."""

import hashlib
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Final

from pipeline.context.lesson_records import Usefulness, is_rule, with_records
from pipeline.kinds import render_text
from pipeline.records import Memory
from pipeline.records.hooks import AgentSession
from pipeline.store import agent_sessions

SHOWN_EACH: Final = 5


def list_shown_unasked(candidates: Iterable[Memory]) -> list[Memory]:
    """Return the memories that may be shown without a request."""
    return [memory for memory in candidates if memory.may_be_injected]


def drop_seen(db: Connection, session: AgentSession, candidates: Sequence[Memory]) -> list[Memory]:
    """Return the memories whose current version the agent has not seen in its session."""
    if session.id is None or not candidates:
        return list(candidates)
    seen = agent_sessions.list_seen_versions(
        db, session.id, session.agent_id or "", [memory.seq for memory in candidates]
    )
    return [memory for memory in candidates if seen.get(memory.seq) != version_of(memory)]


def version_of(memory: Memory) -> str:
    """Return a fingerprint of the text of a memory as an agent reads it."""
    return hashlib.sha256(render_text(memory).encode()).hexdigest()[:16]


def drop_dead(db: Connection, candidates: Sequence[Memory]) -> list[Memory]:
    """Drop the lessons that agents never follow."""
    records = with_records(db, [memory for memory in candidates if is_rule(memory)])
    dead = {record.memory.seq for record in records if record.usefulness is Usefulness.DEAD}
    return [memory for memory in candidates if memory.seq not in dead]


def once(candidates: Iterable[Memory]) -> list[Memory]:
    """Return distinct memories in their order."""
    return list({memory.seq: memory for memory in candidates}.values())
