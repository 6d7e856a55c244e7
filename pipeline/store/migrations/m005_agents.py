"""What agents did and were told."""

from sqlite_utils import Database

from pipeline.store.migrations.registry import MIGRATIONS

# What an agent did, tool by tool; `target` is a command or a file, without secrets.
ACTION = """
CREATE TABLE action (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    session_id TEXT NOT NULL,
    agent_id TEXT,
    tool TEXT NOT NULL,
    deed TEXT NOT NULL,
    target TEXT NOT NULL,
    ok INTEGER NOT NULL
)
"""

# What an agent was told in a session, so that nothing is told twice unless it changed.
TOLD = """
CREATE TABLE told (
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    memory_seq INTEGER NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (session_id, agent_id, memory_seq)
) WITHOUT ROWID
"""

# A session of an agent and where its present turn began.
AGENT_SESSION = """
CREATE TABLE agent_session (
    id TEXT PRIMARY KEY, cwd TEXT NOT NULL, started_at TEXT NOT NULL, turn_at TEXT NOT NULL
) WITHOUT ROWID
"""


@MIGRATIONS()
def m005_agents(db: Database) -> None:
    """Keep what agents did and were told."""
    for statement in (
        ACTION,
        "CREATE INDEX action_session ON action (session_id, seq)",
        TOLD,
        "CREATE INDEX told_memory ON told (memory_seq)",
        "CREATE INDEX surface_session ON surface (session_id) WHERE followed IS NULL",
        AGENT_SESSION,
    ):
        db.execute(statement)
