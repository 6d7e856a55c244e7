"""Fill a store with many workspaces through its own write path, and measure what a memory takes of each part.

The encoder makes the vectors of a few texts; all others get one of those, a little off. Names are not looked for and
duplicates neither: neither recall nor a write asks for them.
"""

import multiprocessing
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg

from benchmarks.corpus import memories
from benchmarks.figures import Report
from benchmarks.large_homes import encode_on_all_cores, perturb
from config.settings import Settings, load_settings
from pipeline.bootstrap.worker import WorkerContainer
from pipeline.features.indexing.usecases import compile_model
from pipeline.index.codes import Vector
from pipeline.index.encoder import encoder_directory
from pipeline.index.encoders import usual_model
from pipeline.kernel.records import Draft, Kind
from pipeline.kernel.store import index_state, meta, work
from pipeline.kernel.store.objects import ObjectStorage
from pipeline.text.similarity.statements import store_statements
from tests.fakes.in_process import accept_batch

ENCODED = 2_000
BATCH = 500
TOLD_EVERY_S = 60.0
_SIZE = (
    "SELECT sum(pg_{}_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
)


@dataclass(frozen=True, slots=True)
class Filled:
    """What was written: so many memories, in these workspaces."""

    names: Sequence[str]
    memories: int


def fill(environment: Mapping[str, str], names: Sequence[str], each: int, report: Report) -> Filled:
    """Fill workspaces with so many memories each, a process a core; tell how long that took."""
    settings = load_settings(environment)
    compile_model(settings)
    directory = encoder_directory(usual_model(settings), settings.paths.models)
    known = encode_on_all_cores(directory, [body["content"] for body in memories(ENCODED, seed=6)])
    began = told = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with context.Pool(os.cpu_count(), _open, (dict(environment), known)) as pool:
        for done, _ in enumerate(pool.imap_unordered(_fill_one, [(name, each) for name in names]), 1):
            if time.monotonic() - told > TOLD_EVERY_S:
                told = time.monotonic()
                print(f"  {done} of {len(names)} workspaces after {told - began:.0f} s", flush=True)
    count, took = each * len(names), time.monotonic() - began
    report.section(f"{count:,} memories written to {len(names):,} workspaces, with vectors and segments")
    report.row("", f"{took:.0f} s, {count / took:.0f} a second")
    return Filled(names, count)


_container: list[WorkerContainer] = []
_known: list[Vector] = []


def _open(environment: dict[str, str], known: Vector) -> None:
    _container.append(WorkerContainer(load_settings(environment)))
    _known.append(known)


def _fill_one(job: tuple[str, int]) -> None:
    name, each = job
    container, known = _container[0], _known[0]
    seed = 10_000 + int(name.rpartition("-")[2])
    database = container.databases.get(name, create=True)
    corpus = list(memories(each, seed))
    for start in range(0, each, BATCH):
        accept_batch(database, [_draft(body) for body in corpus[start:][:BATCH]])
    chance = np.random.default_rng(seed)
    vectors = perturb(known[chance.integers(len(known), size=each)], chance)
    table = container.vectors(name)
    with table.exclusive():
        table.replace({row: vector[None] for row, vector in enumerate(vectors, 1)})
    with database.write() as db:
        for row in range(1, each + 1):
            stated = store_statements(corpus[row - 1]["content"])
            index_state.note_embedding(db, row, usual_model(container.settings), 1, stated)
            work.drop(db, row)
        meta.put(db, meta.VECTORS_GENERATION, "1")
    container.context(name).rebuild_segment()


def _draft(body: dict[str, str]) -> Draft:
    return Draft(body["content"], Kind(body["kind"]), session_id=body["session_id"], occurred_at=body["occurred_at"])


def measure_bytes(title: str, environment: Mapping[str, str], filled: Filled, report: Report) -> None:
    """Tell what a memory takes of the truth, of the vectors and of the lexical segments."""
    settings = load_settings(environment)
    parts = _sizes_of_servers(settings) if settings.store.reveal() else _sizes_of_home(settings)
    report.section(f"{title}: bytes a memory, at {filled.memories // len(filled.names):,} a workspace")
    for part, size in parts.items():
        report.row(part, f"{size / filled.memories:,.0f}")
        report.keep(title, "bytes", part, value=size / filled.memories)


def _sizes_of_home(settings: Settings) -> dict[str, int]:
    sizes = {"truth (events.sqlite)": 0, "vectors": 0, "segments": 0}
    for name in settings.paths.workspace_ids():
        place = settings.paths.workspace(name)
        sizes["truth (events.sqlite)"] += sum(file.stat().st_size for file in place.root.glob("events.sqlite*"))
        sizes["vectors"] += _size_of(place.vectors)
        sizes["segments"] += _size_of(place.lexical)
    return sizes


def _size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _sizes_of_servers(settings: Settings) -> dict[str, int]:
    objects = ObjectStorage.open(settings.vectors).list()
    with psycopg.connect(settings.store.reveal()) as db:
        sizes = {what: int(db.execute(_SIZE.format(what).encode()).fetchone()[0]) for what in ("table", "indexes")}
    vectors = sum(size for key, size in objects.items() if "vectors/" in key)
    return {
        "truth: tables": sizes["table"],
        "truth: indexes": sizes["indexes"],
        "vectors": vectors,
        "segments": sum(objects.values()) - vectors,
    }
