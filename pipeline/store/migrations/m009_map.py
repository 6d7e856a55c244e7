"""Where entities stand on the map, and what is archived."""

from sqlite_utils import Database

from pipeline.store.migrations.registry import MIGRATIONS

# A drawing is made row by row beside the one that is shown, and then shown as a whole.
ENTITY_PLACE = """
CREATE TABLE entity_place (
    entity_seq INTEGER NOT NULL REFERENCES entity (seq),
    drawing INTEGER NOT NULL,
    x REAL NOT NULL,
    y REAL NOT NULL,
    radius REAL NOT NULL,
    community INTEGER NOT NULL,
    centrality REAL NOT NULL,
    mentions INTEGER NOT NULL,
    PRIMARY KEY (entity_seq, drawing)
) WITHOUT ROWID
"""

# The strongest tie has rank 0.
MAP_TIE = """
CREATE TABLE map_tie (
    drawing INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    low INTEGER NOT NULL REFERENCES entity (seq),
    high INTEGER NOT NULL REFERENCES entity (seq),
    memories INTEGER NOT NULL,
    PRIMARY KEY (drawing, rank)
) WITHOUT ROWID
"""

# A write of a memory does not touch it: counting what is shown takes these few away instead of looking at all others.
# The condition keeps the planner from taking it where nobody asks for it by name, as lists go by row number.
MEMORY_ARCHIVED = "CREATE INDEX memory_archived ON memory (archived_at) WHERE archived_at > ''"


@MIGRATIONS()
def m009_map(db: Database) -> None:
    """Let entities have a place on the map."""
    for statement in (
        ENTITY_PLACE,
        MAP_TIE,
        "CREATE INDEX map_tie_low ON map_tie (low)",
        "CREATE INDEX map_tie_high ON map_tie (high)",
        MEMORY_ARCHIVED,
    ):
        db.execute(statement)
