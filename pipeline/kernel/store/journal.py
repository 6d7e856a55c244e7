"""The journal of memories: memories in order of time, and their numbers over time."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.kernel.records import Kind, Memory, ScopeKind, Source
from pipeline.kernel.store.memories import select
from pipeline.kernel.store.rows import find_row, has_row, join_conditions
from pipeline.kernel.store.visibility import visible_to_condition

# For longer sessions the exact number of memories does not matter.
MOST_COUNTED = 1000


class ArchivedFilter(StrEnum):
    """Whether archived memories are listed in addition to the others, or alone."""

    ALSO = "also"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class JournalQuery:
    """Filter of the journal; times are RFC 3339 UTC text, `since` inclusive, `until` exclusive.

    `entity` is an id or a name (ignoring case); `owner` is the owner of an owned scope; `person` is the viewer.
    """

    kind: Kind | None = None
    source: Source | None = None
    scope: ScopeKind | None = None
    owner: str | None = None
    tag: str | None = None
    entity: str | None = None
    session_id: str | None = None
    since: str | None = None
    until: str | None = None
    archived: ArchivedFilter | None = None
    person: str | None = None


class JournalPosition(NamedTuple):
    """A position in the order of time: the memory's time and row number."""

    at: str
    seq: int


@dataclass(frozen=True, slots=True)
class SessionSpan:
    """Duration of a session and its number of active memories; `MOST_COUNTED` means that many or more."""

    first_at: str
    last_at: str
    memories: int


def page(db: Connection, sought: JournalQuery, limit: int, before: JournalPosition | None) -> list[Memory]:
    """List memories in order of time, the latest first, before a position."""
    clause, values = _condition(sought)
    if before is not None:
        clause += " AND (occurred_at, seq) < (?, ?)"
        values.extend(before)
    source = (
        "memory INDEXED BY memory_journal WHERE occurred_at <> ''" if _follows_time(sought) else "memory WHERE true"
    )
    # Select row numbers first, so that the sorted rows are small.
    return select(
        db,
        f"seq IN (SELECT seq FROM {source} AND {clause} ORDER BY occurred_at DESC, seq DESC LIMIT ?) "  # noqa: S608 - constant text
        "ORDER BY occurred_at DESC, seq DESC",
        (*values, limit),
    )


def span(db: Connection, session_id: str) -> SessionSpan | None:
    """Return start, end and number of memories of a session, None without an active memory."""
    active = "FROM memory WHERE session_id = ? AND archived_at IS NULL AND candidate = 0"
    # Each end is a single step on the index of sessions.
    ends = [
        db.execute(f"SELECT occurred_at {active} ORDER BY occurred_at {order} LIMIT 1", (session_id,)).fetchone()
        for order in ("ASC", "DESC")
    ]
    if ends[0] is None:
        return None
    (count,) = db.execute(
        f"SELECT count(*) FROM (SELECT 1 {active} LIMIT ?) found",  # noqa: S608 - constant text
        (session_id, MOST_COUNTED),
    ).fetchone()
    return SessionSpan(ends[0][0], ends[1][0], count)


def _condition(sought: JournalQuery) -> tuple[str, list[Any]]:
    parts, values = ["candidate = 0", visible_to_condition(sought.person)], list[Any]()
    if sought.archived is not ArchivedFilter.ALSO:
        parts.append("archived_at IS NULL" if sought.archived is None else "archived_at IS NOT NULL")
    if sought.scope is not None:
        # Repeated for the planner: only then does it use the index of owned memories.
        owned = "" if sought.scope is ScopeKind.WORKSPACE else "scope_kind <> 'workspace' AND "
        parts.append(f"{owned}scope_kind = ?")
        values.append(sought.scope)
    if sought.entity is not None:
        parts.append(
            "seq IN (SELECT memory_seq FROM mention WHERE entity_seq IN "
            "(SELECT seq FROM entity WHERE id = ? OR name = ? OR lower(name) = ?))"
        )
        values += [sought.entity, sought.entity, sought.entity.lower()]
    chosen, chosen_values = join_conditions(
        {
            "kind = ?": sought.kind,
            "source = ?": sought.source,
            "scope_id = ?": sought.owner,
            "instr(tags, ?) > 0": None if sought.tag is None else f'"{sought.tag}"',
            "session_id = ?": sought.session_id,
            "occurred_at >= ?": sought.since,
            "occurred_at < ?": sought.until,
        }
    )
    return " AND ".join([*parts, chosen]), [*values, *chosen_values]


