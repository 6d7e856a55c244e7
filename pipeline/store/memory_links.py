"""Links between memories that the store contains: typed edges, and entities that memories mention together."""

import json
from collections.abc import Sequence
from sqlite3 import Connection

from pipeline.records import EdgeKind

LINKING_EDGES = (EdgeKind.CAUSE, EdgeKind.SUPPORTS, EdgeKind.SUPERSEDES, EdgeKind.DERIVED_FROM)
_GIVEN = "WITH given (seq) AS MATERIALIZED (SELECT CAST(value AS BIGINT) FROM json_each(?))"


def list_linking_edges(db: Connection, seqs: Sequence[int]) -> list[tuple[int, int]]:
    """List the edges from or to some memories that lead from one subject to another, as pairs of row numbers."""
    kinds = ", ".join(f"'{kind}'" for kind in LINKING_EDGES)
    return db.execute(
        f"{_GIVEN} SELECT e.from_seq, e.to_seq FROM given g "  # noqa: S608 - constant text
        f"JOIN edge e ON e.from_seq = g.seq AND e.kind IN ({kinds}) "
        "UNION SELECT e.from_seq, e.to_seq FROM given g "
        f"JOIN edge e ON e.to_seq = g.seq AND e.kind IN ({kinds}) ORDER BY 1, 2",
        (json.dumps(list(seqs)),),
    ).fetchall()


def list_shared_entities(db: Connection, seqs: Sequence[int], most: int) -> list[tuple[int, int]]:
    """List the memories that mention an entity of some memories, as pairs of entity and memory.

    Entities in more than `most` memories are left out, and so are dates, versions and ports.
    """
    return db.execute(
        f"{_GIVEN}, named (entity_seq) AS MATERIALIZED (SELECT DISTINCT m.entity_seq FROM given g "  # noqa: S608
        "JOIN mention m ON m.memory_seq = g.seq JOIN entity e ON e.seq = m.entity_seq "
        "WHERE e.kind NOT IN ('date', 'version', 'port') AND (SELECT count(*) FROM "
        "(SELECT 1 FROM mention o WHERE o.entity_seq = e.seq LIMIT ?) counted) <= ?) "
        "SELECT m.entity_seq, m.memory_seq FROM named n JOIN mention m ON m.entity_seq = n.entity_seq ORDER BY 1, 2",
        (json.dumps(list(seqs)), most + 1, most),
    ).fetchall()
