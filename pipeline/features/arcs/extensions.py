"""What arcs add to maintenance: the memories that they keep, and likely questions."""

from sqlite3 import Connection

from pipeline.features.arcs import store as arcs
from pipeline.kernel.records import Viewer

# A condition on `memory m`.
IS_KEPT = (
    "EXISTS (SELECT 1 FROM arc_member am JOIN arc a ON a.seq = am.arc_seq "
    "WHERE am.memory_seq = m.seq AND a.status = 'active')"
)


def list_likely_questions(db: Connection, limit: int) -> tuple[str, list[str]]:
    """Return the titles of active arcs."""
    return "arc", [arc.title for arc in arcs.page(db, Viewer(), arcs.ArcStatus.ACTIVE, limit, None)]
