"""Goals: memories that have a status, how far they have come, and when they are due."""

from sqlite3 import Connection

from pipeline.records import Kind, Memory, Viewer
from pipeline.store.memories import select
from pipeline.store.visibility import Filter, condition

UNFINISHED = ("open", "in_progress")
_STATUS = "coalesce(json_extract(details, '$.status'), 'open')"


def page(db: Connection, viewer: Viewer, status: str | None, limit: int, before: int | None) -> list[Memory]:
    """List goals newest first, of one status or all."""
    clause, values = condition(Filter(kinds=(Kind.GOAL,), viewer=viewer))
    return select(
        db,
        f"{clause} AND {_STATUS} = coalesce(?, {_STATUS}) AND seq < ? ORDER BY seq DESC LIMIT ?",
        (*values, status, before if before is not None else 2**62, limit),
    )


def unfinished(db: Connection, viewer: Viewer, limit: int) -> list[Memory]:
    """List the goals that are open or in progress: what is due first, then what matters most."""
    clause, values = condition(Filter(kinds=(Kind.GOAL,), viewer=viewer))
    return select(
        db,
        f"{clause} AND {_STATUS} IN (?, ?) "
        "ORDER BY json_extract(details, '$.due_at') IS NULL, json_extract(details, '$.due_at'), importance DESC, "
        "seq DESC LIMIT ?",
        (*values, *UNFINISHED, limit),
    )
