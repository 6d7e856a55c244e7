"""Goals: memories with status, progress and due date."""

from sqlite3 import Connection

from pipeline.kernel.records import Filter, Kind, Memory, Viewer
from pipeline.kernel.store.memories import select, select_newest
from pipeline.kernel.store.visibility import condition

_STATUS = "coalesce(json_extract(details, '$.status'), 'open')"
# A condition on `memory m`.
IS_KEPT = f"kind = 'goal' AND {_STATUS} IN ('open', 'in_progress')"
# Repeats the condition and the order of the index literally: otherwise SQLite does not use it.
_IS_UNFINISHED = f"kind = 'goal' AND archived_at IS NULL AND {_STATUS} IN ('open', 'in_progress')"
_DUE_FIRST = (
    "ORDER BY json_extract(details, '$.due_at') IS NULL, json_extract(details, '$.due_at'), importance DESC, seq DESC"
)


def page(db: Connection, viewer: Viewer, status: str | None, limit: int, before: int | None) -> list[Memory]:
    """List goals newest first, of one status or all."""
    goals = Filter(kinds=(Kind.GOAL,), viewer=viewer)
    return select_newest(db, goals, limit, before, f"{_STATUS} = coalesce(?, {_STATUS})", (status,))


def list_unfinished(db: Connection, viewer: Viewer, limit: int) -> list[Memory]:
    """List goals that are open or in progress: the earliest due date first, then the most important."""
    clause, values = condition(Filter(viewer=viewer))
    # Without statistics the planner would sort all goals.
    query = f"SELECT seq FROM memory INDEXED BY memory_unfinished_goal WHERE {_IS_UNFINISHED} AND {clause} {_DUE_FIRST}"  # noqa: S608 - constant text
    return select(db, f"seq IN ({query} LIMIT ?) {_DUE_FIRST}", (*values, limit))


def list_likely_questions(db: Connection, limit: int) -> tuple[str, list[str]]:
    """Return the texts of unfinished goals."""
    return "goal", [goal.content for goal in list_unfinished(db, Viewer(), limit)]
