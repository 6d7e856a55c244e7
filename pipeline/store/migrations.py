"""The schema of events.sqlite, as numbered migrations; each runs in a transaction of its own."""

import secrets

from sqlite_utils import Database, Migrations

MIGRATIONS = Migrations("reverie")

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

PLAIN_TAIL = """
CREATE TABLE tail (
    seq INTEGER PRIMARY KEY,
    change_seq INTEGER NOT NULL,
    tokens TEXT NOT NULL
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


# A run that was asked for and not begun has no started_at; `generation` is the change number that it saw.
JOB_RUN = """
CREATE TABLE job_run (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    started_at TEXT,
    ended_at TEXT,
    ok INTEGER,
    counts TEXT NOT NULL DEFAULT '{}',
    error TEXT,
    done INTEGER NOT NULL DEFAULT 0,
    total INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0
)
"""

JOB_LOCK = "CREATE TABLE job_lock (name TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID"

ARC = """
CREATE TABLE arc (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    summary TEXT NOT NULL,
    status TEXT NOT NULL,
    scope_kind TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    first_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
)
"""

ARC_MEMBER = """
CREATE TABLE arc_member (
    memory_seq INTEGER PRIMARY KEY REFERENCES memory (seq),
    arc_seq INTEGER NOT NULL REFERENCES arc (seq),
    position INTEGER NOT NULL
)
"""

# Questions that are likely to come next; whoever serves the workspace computes their answers while nobody waits.
PREDICTION = """
CREATE TABLE prediction (
    seq INTEGER PRIMARY KEY,
    query TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL,
    UNIQUE (query)
)
"""

PREDICTION_DAY = """
CREATE TABLE prediction_day (day TEXT PRIMARY KEY, asked INTEGER NOT NULL, foreseen INTEGER NOT NULL) WITHOUT ROWID
"""

# What people asked, so that what is asked again and again can be foreseen.
QUERY = """
CREATE TABLE query (
    text TEXT PRIMARY KEY, times INTEGER NOT NULL, first_at TEXT NOT NULL, last_at TEXT NOT NULL
) WITHOUT ROWID
"""

STOP_WORD = "CREATE TABLE stop_word (word TEXT PRIMARY KEY, share REAL NOT NULL) WITHOUT ROWID"

BRIDGE = "CREATE TABLE bridge (word TEXT, other TEXT, pmi REAL NOT NULL, PRIMARY KEY (word, other)) WITHOUT ROWID"

MODEL_USE = """
CREATE TABLE model_use (
    day TEXT, job TEXT, calls INTEGER NOT NULL, failures INTEGER NOT NULL, tokens INTEGER NOT NULL,
    PRIMARY KEY (day, job)
) WITHOUT ROWID
"""


@MIGRATIONS()
def m004_night(db: Database) -> None:
    """Give the night jobs what they need: their runs and locks, arcs, predictions, and a memory's last recall."""
    for statement in (
        "ALTER TABLE memory ADD COLUMN recalled_at TEXT",
        # Importance fades and rises; what a caller gave stays known, so that a job that runs twice fades once.
        "ALTER TABLE memory ADD COLUMN given_importance REAL",
        JOB_RUN,
        "CREATE INDEX job_run_name ON job_run (name, seq)",
        JOB_LOCK,
        ARC,
        ARC_MEMBER,
        "CREATE INDEX arc_member_arc ON arc_member (arc_seq, position)",
        PREDICTION,
        PREDICTION_DAY,
        QUERY,
        STOP_WORD,
        BRIDGE,
        MODEL_USE,
    ):
        db.execute(statement)
