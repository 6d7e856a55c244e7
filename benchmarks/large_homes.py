"""Homes too large to be digested for a benchmark: written in this process, vectors of some texts used again for others.

The encoder makes the vectors of so many texts; each of the others gets one of those, a little off. Names are not looked
for, duplicates neither: recall asks for none of that.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from config.settings import load_settings
from pipeline.bootstrap.worker import WorkerContainer
from pipeline.features.indexing.usecases import compile_model
from pipeline.index.codes import Vector
from pipeline.index.encoder import OnnxEncoder, encoder_directory
from pipeline.index.encoders import usual_model
from pipeline.kernel.records import Draft, Kind
from pipeline.kernel.store import index_state, meta, work
from pipeline.text.similarity.statements import store_statements
from tests.fakes.in_process import accept_batch

ENCODED = 100_000
BATCH = 500
TABLE_BATCH = 20_000
# The cosine of a vector to the one that it was made from is about 0.9: a text that says nearly the same.
NOISE = 0.5
SEED = 5

Body = dict[str, Any]


def build_home(
    folder: Path, workspace: str, corpus: Sequence[Body], encoded: int, tell: Callable[[str], None]
) -> list[str]:
    """Fill a home with a corpus and its vectors; return the memories' ids in the corpus's order."""
    settings = load_settings({"REVERIE_HOME": str(folder)})
    compile_model(settings)
    container = WorkerContainer(settings)
    database = container.databases.get(workspace, create=True)
    ids: list[str] = []
    for start in range(0, len(corpus), BATCH):
        ids += [receipt.id for receipt in accept_batch(database, [_draft(body) for body in corpus[start:][:BATCH]])]
    tell(f"  {len(ids)} memories are written; {min(encoded, len(ids))} of them are encoded now")
    directory = encoder_directory(usual_model(settings), settings.paths.models)
    known = encode_on_all_cores(directory, [body["content"] for body in corpus[:encoded]])
    table = container.vectors(workspace)
    for stamp, (first, vectors) in enumerate(_in_batches(known, len(corpus)), 1):
        # Rows are numbered from 1 in the order of the corpus.
        rows = {first + place + 1: vector[None] for place, vector in enumerate(vectors)}
        with table.exclusive():
            table.replace(rows)
        with database.write() as db:
            for row in rows:
                stated = store_statements(corpus[row - 1]["content"])
                index_state.note_embedding(db, row, usual_model(settings), 1, stated)
                work.drop(db, row)
            meta.put(db, meta.VECTORS_GENERATION, str(stamp))
    container.close()
    return ids


def encode_on_all_cores(directory: Path, texts: Sequence[str]) -> Vector:
    """Encode texts with a session a core; shape (texts, dimension)."""
    cores = len(os.sched_getaffinity(0))
    encoders = [OnnxEncoder.load(directory, threads=1) for _ in range(cores)]
    shares = np.array_split(np.arange(len(texts)), cores)
    with ThreadPoolExecutor(cores) as pool:
        found = pool.map(
            lambda pair: pair[0].encode_documents([texts[place] for place in pair[1]]),
            zip(encoders, shares, strict=True),
        )
        return np.concatenate(list(found))


def perturb(vectors: Vector, random: np.random.Generator) -> Vector:
    """Return unit vectors a little off the given ones."""
    step = random.standard_normal(vectors.shape, np.float32)
    step *= NOISE / np.linalg.norm(step, axis=1, keepdims=True)
    moved = vectors + step
    near: Vector = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return near


def _in_batches(known: Vector, count: int) -> Iterator[tuple[int, Vector]]:
    """Yield (place of the first, vectors) for so many texts."""
    random = np.random.default_rng(SEED)
    for start in range(0, count, TABLE_BATCH):
        places = np.arange(start, min(start + TABLE_BATCH, count))
        borrowed = places >= len(known)
        vectors = known[np.where(borrowed, random.integers(len(known), size=len(places)), places)]
        vectors[borrowed] = perturb(vectors[borrowed], random)
        yield start, vectors


def _draft(body: Body) -> Draft:
    return Draft(body["content"], Kind(body["kind"]), session_id=body["session_id"], occurred_at=body["occurred_at"])
