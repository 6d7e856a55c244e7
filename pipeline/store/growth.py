"""How much is known, and how it came together over time; counted along indexes, so that a large store is no slower."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from sqlite3 import Connection
from typing import NamedTuple

from pipeline.records import Kind


@dataclass(frozen=True, slots=True)
class Known:
    """What a workspace knows, every scope of it.

    `kinds` counts active memories by kind, most first, and names no kind that there is none of; `candidates` wait for
    review; `sessions` are those that anything was ever kept of.
    """

    kinds: Mapping[Kind, int]
    archived: int
    candidates: int
    sessions: int

    @property
    def active(self) -> int:
        """Return the number of active memories."""
        return sum(self.kinds.values())


class MemoryCounts(NamedTuple):
    """Memories by state, and the active ones by kind and by source; `sessions` are those with any active one."""

    active: int
    archived: int
    sessions: int
    by_kind: Mapping[str, int]
    by_source: Mapping[str, int]


# What is not active; each condition has an index of its own, which holds few rows beside all others.
_ARCHIVED = "WHERE archived_at IS NOT NULL"
_CANDIDATE = "WHERE candidate = 1 AND archived_at IS NULL"


def known(db: Connection) -> Known:
    """Count what is known; the same until the next change, or until another candidate waits."""
    active, archived, candidates = (_by_kind(db, where) for where in ("", _ARCHIVED, _CANDIDATE))
    # An index tells the kinds of all; what is hidden is looked at and taken away.
    active.subtract(archived)
    active.subtract(candidates)
    ordered = sorted(active.items(), key=lambda item: (-item[1], item[0]))
    (sessions,) = db.execute("SELECT count(DISTINCT session_id) FROM memory WHERE session_id IS NOT NULL").fetchone()
    return Known(
        {Kind(kind): count for kind, count in ordered if count}, archived.total(), candidates.total(), sessions
    )


def counts(db: Connection) -> MemoryCounts:
    """Count memories: active, archived, and active by kind and by source."""
    active, archived = db.execute(
        "SELECT count(*) FILTER (WHERE archived_at IS NULL), count(*) FILTER (WHERE archived_at IS NOT NULL) "
        "FROM memory"
    ).fetchone()
    by_kind = db.execute("SELECT kind, count(*) FROM memory WHERE archived_at IS NULL GROUP BY kind ORDER BY kind")
    by_source = db.execute(
        "SELECT source, count(*) FROM memory WHERE archived_at IS NULL GROUP BY source ORDER BY source"
    )
    sessions = db.execute("SELECT count(DISTINCT session_id) FROM memory WHERE archived_at IS NULL").fetchone()[0]
    return MemoryCounts(active, archived, sessions, dict(by_kind.fetchall()), dict(by_source.fetchall()))


def waiting(db: Connection) -> int:
    """Count the candidates that wait for review."""
    return int(db.execute(f"SELECT count(*) FROM memory {_CANDIDATE}").fetchone()[0])  # noqa: S608 - constant text


def _by_kind(db: Connection, where: str) -> Counter[str]:
    # The sign keeps the planner from taking the index of kinds where it would look up every row.
    grouped = "+kind" if where else "kind"
    return Counter(dict(db.execute(f"SELECT kind, count(*) FROM memory {where} GROUP BY {grouped}").fetchall()))  # noqa: S608 - constant text


def facts_that_hold(db: Connection, moment: str) -> int:
    """Count the keys that have a value at a moment, in whatever scope."""
    row = db.execute(
        "SELECT count(*) FROM (SELECT DISTINCT subject, attribute, scope_kind, scope_id FROM memory "
        "WHERE subject IS NOT NULL AND archived_at IS NULL AND candidate = 0 "
        "AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?))",
        (moment, moment),
    ).fetchone()
    return int(row[0])


def span(db: Connection) -> tuple[str, str] | None:
    """Return when the first and the last memory happened, None without any."""
    ends = [
        db.execute(
            "SELECT occurred_at FROM memory WHERE occurred_at <> '' "  # noqa: S608 - constant text
            f"ORDER BY occurred_at {order} LIMIT 1"
        ).fetchone()
        for order in ("ASC", "DESC")
    ]
    return None if ends[0] is None else (ends[0][0], ends[1][0])


def happened_between(db: Connection, bounds: Sequence[str]) -> list[int]:
    """Count what happened between each two successive moments, the first of them included; archived memories too."""
    statement = "SELECT count(*) FROM memory WHERE occurred_at <> '' AND occurred_at >= ? AND occurred_at < ?"
    return [int(db.execute(statement, pair).fetchone()[0]) for pair in pairwise(bounds)]


def is_told_by_agents(db: Connection, latest: int) -> bool:
    """Tell whether an agent ever began a session here, or kept one of the latest memories."""
    row = db.execute(
        "SELECT EXISTS (SELECT 1 FROM agent_session) OR EXISTS (SELECT 1 FROM memory "
        "WHERE seq > (SELECT max(seq) FROM memory) - ? AND source IN ('agent', 'ambient'))",
        (latest,),
    ).fetchone()
    return bool(row[0])
