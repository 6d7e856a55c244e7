"""Which agent a lesson was put before, and the goals that are open at hand."""

from sqlite_utils import Database

from pipeline.store.migrations.registry import MIGRATIONS

# In the order in which goals are told: what is due first, then what matters most. `goals.unfinished` says the same.
UNFINISHED_GOAL = """
CREATE INDEX memory_unfinished_goal ON memory (
    json_extract(details, '$.due_at') IS NULL, json_extract(details, '$.due_at'), importance DESC, seq DESC
) WHERE kind = 'goal' AND archived_at IS NULL
    AND coalesce(json_extract(details, '$.status'), 'open') IN ('open', 'in_progress')
"""


@MIGRATIONS()
def m007_surface_agent(db: Database) -> None:
    """Keep which subagent of a session a lesson was put before, null for its main agent; find open goals at once."""
    for statement in ("ALTER TABLE surface ADD COLUMN agent_id TEXT", UNFINISHED_GOAL):
        db.execute(statement)
