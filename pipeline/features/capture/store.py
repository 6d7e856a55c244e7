"""Sentences that capture considered and did not store: where they are in their turns, without their text.

A short list of the newest is kept. The text is read from the turn, so that nothing of a deleted turn remains.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.kernel.store import meta

KEPT = 100


@dataclass(frozen=True, slots=True)
class NearStatement:
    """A sentence of a turn by its checksum, the probability that it lasts, its class if it does, and the reason."""

    turn_seq: int
    checksum: int
    lasts: float
    label: str
    reason: str


def checksum_of(sentence: str) -> int:
    """Return the number by which a sentence is found in its turn again."""
    return zlib.crc32(sentence.encode())


def add(db: Connection, statements: Sequence[NearStatement]) -> None:
    """Add statements of one turn, which replace its earlier ones, and drop the oldest beyond the limit."""
    read_again = {statement.turn_seq for statement in statements}
    earlier = [statement for statement in list_newest(db) if statement.turn_seq not in read_again]
    rows = [[s.turn_seq, s.checksum, round(s.lasts, 3), s.label, s.reason] for s in (*reversed(earlier), *statements)]
    meta.put(db, meta.NEAR_STATEMENTS, json.dumps(rows[-KEPT:]))


def list_newest(db: Connection) -> list[NearStatement]:
    """List the statements, newest first."""
    rows = json.loads(meta.get(db, meta.NEAR_STATEMENTS) or "[]")
    return [NearStatement(*row) for row in reversed(rows)]
