"""Embed what is pending in a workspace now."""

import math
from dataclasses import dataclass

from pipeline.digest.stage_loop import DigestPolicy, StageRegistry, digest
from pipeline.jobs.context import JobContext
from pipeline.records import Stage


@dataclass(frozen=True, slots=True)
class Embedded:
    """The numbers of memories and turns that were embedded, and of those that failed."""

    memories: int = 0
    turns: int = 0
    failed: int = 0


def embed_pending(context: JobContext, stages: StageRegistry, owner: str, policy: DigestPolicy) -> Embedded:
    """Embed what is pending in a workspace; workers may embed at the same time."""
    problems: list[str] = []

    def log_failure(problem: str) -> None:
        problems.append(problem)
        context.log_problem("embed", problem)

    memories, turns = (
        digest(context.database, stage, stages[stage], owner, policy, log_failure, math.inf).claimed
        for stage in (Stage.EMBED, Stage.EMBED_TURNS)
    )
    return Embedded(memories, turns, len(problems))
