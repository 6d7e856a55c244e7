"""The plan of a simulated year: what is written on which day, what of it matters, and when that is recalled."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from benchmarks.company import company
from benchmarks.corpus import memories
from pipeline.kernel.records import Draft, FactKey, Kind, Source
from pipeline.kernel.times import parse, utc_text
from pipeline.write.prepare import Prepared, prepare, prepare_fact

DAYS = 365
# Nights begin at three; long past, so that a fact that holds from a simulated day on holds on the real one.
FIRST_DAY = datetime(2024, 6, 3, 3, tzinfo=UTC)
# Most of what an agent notes down is what it just did: so much of each kind is that instead.
BECOMES_CHATTER = {"decision": 0.5, "lesson": 0.5, "milestone": 0.5, "document": 0.5, "goal": 0.3}
CHATTER = ("activity", "activity", "activity", "episode")
DONE_GOALS = 0.6
MATTERING_KINDS = frozenset({Kind.FACT, Kind.DECISION, Kind.LESSON, Kind.CODE, Kind.QA})
MATTERS, PINNED = 0.08, 0.003
RECALLED_EVERY_DAYS = 25.0
KEYS_PER_MEMORY, VALUE_LASTS_DAYS = 1 / 500, 45.0


@dataclass(frozen=True, slots=True)
class Planned:
    """A memory on its day; `recalls` are the days on which somebody asks for it."""

    day: float
    prepared: Prepared
    body: Mapping[str, Any]
    pinned: bool = False
    matters: bool = False
    recalls: tuple[float, ...] = ()

    @property
    def id(self) -> str:
        """Return the memory's id."""
        return self.prepared.memory.id


def moment(day: float) -> datetime:
    """Return the time so many days after the first one."""
    return FIRST_DAY + timedelta(days=day)


def plan(count: int, seed: int) -> list[Planned]:
    """Plan a year of so many memories, in the order of their days; the same seed gives the same texts and days."""
    chance = random.Random(seed)
    facts = _facts(chance, round(count * KEYS_PER_MEMORY) or 1)
    return sorted([*_notes(chance, count - len(facts), seed), *facts], key=lambda planned: planned.day)


def _notes(chance: random.Random, count: int, seed: int) -> list[Planned]:
    bodies = list(memories(count, seed))
    planned = []
    for _, group in groupby(bodies, key=lambda body: body["session_id"]):
        session = list(group)
        # Before and after lunch, on days that have nothing to do with each other.
        middle = (len(session) + 1) // 2
        for half, part in enumerate((session[:middle], session[middle:])):
            if part:
                begins = chance.randrange(DAYS) + chance.uniform(0.2, 0.6)
                planned += _session(chance, part, f"{part[0]['session_id']}-{half}", begins)
    return planned


def _session(
    chance: random.Random, bodies: Sequence[Mapping[str, Any]], session_id: str, begins: float
) -> list[Planned]:
    first = parse(bodies[0]["occurred_at"])
    planned = []
    for body in bodies:
        day = begins + (parse(body["occurred_at"]) - first) / timedelta(days=1)
        kind = Kind(body["kind"])
        if chance.random() < BECOMES_CHATTER.get(kind, 0):
            kind = Kind(chance.choice(CHATTER))
        details = {"status": "done"} if kind is Kind.GOAL and chance.random() < DONE_GOALS else {}
        draft = Draft(
            body["content"],
            kind,
            session_id=session_id,
            source=Source(body["source"]),
            occurred_at=utc_text(moment(day)),
            details=details,
        )
        matters = kind in MATTERING_KINDS and chance.random() < MATTERS
        recalls = _recalls(chance, day) if matters else ()
        pinned = chance.random() < PINNED
        told = {"content": body["content"], "session_id": session_id}
        planned.append(Planned(day, _as_of(prepare(draft), day), told, pinned, matters, recalls))
    return planned


def _recalls(chance: random.Random, day: float) -> tuple[float, ...]:
    found = []
    while (day := day + chance.expovariate(1 / RECALLED_EVERY_DAYS)) < DAYS:
        found.append(day)
    return tuple(found)


def _facts(chance: random.Random, keys: int) -> list[Planned]:
    planned = []
    for subject in company().hosts.some(chance, keys):
        day = chance.uniform(0, 60)
        while day < DAYS:
            draft = Draft("-", occurred_at=utc_text(moment(day)))
            prepared = prepare_fact(FactKey(subject.replace("-", "_"), "port"), chance.randint(1025, 9999), draft)
            planned.append(
                Planned(day, _as_of(prepared, day), {"content": prepared.memory.content, "session_id": None})
            )
            day += chance.expovariate(1 / VALUE_LASTS_DAYS)
    return planned


def _as_of(prepared: Prepared, day: float) -> Prepared:
    return replace(prepared, memory=replace(prepared.memory, created_at=utc_text(moment(day))))
