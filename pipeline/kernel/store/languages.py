"""Detect whether a workspace uses other languages than English, which decides its encoder.

A user of another language gains more from a multilingual encoder than English texts lose (decision 0022), so a share
of such texts is enough, and the result is kept.
"""

import time
from sqlite3 import Connection

from pipeline.kernel.records import Stage
from pipeline.kernel.store import index_state, memories, meta, turns, work
from pipeline.kernel.store.database import wake_on_commit

# Of the newest memories, or of the last queries.
READ = 200
LEAST = 5
MIN_FOREIGN_SHARE = 0.1


def find_other_languages(db: Connection) -> str | None:
    """Return the evidence that a workspace is not only in English, None if it is."""
    return meta.get(db, meta.OTHER_LANGUAGES)


def is_multilingual_share(foreign: int, seen: int) -> bool:
    """Return whether the foreign share of the texts makes a workspace multilingual."""
    return foreign >= max(LEAST, MIN_FOREIGN_SHARE * seen)


def note_questions(db: Connection, foreign: int, seen: int) -> str | None:
    """Count queries; return the evidence once many of the last queries are in other languages."""
    foreign += meta.get_int(db, meta.QUESTIONS_FOREIGN)
    seen += meta.get_int(db, meta.QUESTIONS_SEEN)
    if seen > 2 * READ:
        foreign, seen = foreign // 2, seen // 2
    meta.put(db, meta.QUESTIONS_FOREIGN, str(foreign))
    meta.put(db, meta.QUESTIONS_SEEN, str(seen))
    return f"{foreign} of {seen} questions" if is_multilingual_share(foreign, seen) else None


def record_other_languages(db: Connection, shown_by: str, *, embed_again: bool) -> None:
    """Record the evidence that a workspace is not only in English; `embed_again` if another encoder should be used.

    The present vectors are used until the other encoder has embedded everything.
    """
    meta.put(db, meta.OTHER_LANGUAGES, shown_by)
    models = index_state.count_embedded_by(db)
    if index_state.find_serving_model(db) is None and models:
        index_state.serve(db, max(models, key=models.__getitem__))
    if embed_again:
        now = time.time()
        work.add(db, memories.all_seqs(db), [Stage.EMBED], now)
        work.add(db, sorted(turns.list_embedded_seqs(db)), [Stage.EMBED_TURNS], now)
    wake_on_commit(db, None)
