"""Snapshots of a workspace whose store is on a server: files of SQLite on object storage, as those of a home are.

Any machine takes them, reaches into them with a purge, and puts one back; who does holds a lease. Beside them lies a
list of what is in each, so that nobody has to fetch them to tell.
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
from pipeline.errors import NotFound
from pipeline.jobs.snapshot import (
    ProblemSink,
    Restored,
    choose_snapshot,
    find_outlived,
    prepare_copy,
    scrub_copy,
)
from pipeline.store import backup, changes, leases
from pipeline.store.backup import Snapshot, Taken
from pipeline.store.database import Database
from pipeline.store.moves import Part, StorePlace
from pipeline.store.objects import ObjectStorage
from pipeline.store.snapshot_file import read_file, write_file

CONTENTS = "contents.json"


@dataclass(frozen=True, slots=True)
class Content:
    """How many memories a snapshot holds, its bytes, and the last change of the store that it was taken of."""

    memories: int
    bytes: int
    change: str | None


class SharedSnapshots:
    """The snapshots of one workspace; `place` opens what the store is moved from and to, `lease` keeps others out."""

    def __init__(
        self,
        objects: ObjectStorage,
        workspace_id: str,
        place: Callable[[], AbstractContextManager[StorePlace]],
        lease: Callable[[], AbstractContextManager[object]],
        indexes: Callable[[], object] = lambda: None,
    ) -> None:
        self._objects = objects
        self._part = Part(workspace_id)
        self._place = place
        self._lease = lease
        self._clear_indexes = indexes

    def find(self) -> list[Snapshot]:
        """List the snapshots, newest first, without what is in them."""
        return backup.parse_names(Path(key) for key in self._objects.list())

    def list(self) -> list[tuple[Snapshot, Content | None]]:
        """List the snapshots, newest first, each with what is in it where that is known."""
        known = self._read_contents()
        return [(one, known.get(one.file.name)) for one in self.find()]

    def take(self, database: Database, now: datetime, *, anew: bool = True) -> Snapshot | None:
        """Take a snapshot and forget the oldest; return it, None where it was to be no copy of the same state."""
        with self._lease():
            before = self.list()
            with database.read() as db:
                change = changes.last_stamp(db)
            newest = next((content for one, content in before if one.taken is Taken.DAILY), None)
            if not anew and newest is not None and newest.change == change:
                taken = None
            else:
                taken = self._take(now, Taken.DAILY, change)
            for one in find_outlived([one for one, _ in self.list()], now):
                self._remove(one)
        return taken

    def scrub(self, database: Database, on_problem: ProblemSink) -> int:
        """Take every memory that was ever purged out of every snapshot; return how many snapshots held one."""
        with database.read() as db:
            purged = backup.purged_in(db)
        if not purged:
            return 0
        with self._lease():
            before = self.list()
            reached = self._revise(lambda one: scrub_copy(one, purged, on_problem))
            if before and not self.list():
                with database.read() as db:
                    change = changes.last_stamp(db)
                self._take(datetime.now(UTC), Taken.DAILY, change)
        return reached

    def restore(self, name: str, now: datetime, on_problem: ProblemSink) -> Restored:
        """Put a snapshot in the store's place and keep what was there; raises Conflict while anything else runs."""
        chosen = choose_snapshot([one for one, _ in self.list()], name)
        with self._place() as place, _scratch() as folder:
            place.check_unused()
            kept = backup.new_file(folder, Taken.BEFORE_RESTORE, now, {one.file.name for one, _ in self.list()})
            write_file(place, self._part, kept)
            file = folder / chosen.file.name
            self._fetch(chosen, file)
            one = Snapshot(file, chosen.taken, chosen.at)
            # A purge whose work still waited must not be taken back.
            scrub_copy(one, backup.list_purged(kept), on_problem)
            if not file.exists():
                self._remove(chosen)
                raise NotFound(f"{chosen.name} held what was purged, and is gone")
            draft = prepare_copy(one)
            self._put(kept, None)
            read_file(draft, place, self._part)
            memories = backup.count_memories(draft)
        # What the indexes hold by row number may be of other memories.
        self._clear_indexes()
        return Restored(chosen, memories, kept.stem)

    def _take(self, now: datetime, taken: Taken, change: str | None) -> Snapshot:
        with _scratch() as folder, self._place() as place:
            names = {one.file.name for one, _ in self.list()}
            file = backup.new_file(folder, taken, now, names)
            write_file(place, self._part, file)
            self._put(file, change)
            return Snapshot(Path(file.name), taken, now)

    def _revise(self, act: Callable[[Snapshot], bool]) -> int:
        """Let something be done to each snapshot; what it changed is put back, what it deleted is deleted."""
        reached = 0
        for one, content in self.list():
            with _scratch() as folder:
                file = folder / one.file.name
                self._fetch(one, file)
                if act(Snapshot(file, one.taken, one.at)):
                    reached += 1
                    if file.exists():
                        self._put(file, None if content is None else content.change)
                    else:
                        self._remove(one)
        return reached

    def _fetch(self, one: Snapshot, file: Path) -> None:
        file.touch(0o600)
        if not self._objects.fetch(one.file.name, file):
            raise NotFound(f"the snapshot {one.name} is gone")

    def _put(self, file: Path, change: str | None) -> None:
        size = self._objects.put(file.name, file)
        content = Content(backup.count_memories(file), size, change)
        self._write_contents({**self._read_contents(), file.name: content})

    def _remove(self, one: Snapshot) -> None:
        self._objects.delete([one.file.name])
        self._write_contents({name: kept for name, kept in self._read_contents().items() if name != one.file.name})

    def _read_contents(self) -> dict[str, Content]:
        try:
            found = json.loads(self._objects.get(CONTENTS) or b"{}")
            return {str(name): Content(int(one[0]), int(one[1]), one[2]) for name, one in found.items()}
        except (ValueError, TypeError, IndexError, AttributeError):
            # It tells only what could be looked up.
            return {}

    def _write_contents(self, contents: dict[str, Content]) -> None:
        told = {name: [one.memories, one.bytes, one.change] for name, one in contents.items()}
        self._objects.put(CONTENTS, json.dumps(told).encode("ascii"))


