"""The registry of stages: what runs on a written memory, and what each needs."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pipeline.records import Stage, WorkItem

# What a stage queues for the memories that it is done with.
FOLLOWING: Mapping[Stage, Stage] = {Stage.EMBED: Stage.DEDUP}


class StageRunner(Protocol):
    """One stage of one workspace."""

    def load(self) -> None:
        """Load what the stage needs; done before anything is claimed, so that no lease waits for a model."""

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Digest claimed items and complete those that the owner still holds, each at most once."""


StageRegistry = Mapping[Stage, StageRunner]
