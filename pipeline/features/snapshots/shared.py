"""Snapshots of a workspace whose store is on a database server: SQLite files on object storage, as in a data directory.

Any machine with the lease can take them, remove purged memories from them, and restore one. A list of their contents is
stored with them, so that listing does not download them.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from config.paths import WorkspacePaths
from config.settings import Settings
from pipeline.features.snapshots.job import (
    ProblemSink,
    Restored,
    choose_snapshot,
    find_outdated_snapshots,
    prepare_copy,
    scrub_copy,
)
from pipeline.kernel.errors import NO_WORKSPACE, NotFound
from pipeline.kernel.store import backup, changes, driver, leases, turns
from pipeline.kernel.store.backup import Snapshot, Taken
from pipeline.kernel.store.copying import SqliteTables, copy, fingerprint
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.log_start import install_triggers
from pipeline.kernel.store.migrations import MIGRATIONS, writing_new_file
from pipeline.kernel.store.moves import HomeFiles, Part, StoreLocation
from pipeline.kernel.store.objects import ObjectStorage

CONTENTS = "contents.json"


@dataclass(frozen=True, slots=True)
class Content:
    """Contents of a snapshot: number of memories, size in bytes, and the last change of the store at that time."""

    memories: int
    bytes: int
    change: str | None


class SharedSnapshots:
    """The snapshots of one workspace; `place` opens the store to copy from or to, `lease` excludes other machines."""

    def __init__(
        self,
        objects: ObjectStorage,
        workspace_id: str,
        place: Callable[[], AbstractContextManager[StoreLocation]],
        lease: Callable[[], AbstractContextManager[object]],
        indexes: Callable[[], object] = lambda: None,
    ) -> None:
        self._objects = objects
        self._part = Part(workspace_id)
        self._place = place
        self._lease = lease
        self._clear_indexes = indexes

    def find(self) -> list[Snapshot]:
        """List the snapshots, newest first, without their contents."""
        return backup.parse_names(Path(key) for key in self._objects.list())

    def list(self) -> list[tuple[Snapshot, Content | None]]:
        """List the snapshots, newest first, with their contents if known."""
        known = self._read_contents()
        return [(snapshot, known.get(snapshot.file.name)) for snapshot in self.find()]

    def take(self, database: Database, now: datetime, *, anew: bool = True) -> Snapshot | None:
        """Take a snapshot and delete outdated ones; return it, or None if `anew` is false and nothing changed."""
        with self._lease():
            before = self.list()
            with database.read() as db:
                change = changes.last_stamp(db)
            newest = next((content for snapshot, content in before if snapshot.taken is Taken.DAILY), None)
            if not anew and newest is not None and newest.change == change:
                taken = None
            else:
                taken = self._take(now, Taken.DAILY, change)
            for snapshot in find_outdated_snapshots([snapshot for snapshot, _ in self.list()], now):
                self._remove(snapshot)
        return taken

    def scrub(self, database: Database, on_problem: ProblemSink) -> int:
        """Remove every purged memory from every snapshot; return the number of snapshots that contained one."""
        with database.read() as db:
            purged = backup.list_purged(db)
        if not purged:
            return 0
        with self._lease():
            before = self.list()
            reached = self._revise(lambda snapshot: scrub_copy(snapshot, purged, on_problem))
            if before and not self.list():
                with database.read() as db:
                    change = changes.last_stamp(db)
                self._take(datetime.now(UTC), Taken.DAILY, change)
        return reached

    def restore(self, name: str, now: datetime, on_problem: ProblemSink) -> Restored:
        """Replace the store by a snapshot and keep the replaced state; raise Conflict while other processes run."""
        chosen = choose_snapshot([snapshot for snapshot, _ in self.list()], name)
        with self._place() as store, _scratch() as folder:
            store.check_unused()
            replaced = backup.new_file(
                folder, Taken.BEFORE_RESTORE, now, {snapshot.file.name for snapshot, _ in self.list()}
            )
            write_file(store, self._part, replaced)
            file = folder / chosen.file.name
            self._fetch(chosen, file)
            snapshot = Snapshot(file, chosen.taken, chosen.at)
            # Restoring must not undo a purge that is not finished.
            scrub_copy(snapshot, backup.read(replaced, backup.list_purged), on_problem)
            if not file.exists():
                self._remove(chosen)
                raise NotFound(
                    f"The snapshot {chosen.name} contained a purged memory and was deleted. Choose another one."
                )
            draft = prepare_copy(snapshot)
            self._put(replaced, None)
            read_file(draft, store, self._part)
            memories = backup.count_memories(draft)
        # The indexes refer to row numbers, which may now belong to other memories.
        self._clear_indexes()
        return Restored(chosen, memories, replaced.stem)

    def _take(self, now: datetime, taken: Taken, change: str | None) -> Snapshot:
        with _scratch() as folder, self._place() as store:
            names = {snapshot.file.name for snapshot, _ in self.list()}
            file = backup.new_file(folder, taken, now, names)
            write_file(store, self._part, file)
            self._put(file, change)
            return Snapshot(Path(file.name), taken, now)

    def _revise(self, act: Callable[[Snapshot], bool]) -> int:
        """Apply a function to each snapshot; upload changed snapshots, remove deleted ones; return the number of
        changed ones.
        """
        reached = 0
        for snapshot, content in self.list():
            with _scratch() as folder:
                file = folder / snapshot.file.name
                self._fetch(snapshot, file)
                if act(Snapshot(file, snapshot.taken, snapshot.at)):
                    reached += 1
                    if file.exists():
                        self._put(file, None if content is None else content.change)
                    else:
                        self._remove(snapshot)
        return reached

    def _fetch(self, snapshot: Snapshot, file: Path) -> None:
        file.touch(0o600)
        if not self._objects.fetch(snapshot.file.name, file):
            raise NotFound(
                f"The snapshot {snapshot.name} no longer exists. List the others with `reverie store snapshot list`."
            )

    def _put(self, file: Path, change: str | None) -> None:
        size = self._objects.put(file.name, file)
        content = Content(backup.count_memories(file), size, change)
        self._write_contents({**self._read_contents(), file.name: content})

    def _remove(self, snapshot: Snapshot) -> None:
        self._objects.delete([snapshot.file.name])
        self._write_contents(
            {name: content for name, content in self._read_contents().items() if name != snapshot.file.name}
        )

    def _read_contents(self) -> dict[str, Content]:
        try:
            stored = json.loads(self._objects.get(CONTENTS) or b"{}")
            return {str(name): Content(int(row[0]), int(row[1]), row[2]) for name, row in stored.items()}
        except (ValueError, TypeError, IndexError, AttributeError):
            # The list is only a cache of the snapshots' contents.
            return {}

    def _write_contents(self, contents: dict[str, Content]) -> None:
        rows = {name: [content.memories, content.bytes, content.change] for name, content in contents.items()}
        self._objects.put(CONTENTS, json.dumps(rows).encode("ascii"))


def write_file(store: StoreLocation, part: Part, file: Path) -> None:
    """Copy a part into a new file, row by row; raise NotFound if it does not exist."""
    with writing_new_file(file, MIGRATIONS) as db, store.reading(part) as source:
        if source is None:
            raise NotFound(NO_WORKSPACE)
        copy(source, SqliteTables(db))
        install_triggers(db)
        # Turns are deleted within weeks, so they must not remain in a copy.
        turns.forget_all(db)


def read_file(file: Path, store: StoreLocation, part: Part) -> None:
    """Replace a part by the content of a file, row by row, in one transaction."""
    with store.reading(part) as there:
        before = None if there is None else fingerprint(there)
    with backup.typed_errors(file), closing(driver.connect(file)) as db, store.writing(part, before) as target:
        copy(SqliteTables(db), target)


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="reverie-snapshot-") as folder:
        yield Path(folder)


_SNAPSHOTS = "snapshots"


def shared_snapshots(
    settings: Settings, paths: WorkspacePaths, database: Database | None, objects: ObjectStorage | None
) -> SharedSnapshots | None:
    """Return the snapshots of a workspace on object storage, None where its store or its indexes lie under the home."""
    name = paths.root.name
    if objects is None or not settings.store.reveal():
        return None

    lease = nullcontext if database is None else partial(leases.hold, database, "snapshots")
    return SharedSnapshots(
        objects.below(f"{_SNAPSHOTS}/{name}"),
        name,
        partial(open_place, settings),
        lease,
        partial(drop_indexes, paths, objects),
    )


def find_shared_snapshots(objects: ObjectStorage) -> dict[str, list[Snapshot]]:
    """Return the snapshots of every workspace on object storage that has any, newest first, from one listing."""
    files_by_workspace: dict[str, list[Path]] = {}
    for key in objects.below(_SNAPSHOTS).list():
        workspace_id, _, name = key.partition("/")
        files_by_workspace.setdefault(workspace_id, []).append(Path(name))
    return {workspace_id: backup.parse_names(files) for workspace_id, files in files_by_workspace.items()}


def drop_indexes(paths: WorkspacePaths, objects: ObjectStorage | None) -> None:
    """Delete the indexes of a workspace on this machine and on object storage."""
    for copies in paths.indexes:
        shutil.rmtree(copies, ignore_errors=True)
    if objects is not None:
        for kind in ("vectors", "segments"):
            objects.below(f"{kind}/{paths.root.name}").clear()


@contextmanager
def open_place(settings: Settings) -> Iterator[StoreLocation]:
    """Open the place where a data directory keeps its stores."""
    if not settings.store.reveal():
        place: StoreLocation = HomeFiles(settings.paths)
    else:
        # Imported here because most installations have no server.
        from pipeline.kernel.store.postgres.moves import PostgresLocation

        place = PostgresLocation(settings.store.reveal())
    with closing(place):
        yield place
