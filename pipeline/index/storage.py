"""Where the indexes of a workspace lie: under the home, or on object storage that every machine of a team reaches."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from ulid import ULID

from config.paths import WorkspacePaths
from config.settings import Settings
from pipeline.index.encoder import FORMAT, MANIFEST_FILE, Encoder, encoder_directory, is_compiled
from pipeline.index.segment import MANIFEST, NAME_PREFIX, Segment, load_segment
from pipeline.index.table_storage import SharedTables
from pipeline.index.vectors import AllTables, VectorTable
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.store import leases
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.objects import ObjectStorage

FETCHING_SUFFIX = ".fetching-"


def send_folder(objects: ObjectStorage, prefix: str, folder: Path, manifest: str) -> None:
    """Upload the files of a folder."""
    for file in sorted(folder.iterdir(), key=lambda file: file.name == manifest):
        objects.put(prefix + file.name, file)


@contextmanager
def fetch_folder(objects: ObjectStorage, prefix: str, place: Path, manifest: str) -> Iterator[Path | None]:
    """Yield a downloaded copy in a folder next to `place`, to be moved there; None if no complete one is available.

    A copy that was not moved is deleted.
    """
    keys = list(objects.list(prefix))
    if prefix + manifest not in keys:
        yield None
        return
    copy = place.parent / f"{FETCHING_SUFFIX}{secrets.token_hex(4)}" / place.name
    copy.mkdir(mode=0o700, parents=True)
    try:
        # Another process may delete the objects in the meantime.
        is_whole = all(objects.fetch(key, copy / key.removeprefix(prefix)) for key in keys)
        yield copy if is_whole else None
    finally:
        shutil.rmtree(copy.parent, ignore_errors=True)


class SharedModels:
    """The compiled encoders of a data directory's machines, and this machine's folder of encoders."""

    def __init__(self, objects: ObjectStorage, folder: Path) -> None:
        self._objects = objects
        self._folder = folder

    def send(self, model: str) -> None:
        """Upload an encoder unless it exists."""
        directory = encoder_directory(model, self._folder)
        prefix = _prefix_of(directory)
        if prefix + MANIFEST_FILE not in self._objects.list(prefix):
            send_folder(self._objects, prefix, directory, MANIFEST_FILE)

    def fetch(self, model: str) -> bool:
        """Fetch an encoder; return whether a complete one is available afterwards."""
        directory = encoder_directory(model, self._folder)
        with fetch_folder(self._objects, _prefix_of(directory), directory, MANIFEST_FILE) as copy:
            if copy is not None and is_compiled(model, copy.parent) and not is_compiled(model, self._folder):
                # Replace a damaged encoder or one of an older format.
                shutil.rmtree(directory, ignore_errors=True)
                copy.rename(directory)
        return is_compiled(model, self._folder)


def _prefix_of(directory: Path) -> str:
    return f"{FORMAT}/{directory.name}/"


# A process that read a segment's name has started to fetch it within this time.
GRACE = timedelta(minutes=15)


class SharedSegments:
    """The segments of a workspace in a separate part of object storage, and a folder for copies."""

    def __init__(self, objects: ObjectStorage, folder: Path) -> None:
        self._objects = objects
        self._folder = folder

    def send(self, name: str) -> None:
        """Upload a segment that was built in the folder."""
        send_folder(self._objects, f"{name}/", self._folder / name, MANIFEST)

    def load(self, name: str) -> Segment:
        """Load a segment, fetching it if there is no complete copy; raise IndexUnavailable if it does not exist."""
        try:
            return load_segment(self._folder, name)
        except IndexUnavailable:
            # Not fetched yet, or the copy is damaged.
            shutil.rmtree(self._folder / name, ignore_errors=True)
        self._fetch(name)
        return load_segment(self._folder, name)

    def remove_others(self, keep: str, now: datetime, *, at_once: bool) -> None:
        """Delete the segments before another one; those that a process may be fetching only with `at_once`."""
        outlived = now if at_once else now - GRACE
        self._objects.delete(
            key
            for key in self._objects.list()
            if (name := key.partition("/")[0]) < keep and _built_at(name) <= outlived.timestamp()
        )

    def _fetch(self, name: str) -> None:
        with fetch_folder(self._objects, f"{name}/", self._folder / name, MANIFEST) as copy:
            if copy is None:
                raise IndexUnavailable(f"lexical segment {name} is not at {self._objects.url}", part=name)
            self._take(copy, name)

    def _take(self, copy: Path, name: str) -> None:
        try:
            os.rename(copy, self._folder / name)  # noqa: PTH104 - fails if another process was first
        except OSError:
            if not (self._folder / name / MANIFEST).exists():
                raise
        # Only older copies: a worker of this machine may be building a newer one here.
        for entry in self._folder.iterdir():
            if entry.is_dir() and entry.name.startswith(NAME_PREFIX) and entry.name < name:
                shutil.rmtree(entry, ignore_errors=True)


def _built_at(name: str) -> float:
    try:
        return float(ULID.from_str(name.removeprefix(NAME_PREFIX).upper()).timestamp)
    except ValueError:
        return datetime.now(UTC).timestamp()


def open_storage(settings: Settings) -> ObjectStorage | None:
    """Return the object storage that indexes and snapshots lie on, None where they lie under the home."""
    return ObjectStorage.open(settings.vectors) if settings.vectors else None


def vector_table(
    paths: WorkspacePaths, database: Database, loaded: Encoder, objects: ObjectStorage | None
) -> VectorTable:
    """Return the table of an encoder's vectors in a workspace: in its folder, or on object storage where there is."""
    return VectorTable(paths.vectors, loaded.name, loaded.dimension, _table_place(paths, database, objects))


