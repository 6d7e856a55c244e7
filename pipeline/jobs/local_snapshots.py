"""Snapshots in the data directory, each with the number of its memories."""

from dataclasses import dataclass
from datetime import UTC, datetime

from config.paths import WorkspacePaths
from pipeline.errors import StoreDamaged
from pipeline.jobs import snapshot
from pipeline.jobs.snapshot import ProblemSink, Restored
from pipeline.store import backup
from pipeline.store.backup import Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """A snapshot and what is in it, or by which `problem` that cannot be read."""

    name: str
    taken: str
    at: datetime
    memories: int | None
    bytes: int
    problem: str | None = None


def list_snapshots(paths: WorkspacePaths) -> list[SnapshotSummary]:
    """List the snapshots of a workspace, newest first."""
    return [_summarize(one) for one in backup.snapshots(paths.snapshots)]


def take_snapshot(paths: WorkspacePaths) -> SnapshotSummary:
    """Take a snapshot now, while others write; raise NotFound where there is no such workspace."""
    return _summarize(snapshot.take_snapshot(paths, datetime.now(UTC)))


def restore_snapshot(paths: WorkspacePaths, name: str, on_problem: ProblemSink) -> Restored:
    """Put a snapshot in the store's place; the caller sees to it that no process of the workspace runs."""
    return snapshot.restore_snapshot(paths, name, datetime.now(UTC), on_problem)


def _summarize(one: Snapshot) -> SnapshotSummary:
    memories, problem = None, None
    try:
        memories = backup.count_memories(one.file)
    except StoreDamaged as error:
        problem = str(error)
    return SnapshotSummary(one.name, one.taken, one.at, memories, one.file.stat().st_size, problem)
