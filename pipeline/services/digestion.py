"""Digestion: a turn of one stage over one workspace."""

import time
from dataclasses import dataclass
from functools import partial

from pipeline.digest.digest import DigestPolicy, StageRunner, digest
from pipeline.jobs.context import JobContext
from pipeline.records import Stage

# A worker turns to other workspaces after this long; what is left is asked for again.
TURN_S = 10.0


@dataclass(frozen=True, slots=True)
class DigestTurn:
    """What follows a turn: whether the stage goes on at once, or when it may, and which jobs are needed."""

    more: bool = False
    retry_in_s: float | None = None
    jobs: tuple[str, ...] = ()


def digest_stage(
    context: JobContext, stage: Stage, runner: StageRunner, owner: str, policy: DigestPolicy
) -> DigestTurn:
    """Work off one stage of a workspace for a turn; what goes wrong with a memory is logged and tried again."""
    log = partial(context.log_problem, f"digest.{stage}")
    report = digest(context.database, stage, runner, owner, policy, log, until=time.monotonic() + TURN_S)
    if report.more:
        return DigestTurn(more=True)
    return DigestTurn(retry_in_s=report.retry_in_s, jobs=tuple(context.list_needed_jobs()) if report.claimed else ())
