"""Snapshots of workspaces, in local files or on object storage, and of the people of a data directory."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from config.paths import HomePaths
from config.settings import Settings
from pipeline.features.snapshots import job as local_snapshots, people_job as people_snapshot
from pipeline.features.snapshots.job import ProblemSink, Restored
from pipeline.features.snapshots.shared import Content, find_shared_snapshots, shared_snapshots
from pipeline.index.storage import open_storage
from pipeline.kernel.errors import StorageUnreachable, StoreDamaged
from pipeline.kernel.store import backup
from pipeline.kernel.store.backup import Snapshot
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.objects import ObjectStorage
from pipeline.kernel.store.stores import open_stores

# A monitor asks for every workspace every few seconds, but snapshots are taken only once a night.
KEPT_S = 60.0
# Maximum seconds that a metrics request or a page waits for storage.
WAITED_S = 2.0


def takes_snapshots(settings: Settings) -> bool:
    """Return whether snapshots are taken: for a store on a server, only with object storage."""
    return bool(settings.vectors) or not settings.store.reveal()


def find_snapshots(settings: Settings, workspace_id: str, objects: ObjectStorage | None) -> list[Snapshot]:
    """Find the local or shared snapshots of a workspace, newest first; raise StorageUnreachable."""
    if not takes_snapshots(settings):
        return []
    paths = settings.paths.workspace(workspace_id)
    shared = shared_snapshots(settings, paths, None, objects)
    return backup.snapshots(paths.snapshots) if shared is None else shared.find()


class KeptSnapshots:
    """Find snapshots for frequent requests; on object storage, list those of all workspaces at once.

    Results and failures are cached for a while, so that not every caller waits.
    """

    def __init__(self, settings: Settings, objects: ObjectStorage | None) -> None:
        self._settings = settings
        self._objects = objects if settings.store.reveal() else None
        self._lock = threading.Lock()
        self._listing: Future[dict[str, list[Snapshot]]] | None = None
        self._began = 0.0

    def find(self, workspace_id: str) -> list[Snapshot]:
        """Find the local or shared snapshots of a workspace, newest first; raise StorageUnreachable."""
        if self._objects is None:
            return find_snapshots(self._settings, workspace_id, None)
        return self._read(self._objects).get(workspace_id, [])

    def measure_age_s(self, workspace_id: str) -> float | None:
        """Return the seconds since the newest snapshot was taken, None if there is none."""
        snapshots = self.find(workspace_id)
        return max(0.0, (datetime.now(UTC) - snapshots[0].at).total_seconds()) if snapshots else None

    def _read(self, objects: ObjectStorage) -> dict[str, list[Snapshot]]:
        with self._lock:
            now = time.monotonic()
            if self._listing is None or (self._listing.done() and now - self._began >= KEPT_S):
                self._listing, self._began = Future(), now
                # A daemon thread, so that the process can exit while storage does not answer.
                threading.Thread(target=_list, args=(objects, self._listing), name="snapshots", daemon=True).start()
            listing, left_s = self._listing, self._began + WAITED_S - now
        try:
            return listing.result(max(0.0, left_s))
        except TimeoutError as error:
            raise StorageUnreachable(f"{objects.url} does not answer in time") from error


def _list(objects: ObjectStorage, listing: "Future[dict[str, list[Snapshot]]]") -> None:
    try:
        listing.set_result(find_shared_snapshots(objects))
    except Exception as error:  # noqa: BLE001 - raised where the result is asked for
        listing.set_exception(error)


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """A snapshot with its number of memories or people, or the `problem` why it cannot be read."""

    name: str
    taken: str
    at: datetime
    count: int | None
    bytes: int
    problem: str | None = None


def list_snapshots(settings: Settings, workspace_id: str) -> list[SnapshotSummary]:
    """List the snapshots of a workspace, newest first."""
    paths = settings.paths.workspace(workspace_id)
    shared = shared_snapshots(settings, paths, None, open_storage(settings))
    if shared is None:
        return [_summarize(snapshot, backup.count_memories) for snapshot in backup.snapshots(paths.snapshots)]
    return [_summarize_shared(snapshot, content) for snapshot, content in shared.list()]


def take_snapshot(settings: Settings, workspace_id: str) -> SnapshotSummary:
    """Take a snapshot now without blocking writers; raise NotFound for an unknown workspace."""
    paths, objects = settings.paths.workspace(workspace_id), open_storage(settings)
    with closing(open_stores(settings, WriterProfile("NORMAL", 0), str)) as stores:
        shared = None
        if settings.store.reveal():
            shared = shared_snapshots(settings, paths, database := stores.databases.get(workspace_id), objects)
        if shared is None:
            return _summarize(local_snapshots.take_snapshot(paths, datetime.now(UTC)), backup.count_memories)
        taken = shared.take(database, datetime.now(UTC))
        return next(
            _summarize_shared(*listed) for listed in shared.list() if taken is not None and listed[0].name == taken.name
        )


def restore_snapshot(settings: Settings, workspace_id: str, name: str, on_problem: ProblemSink) -> Restored:
    """Replace the store with a snapshot; the caller stops all processes of the workspace before."""
    paths = settings.paths.workspace(workspace_id)
    shared = shared_snapshots(settings, paths, None, open_storage(settings))
    if shared is None:
        return local_snapshots.restore_snapshot(paths, name, datetime.now(UTC), on_problem)
    return shared.restore(name, datetime.now(UTC), on_problem)


def list_people_snapshots(paths: HomePaths) -> list[SnapshotSummary]:
    """List the snapshots of the people of a data directory, newest first."""
    return [_summarize(snapshot, people_snapshot.count_people) for snapshot in backup.snapshots(paths.snapshots)]


def take_people_snapshot(paths: HomePaths) -> SnapshotSummary:
    """Take a snapshot of the people now without blocking writers; raise NotFound if there are none."""
    taken = people_snapshot.take_people_snapshot(paths, datetime.now(UTC))
    return _summarize(taken, people_snapshot.count_people)


def restore_people(paths: HomePaths, name: str, on_problem: ProblemSink) -> tuple[SnapshotSummary, str | None]:
    """Replace the people of a data directory with a snapshot; return it and the name of the snapshot of those before.

    Removed people and revoked tokens stay removed and revoked. The caller stops all processes of the data directory.
    """
    chosen, aside = people_snapshot.restore_people(paths, name, datetime.now(UTC), on_problem)
    return _summarize(chosen, people_snapshot.count_people), aside


def _summarize(snapshot: Snapshot, count_rows: Callable[[Path], int]) -> SnapshotSummary:
    count, problem = None, None
    try:
        count = count_rows(snapshot.file)
    except StoreDamaged as error:
        problem = str(error)
    return SnapshotSummary(snapshot.name, snapshot.taken, snapshot.at, count, snapshot.file.stat().st_size, problem)


def _summarize_shared(snapshot: Snapshot, content: Content | None) -> SnapshotSummary:
    memories, size = (None, 0) if content is None else (content.memories, content.bytes)
    return SnapshotSummary(snapshot.name, snapshot.taken, snapshot.at, memories, size)
