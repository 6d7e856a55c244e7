"""Where the indexes of a workspace lie: under the home, or on object storage that every machine of a team reaches."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial

from config.paths import WorkspacePaths
from config.settings import Settings
from pipeline.index.encoder import Encoder
from pipeline.index.places import SharedPlace
from pipeline.index.shared_models import SharedModels
from pipeline.index.shared_segments import SharedSegments
from pipeline.index.vectors import AllTables, VectorTable
from pipeline.jobs.shared_snapshots import SharedSnapshots, find_all
from pipeline.store import leases
from pipeline.store.backup import Snapshot
from pipeline.store.database import Database
from pipeline.store.moves import StorePlace
from pipeline.store.objects import ObjectStorage

_SNAPSHOTS = "snapshots"


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


def _table_place(paths: WorkspacePaths, database: Database, objects: ObjectStorage | None) -> SharedPlace | None:
    if objects is None:
        return None
    below = objects.below(f"vectors/{paths.root.name}")
    return SharedPlace(below, paths.vectors, partial(leases.hold, leases.WorkspaceValues(database), "vectors"))


def shared_models(settings: Settings, objects: ObjectStorage | None) -> SharedModels | None:
    """Return the compiled encoders on object storage, None where each machine has its own alone."""
    return None if objects is None else SharedModels(objects.below("models"), settings.paths.models)


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


def shared_segments(paths: WorkspacePaths, objects: ObjectStorage | None) -> SharedSegments | None:
    """Return the lexical segments of a workspace on object storage, None where they lie under the home."""
    return None if objects is None else SharedSegments(objects.below(f"segments/{paths.root.name}"), paths.lexical)
