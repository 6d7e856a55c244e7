"""What was taken from sources that are read again."""

from sqlite_utils import Database

from pipeline.store.migrations.registry import MIGRATIONS

# The digest is of what was read; an item that is forgotten has an empty one.
ITEM = """
CREATE TABLE ingest_item (
    seq INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    at TEXT NOT NULL,
    UNIQUE (source, key)
)
"""

# Which memory stands for a text of an item, by the hash of the text as it was offered: a memory may be edited since.
# `given` is 1 while the item holds the text; `archived_at` is when the memory went because no item holds it.
MEMORY = """
CREATE TABLE ingest_memory (
    item_seq INTEGER NOT NULL REFERENCES ingest_item (seq),
    hash TEXT NOT NULL,
    memory_seq INTEGER NOT NULL,
    given INTEGER NOT NULL,
    archived_at TEXT,
    PRIMARY KEY (item_seq, hash)
) WITHOUT ROWID
"""

# A salted mark of every text that was purged, so that nothing brings it back by being read again.
PURGED = "CREATE TABLE ingest_purged (mark TEXT PRIMARY KEY) WITHOUT ROWID"


@MIGRATIONS()
def m006_ingest(db: Database) -> None:
    """Keep what was taken from which item of a source."""
    for statement in (
        ITEM,
        # By row number within a source, in which its items are listed.
        "CREATE INDEX ingest_item_source ON ingest_item (source)",
        MEMORY,
        "CREATE INDEX ingest_memory_memory ON ingest_memory (memory_seq)",
        "CREATE INDEX ingest_memory_hash ON ingest_memory (hash)",
        PURGED,
    ):
        db.execute(statement)
