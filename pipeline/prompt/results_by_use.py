"""The results for a message by their use: lessons, decisions, facts, unfinished goals, and others."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.context.lesson_records import is_rule
from pipeline.records import Kind
from pipeline.records.recall import Hit
from pipeline.store import goals


@dataclass(frozen=True, slots=True)
class ResultsByUse:
    """The results for a message by type, best first; `goals` are the unfinished ones."""

    lessons: tuple[Hit, ...] = ()
    decisions: tuple[Hit, ...] = ()
    facts: tuple[Hit, ...] = ()
    goals: tuple[Hit, ...] = ()
    memories: tuple[Hit, ...] = ()

    def beside_lessons(self) -> list[Hit]:
        """Return everything but the lessons, best first."""
        others = (*self.decisions, *self.facts, *self.goals, *self.memories)
        return sorted(others, key=lambda hit: hit.score, reverse=True)


def sort_by_use(hits: Sequence[Hit]) -> ResultsByUse:
    """Return results by their use, each in their order."""
    lessons, decisions, facts, unfinished, others = [], [], [], [], []
    for hit in hits:
        if is_rule(hit.memory):
            lessons.append(hit)
        elif hit.memory.kind is Kind.DECISION:
            decisions.append(hit)
        elif hit.memory.kind is Kind.KEYED_FACT:
            facts.append(hit)
        elif hit.memory.kind is Kind.GOAL and hit.memory.details.get("status", "open") in goals.UNFINISHED:
            unfinished.append(hit)
        else:
            others.append(hit)
    return ResultsByUse(tuple(lessons), tuple(decisions), tuple(facts), tuple(unfinished), tuple(others))
