"""Snapshots: of a workspace, wherever they lie, files of the home or on object storage; of who shares a home."""

import threading
import time
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

from config.paths import HomePaths
from config.settings import Settings
from pipeline.errors import StorageUnreachable, StoreDamaged
from pipeline.index.storage import open_storage
from pipeline.jobs import local_snapshots, people_snapshot
from pipeline.jobs.local_snapshots import SnapshotSummary
from pipeline.jobs.shared_snapshots import Content, find_shared_snapshots, shared_snapshots
from pipeline.jobs.snapshot import ProblemSink, Restored
from pipeline.store import backup, people_file
from pipeline.store.backup import Snapshot
from pipeline.store.database import WriterProfile
from pipeline.store.objects import ObjectStorage
from pipeline.store.stores import open_stores

# A monitor asks every few seconds, of every workspace; a snapshot is taken every night.
KEPT_S = 60.0
# Maximum seconds that a metrics request or a page waits for storage.
WAITED_S = 2.0


def takes_snapshots(settings: Settings) -> bool:
    """Return whether snapshots are taken at all: of a store on a server, only where object storage takes them."""
    return bool(settings.vectors) or not settings.store.reveal()


def find_snapshots(settings: Settings, workspace_id: str, objects: ObjectStorage | None) -> list[Snapshot]:
    """Find the snapshots of a workspace wherever they lie, newest first; raise StorageUnreachable."""
    if not takes_snapshots(settings):
        return []
    paths = settings.paths.workspace(workspace_id)
    shared = shared_snapshots(settings, paths, None, objects)
    return backup.snapshots(paths.snapshots) if shared is None else shared.find()


class KeptSnapshots:
    """Find snapshots for a server that is asked often: on object storage, those of all workspaces are listed at once.

    What was found is kept for a while, and so is that nothing could be: not every caller waits for it.
    """

    def __init__(self, settings: Settings, objects: ObjectStorage | None) -> None:
        self._settings = settings
        self._objects = objects if settings.store.reveal() else None
        self._lock = threading.Lock()
        self._listing: Future[dict[str, list[Snapshot]]] | None = None
        self._began = 0.0

    def find(self, workspace_id: str) -> list[Snapshot]:
        """Find the snapshots of a workspace wherever they lie, newest first; raise StorageUnreachable."""
        if self._objects is None:
            return find_snapshots(self._settings, workspace_id, None)
        return self._read(self._objects).get(workspace_id, [])

    def measure_age_s(self, workspace_id: str) -> float | None:
        """Return the seconds since the newest snapshot was taken, None where there is none."""
        snapshots = self.find(workspace_id)
        return max(0.0, (datetime.now(UTC) - snapshots[0].at).total_seconds()) if snapshots else None

    def _read(self, objects: ObjectStorage) -> dict[str, list[Snapshot]]:
        with self._lock:
            now = time.monotonic()
            if self._listing is None or (self._listing.done() and now - self._began >= KEPT_S):
                self._listing, self._began = Future(), now
                # A daemon: the process may end while storage does not answer.
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


def list_snapshots(settings: Settings, workspace_id: str) -> list[SnapshotSummary]:
    """List the snapshots of a workspace, newest first."""
    paths = settings.paths.workspace(workspace_id)
    shared = shared_snapshots(settings, paths, None, open_storage(settings))
    if shared is None:
        return local_snapshots.list_snapshots(paths)
    return [_summarize(snapshot, content) for snapshot, content in shared.list()]


def take_snapshot(settings: Settings, workspace_id: str) -> SnapshotSummary:
    """Take a snapshot now, while others write; raise NotFound where there is no such workspace."""
    paths, objects = settings.paths.workspace(workspace_id), open_storage(settings)
    with closing(open_stores(settings, WriterProfile("NORMAL", 0, settings.busy_timeout_ms), str)) as stores:
        shared = None
        if settings.store.reveal():
            shared = shared_snapshots(settings, paths, database := stores.databases.get(workspace_id), objects)
        if shared is None:
            return local_snapshots.take_snapshot(paths)
        taken = shared.take(database, datetime.now(UTC))
        return next(
            _summarize(*listed) for listed in shared.list() if taken is not None and listed[0].name == taken.name
        )


def restore_snapshot(settings: Settings, workspace_id: str, name: str, on_problem: ProblemSink) -> Restored:
    """Put a snapshot in the store's place; the caller sees to it that no process of the workspace runs."""
    paths = settings.paths.workspace(workspace_id)
    shared = shared_snapshots(settings, paths, None, open_storage(settings))
    if shared is None:
        return local_snapshots.restore_snapshot(paths, name, on_problem)
    return shared.restore(name, datetime.now(UTC), on_problem)


@dataclass(frozen=True, slots=True)
class PeopleSnapshot:
    """A copy of who shares a home: how many people are in it, or by which `problem` that cannot be read."""

    name: str
    taken: str
    at: datetime
    people: int | None
    bytes: int
    problem: str | None = None


def list_people_snapshots(paths: HomePaths) -> list[PeopleSnapshot]:
    """List the copies of who shares a home, newest first."""
    return [_summarize_people(snapshot) for snapshot in backup.snapshots(people_file.find_copies(paths.people))]


def take_people_snapshot(paths: HomePaths) -> PeopleSnapshot:
    """Take a snapshot of the people now, while others write; raise NotFound where there are none."""
    return _summarize_people(people_snapshot.take_people_snapshot(paths, datetime.now(UTC)))


def restore_people(paths: HomePaths, name: str, on_problem: ProblemSink) -> tuple[PeopleSnapshot, str | None]:
    """Put a copy in the place of who shares a home; return it, and by which name what was there before is kept.

    Who was removed, and each token that was revoked, stays so. The caller sees to it that nothing of the home runs.
    """
    chosen, aside = people_snapshot.restore_people(paths, name, datetime.now(UTC), on_problem)
    return _summarize_people(chosen), aside


def _summarize_people(snapshot: Snapshot) -> PeopleSnapshot:
    people, problem = None, None
    try:
        people = people_file.count_people(snapshot.file)
    except StoreDamaged as error:
        problem = str(error)
    return PeopleSnapshot(snapshot.name, snapshot.taken, snapshot.at, people, snapshot.file.stat().st_size, problem)


def _summarize(snapshot: Snapshot, content: Content | None) -> SnapshotSummary:
    memories, size = (None, 0) if content is None else (content.memories, content.bytes)
    return SnapshotSummary(snapshot.name, snapshot.taken, snapshot.at, memories, size)
