"""Memories in the order in which things happened, and those that wait for review."""

from sqlite_utils import Database

from pipeline.store.migrations.registry import MIGRATIONS

# Every row is in it: the condition only keeps the planner from taking it where nobody asks for it by name, as rows
# that are read in the order of time stand apart in the file.
JOURNAL = "CREATE INDEX memory_journal ON memory (occurred_at) WHERE occurred_at <> ''"

CANDIDATE = "CREATE INDEX memory_candidate ON memory (seq) WHERE candidate = 1 AND archived_at IS NULL"


@MIGRATIONS()
def m008_journal(db: Database) -> None:
    """Find at once what happened last, and the few memories that wait for review."""
    for statement in (JOURNAL, CANDIDATE):
        db.execute(statement)
