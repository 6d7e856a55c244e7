"""Read every byte of a workspace: the store, the indexes compared with it, and every snapshot."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial

import numpy as np

from config.paths import WorkspacePaths
from config.settings import Settings
from pipeline.index.documents import MEMORIES
from pipeline.index.encoder import table_name
from pipeline.index.segment import Segment, load_segment
from pipeline.index.storage import all_vector_tables, open_storage, shared_segments
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.records import CheckResult
from pipeline.kernel.store import backup, index_state, meta, row_hashes
from pipeline.kernel.store.database import Database, WriterProfile
from pipeline.kernel.store.stores import open_stores


def check_deeply(settings: Settings, name: str, progress: Callable[[int, int, str], object]) -> Iterator[CheckResult]:
    """Read all files of a workspace, and yield a result per part.

    `progress` receives the number of finished parts, the number of all parts, and the name of the next part.
    """
    with closing(open_stores(settings, WriterProfile("NORMAL", 0), str)) as stores:
        parts = _list_parts(settings, name, stores.databases.get(name))
        for number, (part, find, hint) in enumerate(parts):
            progress(number, len(parts), f"{name}: {part}")
            try:
                problems = find()
            except ReverieError as error:
                problems = [str(error)]
            says = "; ".join(problems[:3]) or "every byte was read"
            yield CheckResult(f"{name}: {part}", "fail" if problems else "ok", says, hint)


def _list_parts(
    settings: Settings, name: str, database: Database
) -> list[tuple[str, Callable[[], Sequence[str]], str]]:
    paths = settings.paths.workspace(name)
    files = [("store bytes", paths.events)] if database.file is not None else []
    files += [(f"snapshot {snapshot.name}", snapshot.file) for snapshot in backup.snapshots(paths.snapshots)]
    copies = f"`reverie -w {name} store snapshot list` lists the snapshots that you can restore"
    return [
        ("words", partial(_list_wrong_words, settings, paths, database), f"`reverie -w {name} store rebuild`"),
        (
            "vectors",
            partial(_list_wrong_vectors, settings, paths, database),
            f"`reverie -w {name} jobs run health` repairs it",
        ),
        *((part, partial(backup.read, file, row_hashes.list_damage), copies) for part, file in files),
    ]


def _list_wrong_words(settings: Settings, paths: WorkspacePaths, database: Database) -> list[str]:
    """List the words whose memories differ between the segment and the store."""
    segments = shared_segments(paths, open_storage(settings))
    with database.read() as db:
        name = meta.get(db, meta.SEGMENT)
        if not name:
            return []
        fresh, tail = MEMORIES.index(db, lambda _name: None), index_state.list_tail_seqs(db)
    segment = load_segment(paths.lexical, name) if segments is None else segments.load(name)
    rows = np.setdiff1d(fresh.rows, np.fromiter(tail, np.int64, len(tail)))

    def count(index: Segment, word: str) -> list[tuple[int, int]]:
        seqs, counts = index.posting(word)
        known = np.isin(seqs, rows)
        return list(zip(seqs[known].tolist(), counts[known].tolist(), strict=True))

    words = sorted({*segment.words.vocab_dict, *fresh.words.vocab_dict})
    return [f"the word {word!r} is wrong" for word in words if count(segment, word) != count(fresh, word)]


def _list_wrong_vectors(settings: Settings, paths: WorkspacePaths, database: Database) -> list[str]:
    """List the memories that lack vectors, or whose vectors and codes differ."""
    with database.read() as db:
        model = index_state.find_serving_model(db) or ""
        expected = set(index_state.list_expected_passages(db, model))
    every = all_vector_tables(paths, database, open_storage(settings)).list_tables()
    tables = [table for table in every if table.model == table_name(model)]
    missing = expected.difference(*(table.seqs() for table in tables))
    return [
        *(f"memory {seq} has no vector" for seq in sorted(missing)),
        *(f"memory {seq} has other codes than vectors" for table in tables for seq in table.list_differing()),
    ]