def all_vector_tables(paths: WorkspacePaths, database: Database, objects: ObjectStorage | None) -> AllTables:
    """Return the tables of every model's vectors in a workspace, which needs no encoder."""
    return AllTables(paths.vectors, _table_place(paths, database, objects))


def turn_vector_table(
    paths: WorkspacePaths, database: Database, loaded: Encoder, objects: ObjectStorage | None
) -> VectorTable:
    """Return the table of an encoder's vectors of turns in a workspace."""
    return VectorTable(
        paths.turn_vectors, loaded.name, loaded.dimension, _table_place(paths, database, objects, of_turns=True)
    )


def all_turn_vector_tables(paths: WorkspacePaths, database: Database, objects: ObjectStorage | None) -> AllTables:
    """Return the tables of every model's vectors of turns in a workspace."""
    return AllTables(paths.turn_vectors, _table_place(paths, database, objects, of_turns=True))


def _table_place(
    paths: WorkspacePaths, database: Database, objects: ObjectStorage | None, *, of_turns: bool = False
) -> SharedTables | None:
    if objects is None:
        return None
    folder, below, name = (paths.turn_vectors, "/turns", "turns") if of_turns else (paths.vectors, "", "vectors")
    lease = partial(leases.hold, database, name)
    return SharedTables(objects.below(f"vectors/{paths.root.name}{below}"), folder, lease)


def shared_models(settings: Settings, objects: ObjectStorage | None) -> SharedModels | None:
    """Return the compiled encoders on object storage, None where each machine has its own alone."""
    return None if objects is None else SharedModels(objects.below("models"), settings.paths.models)


def shared_segments(paths: WorkspacePaths, objects: ObjectStorage | None) -> SharedSegments | None:
    """Return the lexical segments of a workspace on object storage, None where they lie under the home."""
    return None if objects is None else SharedSegments(objects.below(f"segments/{paths.root.name}"), paths.lexical)


def shared_turn_segments(paths: WorkspacePaths, objects: ObjectStorage | None) -> SharedSegments | None:
    """Return the lexical segments of a workspace's turns on object storage, None without object storage."""
    if objects is None:
        return None
    return SharedSegments(objects.below(f"segments/{paths.root.name}/turns"), paths.turn_segments)
