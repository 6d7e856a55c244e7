"""Embed what is pending in a workspace now, on a GPU if there is one."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.digest.embed import EmbedStage
from pipeline.digest.embed_turns import EmbedTurnsStage
from pipeline.digest.stage_loop import DigestPolicy, StageRegistry, StageRunner, digest
from pipeline.enums import Device
from pipeline.jobs.context import JobContext
from pipeline.records import Stage

if TYPE_CHECKING:
    from pipeline.index.gpu_encoder import GpuEncoders

# Enough to fill a GPU's batches; a worker claims fewer, to share with others.
ITEMS_PER_BATCH = 512


@dataclass(frozen=True, slots=True)
class Embedded:
    """The numbers of memories and turns that were embedded, and of those that failed."""

    memories: int = 0
    turns: int = 0
    failed: int = 0

    def __add__(self, other: "Embedded") -> "Embedded":
        """Return the sums."""
        return Embedded(self.memories + other.memories, self.turns + other.turns, self.failed + other.failed)


class BulkEmbedding:
    """Embed pending memories and turns on a device. On the CPU, the compiled encoder is faster than torch."""

    def __init__(self, requested: Device) -> None:
        # Loads torch.
        from pipeline.index.gpu_encoder import GpuEncoders, choose_device

        self.device = choose_device(requested)
        self._encoders = None if self.device is Device.CPU else GpuEncoders(self.device)

    def run(self, context: JobContext, stages: StageRegistry, owner: str, policy: DigestPolicy) -> Embedded:
        """Embed what is pending in a workspace; workers may embed at the same time.

        Raises EncoderUnavailable if the GPU fails; what it had claimed is then pending again.
        """
        memories, failed = self._embed(context, stages, Stage.EMBED, owner, policy)
        turns, failed_turns = self._embed(context, stages, Stage.EMBED_TURNS, owner, policy)
        return Embedded(memories, turns, failed + failed_turns)

    def _embed(
        self, context: JobContext, stages: StageRegistry, stage: Stage, owner: str, policy: DigestPolicy
    ) -> tuple[int, int]:
        """Process a stage until nothing is due; return the numbers of embedded and of failed items."""
        runner, failures = stages[stage], 0
        if self._encoders is not None:
            runner, policy = use_encoders(runner, self._encoders), replace(policy, batch=ITEMS_PER_BATCH)

        def log_failure(problem: str) -> None:
            nonlocal failures
            failures += 1
            context.log_problem(f"digest.{stage}", problem)

        report = digest(context.database, stage, runner, owner, policy, log_failure, math.inf)
        return report.claimed - failures, failures


def use_encoders(runner: StageRunner, encoders: "GpuEncoders") -> StageRunner:
    """Return an embedding stage that encodes on a GPU."""
    assert isinstance(runner, EmbedStage | EmbedTurnsStage)
    find_compiled = runner.encoder
    return replace(runner, encoder=lambda: encoders.get(find_compiled()))
