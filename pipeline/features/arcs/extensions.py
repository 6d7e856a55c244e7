"""What arcs add to maintenance: the memories that they keep, the check of their rows, likely questions."""

from sqlite3 import Connection

from pipeline.records import Viewer
from pipeline.store import arcs
from pipeline.store.invariants import Derived, is_gone

follow_scope = arcs.erase_derived
# A condition on `memory m`.
IS_KEPT = (
    "EXISTS (SELECT 1 FROM arc_member am JOIN arc a ON a.seq = am.arc_seq "
    "WHERE am.memory_seq = m.seq AND a.status = 'active')"
)
DERIVED = (
    Derived(
        "arc_members",
        "arc_member",
        ("memory_seq",),
        f"{is_gone('arc_member.memory_seq')} OR NOT EXISTS (SELECT 1 FROM arc WHERE arc.seq = arc_member.arc_seq)",  # noqa: S608 - constant text
    ),
    Derived("arcs", "arc", ("seq",), "NOT EXISTS (SELECT 1 FROM arc_member WHERE arc_member.arc_seq = arc.seq)"),
)


def list_likely_questions(db: Connection, limit: int) -> tuple[str, list[str]]:
    """Return the titles of active arcs."""
    return "arc", [arc.title for arc in arcs.page(db, Viewer(), arcs.ArcStatus.ACTIVE, limit, None)]
