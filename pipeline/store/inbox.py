"""What waits for a person: how much of each kind, and which memories contradict each other."""

from dataclasses import dataclass
from sqlite3 import Connection
from typing import NamedTuple

from pipeline.store.duplicates import PairState
from pipeline.times import utc_now

# Beyond, the exact number helps nobody, and counting it would hold up the page.
MOST_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much waits, `MOST_COUNTED` standing for that many or more; `acts` are those that can still be undone."""

    candidates: int
    pairs: int
    contradictions: int
    acts: int

    @property
    def decisions(self) -> int:
        """Return how many decisions a person has to make."""
        return self.candidates + self.pairs + self.contradictions


class FoundContradiction(NamedTuple):
    """Two memories by row number, the first of which denies the second, and who found that when."""

    from_seq: int
    to_seq: int
    made_by: str
    at: str


# A text that ended or was put away denies nothing any more; of two that deny each other, one edge is told.
_CONTRADICTIONS = """
    FROM edge e JOIN memory a ON a.seq = e.from_seq JOIN memory b ON b.seq = e.to_seq
    WHERE e.kind = 'contradicts' AND a.archived_at IS NULL AND b.archived_at IS NULL
    AND a.candidate = 0 AND b.candidate = 0
    AND (a.valid_to IS NULL OR a.valid_to > :now) AND (b.valid_to IS NULL OR b.valid_to > :now)
    AND NOT (e.from_seq < e.to_seq AND EXISTS (SELECT 1 FROM edge r
        WHERE r.from_seq = e.to_seq AND r.kind = 'contradicts' AND r.to_seq = e.from_seq))
"""
_PAIRS = f"""
    FROM pair p JOIN memory a ON a.seq = p.older_seq JOIN memory b ON b.seq = p.newer_seq
    WHERE p.state = '{PairState.WAITING}' AND a.archived_at IS NULL AND b.archived_at IS NULL
"""
_ACTS = "FROM audit a JOIN memory m ON m.id = a.memory_id WHERE a.undone_at IS NULL AND m.archived_at IS NOT NULL"
_COUNTED = ("FROM memory WHERE candidate = 1 AND archived_at IS NULL", _PAIRS, _CONTRADICTIONS, _ACTS)


def waiting(db: Connection) -> Waiting:
    """Count what waits."""
    values = {"now": utc_now(), "most": MOST_COUNTED}
    counts = (f"SELECT count(*) FROM (SELECT 1 {those} LIMIT :most)" for those in _COUNTED)  # noqa: S608 - constant text
    return Waiting(*(db.execute(one, values).fetchone()[0] for one in counts))


def contradictions(db: Connection, limit: int, before: tuple[int, int] | None) -> list[FoundContradiction]:
    """List the contradictions between what is active, reviewed and holds, the latest memory's first.

    `before` are the row numbers of the one that the list goes on from.
    """
    rows = db.execute(
        f"SELECT e.from_seq, e.to_seq, e.made_by, e.at {_CONTRADICTIONS} "
        "AND (e.from_seq, e.to_seq) < (:from_seq, :to_seq) ORDER BY e.from_seq DESC, e.to_seq DESC LIMIT :limit",
        dict(zip(("from_seq", "to_seq"), before or (2**62, 0), strict=True)) | {"now": utc_now(), "limit": limit},
    )
    return [FoundContradiction(*row) for row in rows]
