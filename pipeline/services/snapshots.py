"""Snapshots of a workspace for who works on a home by itself: files of the home, or on object storage."""

from contextlib import closing
from datetime import UTC, datetime

from config.settings import Settings
from pipeline.jobs.shared_snapshots import Content
from pipeline.jobs.snapshot import ProblemSink, Restored
from pipeline.services import maintenance
from pipeline.services.maintenance import SnapshotSummary
from pipeline.services.storage import open_storage, shared_snapshots
from pipeline.store.backup import Snapshot
from pipeline.store.database import WriterProfile
from pipeline.store.stores import open_stores


def list_snapshots(settings: Settings, workspace_id: str) -> list[SnapshotSummary]:
    """List the snapshots of a workspace, newest first."""
    paths = settings.paths.workspace(workspace_id)
    shared = shared_snapshots(settings, paths, None, open_storage(settings))
    if shared is None:
        return maintenance.list_snapshots(paths)
    return [_summarize(one, content) for one, content in shared.list()]


def take_snapshot(settings: Settings, workspace_id: str) -> SnapshotSummary:
    """Take a snapshot now, beside whatever writes; raise NotFound where there is no such workspace."""
    paths, objects = settings.paths.workspace(workspace_id), open_storage(settings)
    with closing(open_stores(settings, WriterProfile("NORMAL", 0, settings.busy_timeout_ms), str)) as stores:
        shared = None
        if settings.store.reveal():
            shared = shared_snapshots(settings, paths, database := stores.databases.get(workspace_id), objects)
        if shared is None:
            return maintenance.take_snapshot(paths)
        taken = shared.take(database, datetime.now(UTC))
        return next(_summarize(*one) for one in shared.list() if taken is not None and one[0].name == taken.name)


def restore_snapshot(settings: Settings, workspace_id: str, name: str, on_problem: ProblemSink) -> Restored:
    """Put a snapshot in the store's place; the caller sees to it that no process of the workspace runs."""
    paths = settings.paths.workspace(workspace_id)
    shared = shared_snapshots(settings, paths, None, open_storage(settings))
    if shared is None:
        return maintenance.restore_snapshot(paths, name, on_problem)
    return shared.restore(name, datetime.now(UTC), on_problem)


def _summarize(one: Snapshot, content: Content | None) -> SnapshotSummary:
    memories, size = (None, 0) if content is None else (content.memories, content.bytes)
    return SnapshotSummary(one.name, one.taken, one.at, memories, size)
