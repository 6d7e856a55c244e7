"""The lexical tail as a plain table."""

from sqlite_utils import Database

from pipeline.store.migrations.registry import MIGRATIONS

PLAIN_TAIL = """
CREATE TABLE tail (
    seq INTEGER PRIMARY KEY,
    change_seq INTEGER NOT NULL,
    tokens TEXT NOT NULL
)
"""


@MIGRATIONS()
def m002_plain_tail(db: Database) -> None:
    """Keep the tail's tokens in a plain table, since recall counts them in memory, and ask for a new segment."""
    for statement in (
        "DROP TABLE tail_terms",
        "DROP TABLE tail",
        "DROP TABLE tail_row",
        PLAIN_TAIL,
        "CREATE INDEX tail_change ON tail (change_seq)",
        "DELETE FROM meta WHERE key = 'segment'",
        "INSERT OR REPLACE INTO meta SELECT 'segment_wanted', '0' WHERE EXISTS (SELECT 1 FROM memory)",
    ):
        db.execute(statement)
