"""Which languages a workspace is written and asked in, as far as that decides its encoder.

Whoever writes or asks in another language than English now and then gains more by an encoder that knows it than is lost
on what is English (decision 0022), so a share is enough, and what was found stays true.
"""

import time
from sqlite3 import Connection

from pipeline.records import Stage
from pipeline.store import index_state, memories, meta, work
from pipeline.store.database import wake_on_commit

# Of the newest memories, or of the last questions.
READ = 200
LEAST = 5
LEAST_SHARE = 0.1


def find_other_languages(db: Connection) -> str | None:
    """Return what showed that a workspace is not in English alone, None if it is."""
    return meta.get(db, meta.OTHER_LANGUAGES)


def are_many(foreign: int, seen: int) -> bool:
    """Return whether so many of the texts that were seen make a workspace one of other languages."""
    return foreign >= max(LEAST, LEAST_SHARE * seen)


def note_questions(db: Connection, foreign: int, seen: int) -> str | None:
    """Count questions; return what they show once many of the last ones are in other languages."""
    foreign += meta.get_int(db, meta.QUESTIONS_FOREIGN)
    seen += meta.get_int(db, meta.QUESTIONS_SEEN)
    if seen > 2 * READ:
        foreign, seen = foreign // 2, seen // 2
    meta.put(db, meta.QUESTIONS_FOREIGN, str(foreign))
    meta.put(db, meta.QUESTIONS_SEEN, str(seen))
    return f"{foreign} of {seen} questions" if are_many(foreign, seen) else None


def note_other_languages(db: Connection, shown_by: str, *, embed_again: bool) -> None:
    """Note what shows that a workspace is not in English alone; `embed_again` where another encoder is to serve it.

    Until that has embedded everything, the vectors of the present one answer.
    """
    meta.put(db, meta.OTHER_LANGUAGES, shown_by)
    models = index_state.count_embedded_by(db)
    if index_state.find_serving_model(db) is None and models:
        index_state.serve(db, max(models, key=models.__getitem__))
    if embed_again:
        work.add(db, memories.all_seqs(db), [Stage.EMBED], time.time())
    wake_on_commit(db, None)
