"""What decides whether one memory may replace another, read without building memories."""

import json
from collections.abc import Sequence
from sqlite3 import Connection
from typing import NamedTuple


class StatementRow(NamedTuple):
    """A memory's text, time and kind, and the columns that say how far its statement reaches."""

    seq: int
    content: str
    occurred_at: str
    kind: str
    scope_kind: str
    scope_id: str
    branch: str | None
    trust: str
    pinned: int
    instructs: int


def read_statements(db: Connection, seqs: Sequence[int]) -> dict[int, StatementRow]:
    """Return the statements of memories by row number, archived or not."""
    rows = db.execute(
        f"SELECT {', '.join(StatementRow._fields)} FROM memory "  # noqa: S608 - constant text
        "WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
        (json.dumps(list(seqs)),),
    )
    return {row[0]: StatementRow(*row) for row in rows}
