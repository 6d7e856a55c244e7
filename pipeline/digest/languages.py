"""Detect the languages of a workspace, which may change its encoder."""

from collections.abc import Sequence

from pipeline.store import languages, memories
from pipeline.store.database import Database
from pipeline.text.languages import is_foreign


def find_language_evidence(database: Database, written: Sequence[str]) -> str | None:
    """Return new evidence that a workspace is not only in English, from newly written memories."""
    if not any(map(is_foreign, written)):
        return None
    with database.read() as db:
        if languages.find_other_languages(db) is not None:
            return None
        last = memories.last_seq(db)
        newest = memories.by_seqs(db, range(last - languages.READ + 1, last + 1))
    foreign = sum(is_foreign(memory.content) for memory in newest.values())
    return f"{foreign} of {len(newest)} memories" if languages.is_multilingual_share(foreign, len(newest)) else None
