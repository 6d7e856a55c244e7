"""What the jobs of the night need."""

from sqlite_utils import Database

from pipeline.store.migrations.registry import MIGRATIONS

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
