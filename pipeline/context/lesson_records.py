"""Which memories an agent may be shown, and the record of a lesson: how often it was shown and followed."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection
from typing import Final

from pipeline.kinds import render_text
from pipeline.records import Kind, Memory, Trust
from pipeline.records.hooks import AgentSession
from pipeline.store import agent_sessions, impressions
from pipeline.store.impressions import Tally
from pipeline.write.fields import Severity

# Minimum number of answers for a conclusion.
ENOUGH = 5


# The author of answers from the journal.
BY_JOURNAL = "by the journal"


# Of the normal distribution, for 95 %.
Z = 1.959964


class Usefulness(StrEnum):
    """The usefulness of a lesson, from the answers to its impressions."""

    USEFUL = "useful"
    UNPROVEN = "unproven"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson and its record; `low` and `high` bound the share of times that it is followed."""

    memory: Memory
    tally: Tally
    low: float
    high: float
    usefulness: Usefulness


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson, "Probable Inference", JASA 22, 1927)."""
    if not trials:
        return 0.0, 1.0
    share, square = successes / trials, Z * Z
    centre = (share + square / (2 * trials)) / (1 + square / trials)
    half = Z / (1 + square / trials) * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


def usefulness(tally: Tally) -> Usefulness:
    """Return whether a record proves that agents mostly follow or mostly ignore the lesson, or nothing yet."""
    answered = tally.followed + tally.ignored
    low, high = wilson_interval(tally.followed, answered)
    if answered < ENOUGH or low <= 0.5 <= high:
        return Usefulness.UNPROVEN
    return Usefulness.USEFUL if low > 0.5 else Usefulness.DEAD


def with_records(db: Connection, lessons: Sequence[Memory]) -> list[Lesson]:
    """Return lessons with their records, in their order."""
    tallies = ((memory, impressions.tally(db, memory.seq)) for memory in lessons)
    return [
        Lesson(memory, tally, *wilson_interval(tally.followed, tally.followed + tally.ignored), usefulness(tally))
        for memory, tally in tallies
    ]


def describe_record(lesson: Lesson) -> str:
    """Return a lesson's record in a few words."""
    answered = lesson.tally.followed + lesson.tally.ignored
    return f"followed {lesson.tally.followed} of {answered}" if answered else "no record yet"


def is_rule(memory: Memory) -> bool:
    """Return whether a memory is a confirmed lesson."""
    # An unconfirmed lesson is evidence, not a rule.
    return memory.kind is Kind.LESSON and memory.trust is Trust.TRUSTED and not memory.instructs


def is_critical(lesson: Memory) -> bool:
    """Return whether a lesson is critical."""
    return lesson.details.get("severity") == Severity.CRITICAL


# Which memories may be shown without a request, and which ones an agent has seen

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
