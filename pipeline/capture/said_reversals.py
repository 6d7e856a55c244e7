"""Mark choices as superseded when a person reverses them, without waiting for the next maintenance job."""

from sqlite3 import Connection
from typing import Final

from pipeline.jobs.mining.edges import REPLACEABLE, REPLACING
from pipeline.jobs.mining.reversals import find_reversed_subjects, reverses
from pipeline.records import EdgeKind, Filter
from pipeline.store import changes, edges, memories

MAKER: Final = "capture"
# The newest decisions and facts that a reversal may be about.
MAX_CHOICES: Final = 200


def supersede_reversed(db: Connection, memory_id: str) -> None:
    """Mark the earlier choices that a new memory reverses as superseded; a candidate supersedes nothing."""
    newer = memories.get(db, memory_id)
    if newer is None or newer.kind not in REPLACING or not find_reversed_subjects(newer.content):
        return
    choices = memories.page(db, Filter(scope=newer.scope, kinds=tuple(REPLACEABLE)), MAX_CHOICES, None)
    earlier = [choice.seq for choice in choices if choice.occurred_at <= newer.occurred_at and choice.id != newer.id]
    open_to_edges = edges.list_open_to_edges(db, [newer.seq, *earlier])
    if newer.seq not in (memory.seq for memory in open_to_edges):
        return
    superseded = [
        older.id
        for older in open_to_edges
        if older.seq != newer.seq
        and reverses(newer.content, older.content)
        and edges.find(db, newer.seq, EdgeKind.SUPERSEDES, older.seq, MAKER, newer.created_at)
    ]
    if superseded:
        changes.append_link(db, EdgeKind.SUPERSEDES, newer.id, superseded)
