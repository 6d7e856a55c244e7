"""Where the indexes of a workspace lie: under the home, or on object storage that every machine of a team reaches."""

from functools import partial

from config.paths import WorkspacePaths
from config.settings import Settings
from pipeline.index.encoder import Encoder
from pipeline.index.shared_folders import SharedModels, SharedSegments
from pipeline.index.table_storage import SharedTables
from pipeline.index.vectors import AllTables, VectorTable
from pipeline.store import leases
from pipeline.store.database import Database
from pipeline.store.objects import ObjectStorage


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
    lease = partial(leases.hold, leases.WorkspaceValues(database), name)
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
