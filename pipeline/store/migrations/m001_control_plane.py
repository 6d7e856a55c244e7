"""The first schema: memories and everything that is written in their transaction."""

import secrets

from sqlite_utils import Database

from pipeline.store.migrations.registry import MIGRATIONS

MEMORY = """
CREATE TABLE memory (
    -- Derived indexes key on seq, so a purged one is never given out again.
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,
    kind TEXT NOT NULL,
    scope_kind TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    source TEXT NOT NULL,
    trust TEXT NOT NULL,
    importance REAL NOT NULL,
    tier TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    session_id TEXT,
    created_at TEXT NOT NULL,
    occurred_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    archived_at TEXT,
    content_hash TEXT NOT NULL,
    recall_count INTEGER NOT NULL DEFAULT 0,
    merge_count INTEGER NOT NULL DEFAULT 0
)
"""

# Exact deduplication holds by constraint, whoever writes.
MEMORY_ACTIVE_TEXT = """
CREATE UNIQUE INDEX memory_active_text ON memory (scope_kind, scope_id, content_hash) WHERE archived_at IS NULL
"""

MEMORY_SESSION = "CREATE INDEX memory_session ON memory (session_id, occurred_at, seq) WHERE session_id IS NOT NULL"

HISTORY = """
CREATE TABLE history (
    seq INTEGER PRIMARY KEY,
    memory_seq INTEGER NOT NULL REFERENCES memory (seq),
    at TEXT NOT NULL,
    event TEXT NOT NULL,
    content TEXT,
    detail TEXT NOT NULL
)
"""

CHANGE = """
CREATE TABLE change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    hlc TEXT NOT NULL UNIQUE,
    op TEXT NOT NULL,
    memory_id TEXT NOT NULL
)
"""

# The tail holds tokens, not text: both sides are analysed in Python, so FTS5 only splits at white space.
TAIL = """
CREATE VIRTUAL TABLE tail USING fts5 (
    tokens, tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
)
"""

TAIL_TERMS = "CREATE VIRTUAL TABLE tail_terms USING fts5vocab (tail, row)"

TAIL_ROW = """
CREATE TABLE tail_row (
    seq INTEGER PRIMARY KEY,
    change_seq INTEGER NOT NULL,
    length INTEGER NOT NULL
)
"""

WORK = """
CREATE TABLE work (
    memory_seq INTEGER NOT NULL,
    stage TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_until REAL,
    dead INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    queued_at REAL NOT NULL,
    PRIMARY KEY (stage, memory_seq)
) WITHOUT ROWID
"""

ENTITY = """
CREATE TABLE entity (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (kind, name)
)
"""

MENTION = """
CREATE TABLE mention (
    memory_seq INTEGER NOT NULL,
    entity_seq INTEGER NOT NULL REFERENCES entity (seq),
    surface TEXT NOT NULL,
    PRIMARY KEY (memory_seq, entity_seq)
) WITHOUT ROWID
"""

CO_MENTION = """
CREATE TABLE co_mention (
    low INTEGER NOT NULL REFERENCES entity (seq),
    high INTEGER NOT NULL REFERENCES entity (seq),
    memories INTEGER NOT NULL,
    PRIMARY KEY (low, high)
) WITHOUT ROWID
"""

EMBEDDING = """
CREATE TABLE embedding (
    memory_seq INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    passages INTEGER NOT NULL
)
"""


META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"


@MIGRATIONS()
def m001_control_plane(db: Database) -> None:
    """Create the memory table and everything that is written in its transaction."""
    for statement in (
        MEMORY,
        MEMORY_ACTIVE_TEXT,
        MEMORY_SESSION,
        HISTORY,
        "CREATE INDEX history_memory ON history (memory_seq)",
        CHANGE,
        TAIL,
        TAIL_TERMS,
        TAIL_ROW,
        WORK,
        "CREATE INDEX work_leased ON work (lease_until) WHERE lease_owner IS NOT NULL",
        ENTITY,
        MENTION,
        "CREATE INDEX mention_entity ON mention (entity_seq)",
        CO_MENTION,
        "CREATE INDEX co_mention_high ON co_mention (high)",
        EMBEDDING,
        META,
    ):
        db.execute(statement)
    db.execute("INSERT INTO meta VALUES ('node', ?)", [secrets.token_hex(4)])