def _follows_time(sought: JournalQuery) -> bool:
    """Return whether to scan back in time until enough memories match: only if that is likely to be fast.

    Rare matches are looked up by an index or in the order of the file, which is twice as fast as a scan in order of
    time.
    """
    rare = (sought.kind, sought.source, sought.owner, sought.tag, sought.entity, sought.session_id)
    return (
        all(value is None for value in rare)
        and sought.scope in (None, ScopeKind.WORKSPACE)
        and sought.archived is not ArchivedFilter.ONLY
    )


@dataclass(frozen=True, slots=True)
class Known:
    """The content of a workspace in all scopes.

    `kinds` counts active memories by kind, most first, without empty kinds; `candidates` await review; `sessions`
    counts sessions that ever had a memory.
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
    """Memories by state, and active memories by kind and source; `sessions` have at least one active memory."""

    active: int
    archived: int
    sessions: int
    by_kind: Mapping[str, int]
    by_source: Mapping[str, int]


# Inactive memories; each condition has a small index.
_ARCHIVED = "WHERE archived_at IS NOT NULL"
_CANDIDATE = "WHERE candidate = 1 AND archived_at IS NULL"


def count_known(db: Connection) -> Known:
    """Count a workspace's content; the result is valid until the next change or candidate."""
    active, archived, candidates = (_by_kind(db, where) for where in ("", _ARCHIVED, _CANDIDATE))
    # An index counts the kinds of all memories; hidden memories are subtracted.
    active.subtract(archived)
    active.subtract(candidates)
    ordered = sorted(active.items(), key=lambda item: (-item[1], item[0]))
    (sessions,) = db.execute("SELECT count(DISTINCT session_id) FROM memory WHERE session_id IS NOT NULL").fetchone()
    return Known(
        {Kind(kind): count for kind, count in ordered if count}, archived.total(), candidates.total(), sessions
    )


def count_memories(db: Connection) -> MemoryCounts:
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


def count_candidates(db: Connection) -> int:
    """Count the candidates that await review."""
    return int(db.execute(f"SELECT count(*) FROM memory {_CANDIDATE}").fetchone()[0])  # noqa: S608 - constant text


def _by_kind(db: Connection, where: str) -> Counter[str]:
    # An expression keeps the planner from using the index of kinds, which would look up every row.
    grouped = "kind || ''" if where else "kind"
    return Counter(dict(db.execute(f"SELECT {grouped}, count(*) FROM memory {where} GROUP BY 1").fetchall()))  # noqa: S608 - constant text


def count_current_facts(db: Connection, moment: str) -> int:
    """Count the keys that have a value at a time, in all scopes."""
    return (
        find_row(
            db,
            int,
            "SELECT count(*) FROM (SELECT DISTINCT subject, attribute, scope_kind, scope_id FROM memory "
            "WHERE subject IS NOT NULL AND archived_at IS NULL AND candidate = 0 "
            "AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?)) facts",
            (moment, moment),
        )
        or 0
    )


def has_agent_writers(db: Connection, latest: int) -> bool:
    """Return whether an agent ever started a session here, or wrote one of the latest memories."""
    return has_row(
        db,
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM agent_session) OR EXISTS (SELECT 1 FROM memory "
        "WHERE seq > (SELECT max(seq) FROM memory) - ? AND source IN ('agent', 'ambient'))",
        (latest,),
    )