def find_all(objects: ObjectStorage) -> dict[str, list[Snapshot]]:
    """Return the snapshots of every workspace that has any, newest first, by one listing of what is above them."""
    found: dict[str, list[Path]] = {}
    for key in objects.list():
        workspace_id, _, name = key.partition("/")
        found.setdefault(workspace_id, []).append(Path(name))
    return {workspace_id: backup.parse_names(files) for workspace_id, files in found.items()}


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="reverie-snapshot-") as folder:
        yield Path(folder)


_SNAPSHOTS = "snapshots"


def shared_snapshots(
    settings: Settings, paths: WorkspacePaths, database: Database | None, objects: ObjectStorage | None
) -> SharedSnapshots | None:
    """Return the snapshots of a workspace on object storage, None where its store or its indexes lie under the home."""
    name, url = paths.root.name, settings.store.reveal()
    if objects is None or not url:
        return None

    def drop_indexes() -> None:
        for kind in ("vectors", "segments"):
            objects.below(f"{kind}/{name}").clear()
        for copies in (paths.vectors, paths.lexical):
            shutil.rmtree(copies, ignore_errors=True)

    lease = nullcontext if database is None else partial(leases.hold, leases.WorkspaceValues(database), "snapshots")
    return SharedSnapshots(objects.below(f"{_SNAPSHOTS}/{name}"), name, partial(_open_place, url), lease, drop_indexes)


def find_shared_snapshots(objects: ObjectStorage) -> dict[str, list[Snapshot]]:
    """Return the snapshots of every workspace on object storage that has any, newest first."""
    return find_all(objects.below(_SNAPSHOTS))


@contextmanager
def _open_place(url: str) -> Iterator[StorePlace]:
    from pipeline.store.postgres.moves import PostgresPlace

    with closing(PostgresPlace(url)) as place:
        yield place
