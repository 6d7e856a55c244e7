"""What a memory means: typed fields, keys in time, anchors, edges, pairs, decisions, surfacings."""

from sqlite_utils import Database

from pipeline.store.migrations.registry import MIGRATIONS

EDGE = """
CREATE TABLE edge (
    from_seq INTEGER NOT NULL REFERENCES memory (seq),
    kind TEXT NOT NULL,
    to_seq INTEGER NOT NULL REFERENCES memory (seq),
    made_by TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (from_seq, kind, to_seq)
) WITHOUT ROWID
"""

PAIR = """
CREATE TABLE pair (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    older_seq INTEGER NOT NULL,
    newer_seq INTEGER NOT NULL,
    cosine REAL NOT NULL,
    reasons TEXT NOT NULL,
    state TEXT NOT NULL,
    at TEXT NOT NULL,
    settled_at TEXT,
    UNIQUE (older_seq, newer_seq)
)
"""

# A keyed fact may take a value that it had before.
MEMORY_ACTIVE_UNKEYED_TEXT = """
CREATE UNIQUE INDEX memory_active_text ON memory (scope_kind, scope_id, content_hash)
    WHERE archived_at IS NULL AND subject IS NULL
"""

# Names memories by id: what is purged must stay told of without being there.
AUDIT = """
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    other_id TEXT,
    detail TEXT NOT NULL,
    undone_at TEXT
)
"""

# Holds no text of a memory, so that what was turned away is nowhere.
ADMISSION = """
CREATE TABLE admission (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    outcome TEXT NOT NULL,
    score REAL NOT NULL,
    reasons TEXT NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    content_hash TEXT
)
"""

SURFACE = """
CREATE TABLE surface (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    memory_seq INTEGER NOT NULL,
    session_id TEXT,
    at TEXT NOT NULL,
    followed INTEGER,
    note TEXT,
    answered_at TEXT
)
"""

INCOGNITO = "CREATE TABLE incognito (session_id TEXT PRIMARY KEY, since TEXT NOT NULL) WITHOUT ROWID"


@MIGRATIONS()
def m003_meaning(db: Database) -> None:
    """Let a memory have typed fields, a key in time, an anchor in code, and relations to others."""
    for statement in (
        "ALTER TABLE memory ADD COLUMN details TEXT NOT NULL DEFAULT '{}'",
        "ALTER TABLE memory ADD COLUMN anchor TEXT",
        "ALTER TABLE memory ADD COLUMN branch TEXT",
        "ALTER TABLE memory ADD COLUMN candidate INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE memory ADD COLUMN instructs INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE memory ADD COLUMN subject TEXT",
        "ALTER TABLE memory ADD COLUMN attribute TEXT",
        "ALTER TABLE memory ADD COLUMN valid_from TEXT",
        "ALTER TABLE memory ADD COLUMN valid_to TEXT",
        "ALTER TABLE memory ADD COLUMN merged_into INTEGER",
        "ALTER TABLE history ADD COLUMN about_seq INTEGER",
        "CREATE INDEX history_about ON history (about_seq) WHERE about_seq IS NOT NULL",
        "DROP INDEX memory_active_text",
        MEMORY_ACTIVE_UNKEYED_TEXT,
        "CREATE INDEX memory_fact ON memory (subject, attribute, valid_from) WHERE subject IS NOT NULL",
        "CREATE INDEX memory_valid_from ON memory (valid_from) WHERE valid_from IS NOT NULL",
        "CREATE INDEX memory_valid_to ON memory (valid_to) WHERE valid_to IS NOT NULL",
        "CREATE INDEX memory_kind ON memory (kind, seq)",
        "CREATE INDEX memory_owned ON memory (scope_kind, scope_id) WHERE scope_kind <> 'workspace'",
        "CREATE INDEX memory_merged ON memory (merged_into) WHERE merged_into IS NOT NULL",
        EDGE,
        "CREATE INDEX edge_to ON edge (to_seq)",
        PAIR,
        "CREATE INDEX pair_newer ON pair (newer_seq)",
        AUDIT,
        "CREATE INDEX audit_memory ON audit (memory_id)",
        ADMISSION,
        "CREATE INDEX admission_turned_away ON admission (content_hash) WHERE content_hash IS NOT NULL",
        SURFACE,
        "CREATE INDEX surface_memory ON surface (memory_seq)",
        INCOGNITO,
    ):
        db.execute(statement)
