"""Edges that callers draw and take back."""

from sqlite3 import Connection

from pipeline.errors import Conflict, FieldError, InvalidField, NotFound
from pipeline.records import EdgeDraft, EdgeKind, Memory, Trust
from pipeline.store import changes, derivations, edges, memories
from pipeline.store.database import Database
from pipeline.store.edges import Edge
from pipeline.store.visibility import reaches, viewer_within
from pipeline.times import utc_now
from pipeline.write.revise import existing, lower_trust

CALLER = "caller"


def draw(database: Database, memory_id: str, draft: EdgeDraft) -> list[Edge]:
    """Draw an edge and return the memory's edges; what is derived from evidence becomes evidence."""
    now = utc_now()
    with database.write() as db:
        memory = existing(db, memory_id)
        other = memories.get(db, draft.to)
        if other is None or other.seq == memory.seq or not reaches(other.scope, viewer_within(memory.scope)):
            raise InvalidField(FieldError("to", "names no other memory that this one can reach"))
        if edges.add(db, memory.seq, draft.kind, other.seq, CALLER, now):
            changes.append(db, changes.RELATE, [memory.id, other.id])
            if draft.kind is EdgeKind.DERIVED_FROM and other.trust is Trust.EVIDENCE:
                lower_trust(db, memory, now)
        return visible_edges(db, memory)


def erase(database: Database, memory_id: str, kind: EdgeKind, to: str) -> list[Edge]:
    """Take an edge away for good and return the memory's edges; raise NotFound when there is no such edge.

    Raises Conflict for one that a night job drew from what it wrote to what it read: a purge follows it.
    """
    now = utc_now()
    with database.write() as db:
        memory = existing(db, memory_id)
        other = memories.get(db, to)
        if other is not None and kind is EdgeKind.DERIVED_FROM and derivations.made_of(db, memory.seq, other.seq):
            raise Conflict("this memory was made of that one; archive it instead")
        if other is None or not edges.erase(db, memory.seq, kind, other.seq, now):
            raise NotFound("no such edge")
        changes.append(db, changes.RELATE, [memory.id, other.id])
        return visible_edges(db, memory)


def visible_edges(db: Connection, memory: Memory) -> list[Edge]:
    """List a memory's edges to what may be seen from where it is."""
    home = viewer_within(memory.scope)
    return [edge for edge in edges.of(db, memory.seq) if reaches(edge.other_scope, home)]
