"""Review: admission decisions, and everything that awaits a person's decision."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import NamedTuple

from pipeline.kernel.records import Kind, Outcome, Source, Viewer
from pipeline.kernel.store.duplicates import PairState
from pipeline.kernel.store.rows import DELETE, Rows, Table, find_row, list_rows
from pipeline.kernel.store.visibility import reach_condition
from pipeline.kernel.times import utc_now

# Beyond this, the exact number is not useful, and counting it would delay the page.
MOST_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Waiting:
    """Numbers of pending decisions; `MOST_COUNTED` means that many or more. `acts` can still be undone.

    `refused` counts refused texts that were offered again.
    """

    candidates: int
    pairs: int
    contradictions: int
    acts: int
    refused: int = 0

    @property
    def decisions(self) -> int:
        """Return the number of pending decisions."""
        return self.candidates + self.pairs + self.contradictions


class FoundContradiction(NamedTuple):
    """Two memories by row number, the first of which contradicts the second, the finder and the time."""

    from_seq: int
    to_seq: int
    made_by: str
    at: str


# Ended or archived texts contradict nothing; of two memories that contradict each other, one edge is listed.
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
_COUNTED = (
    "FROM memory WHERE candidate = 1 AND archived_at IS NULL",
    _PAIRS,
    _CONTRADICTIONS,
    _ACTS,
    "FROM refusal WHERE offers > 0",
)


def count_waiting(db: Connection) -> Waiting:
    """Count pending decisions."""
    values = {"now": utc_now(), "most": MOST_COUNTED}
    counts = (f"SELECT count(*) FROM (SELECT 1 {those} LIMIT :most) found" for those in _COUNTED)  # noqa: S608 - constant text
    return Waiting(*(db.execute(query, values).fetchone()[0] for query in counts))


def list_contradictions(db: Connection, limit: int, before: tuple[int, int] | None) -> list[FoundContradiction]:
    """List the contradictions between active, reviewed and current memories, the latest memory's first.

    `before` are the row numbers of the entry after which the list continues.
    """
    return list_rows(
        db,
        FoundContradiction,
        f"SELECT e.from_seq, e.to_seq, e.made_by, e.at {_CONTRADICTIONS} "
        "AND (e.from_seq, e.to_seq) < (:from_seq, :to_seq) ORDER BY e.from_seq DESC, e.to_seq DESC LIMIT :limit",
        dict(zip(("from_seq", "to_seq"), before or (2**62, 0), strict=True)) | {"now": utc_now(), "limit": limit},
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """An admission decision; `id` is the memory's, if it was stored. The hash is only kept for rejected texts."""

    id: str
    at: str
    outcome: Outcome
    score: float
    reasons: tuple[str, ...]
    source: Source
    kind: Kind
    content_hash: str | None = None


_DECISIONS = Rows(Decision, "admission")


def add_decisions(db: Connection, decisions: Sequence[Decision]) -> None:
    """Store decisions."""
    _DECISIONS.store(db, (replace(decision, score=round(decision.score, 4)) for decision in decisions))


def count_rejections(db: Connection, content_hash: str) -> int:
    """Count how often a text was rejected."""
    return find_row(db, int, "SELECT count(*) FROM admission WHERE content_hash = ?", (content_hash,)) or 0


def find_decision(db: Connection, memory_id: str) -> Decision | None:
    """Return the decision on a memory."""
    return _DECISIONS.fetch_one(db, "WHERE id = ?", (memory_id,))


def decisions_by_ids(db: Connection, memory_ids: Sequence[str]) -> dict[str, Decision]:
    """Return the decisions on some memories, by their ids."""
    decisions = _DECISIONS.fetch(db, "WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(memory_ids),))
    return {decision.id: decision for decision in decisions}


def page_decisions(
    db: Connection, outcome: Outcome | None, viewer: Viewer, limit: int, before: int | None
) -> list[tuple[int, Decision]]:
    """List (row number, decision) about memories visible to a viewer or never stored, newest first."""
    reach, values = reach_condition(viewer)
    hidden = f"EXISTS (SELECT 1 FROM memory WHERE memory.id = admission.id AND NOT {reach})"  # noqa: S608 - constant text
    rows = db.execute(
        f"SELECT {_DECISIONS.columns}, seq FROM admission "  # noqa: S608 - constant text
        f"WHERE outcome = coalesce(?, outcome) AND seq < ? AND NOT {hidden} ORDER BY seq DESC LIMIT ?",
        (outcome, before if before is not None else 2**62, *values, limit),
    )
    return [(seq, _DECISIONS.read(row)) for *row, seq in rows]


# By hash: also the decisions about other offers of the text.
TABLES = (Table("admission", memory=("id", "content_hash"), erasure=DELETE),)
