"""What happened, the latest first: every memory that was let in, ended facts too, for the person whose home this is."""

from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.records import Kind, Memory, ScopeKind, Source
from pipeline.store.memories import select

# Of a long session nobody needs to know how many memories more it has.
MOST_COUNTED = 1000


class ArchivedFilter(StrEnum):
    """Whether archived memories are listed beside the others, or alone."""

    ALSO = "also"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class JournalQuery:
    """What a journal is to tell of; times are RFC 3339 UTC text, `since` inclusive, `until` exclusive.

    `entity` is an id, or a name whatever its case; `owner` is whose an owned scope is.
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


class JournalPlace(NamedTuple):
    """A memory's place in the order of time: when it happened, and its row number."""

    at: str
    seq: int


@dataclass(frozen=True, slots=True)
class SessionSpan:
    """How long a session lasts and how many active memories it has, `MOST_COUNTED` standing for that many or more."""

    first_at: str
    last_at: str
    memories: int


def page(db: Connection, sought: JournalQuery, limit: int, before: JournalPlace | None) -> list[Memory]:
    """List memories by when they happened, the latest first, from before a place on."""
    clause, values = _condition(sought)
    if before is not None:
        clause += " AND (occurred_at, seq) < (?, ?)"
        values.extend(before)
    source = "memory INDEXED BY memory_journal WHERE occurred_at <> ''" if _follows_time(sought) else "memory WHERE 1"
    # Chosen by number first, so that what is sorted is small.
    return select(
        db,
        f"seq IN (SELECT seq FROM {source} AND {clause} ORDER BY occurred_at DESC, seq DESC LIMIT ?) "  # noqa: S608 - constant text
        "ORDER BY occurred_at DESC, seq DESC",
        (*values, limit),
    )


def span(db: Connection, session_id: str) -> SessionSpan | None:
    """Return when a session began and ended and how much was kept of it, None for one without an active memory."""
    active = "FROM memory WHERE session_id = ? AND archived_at IS NULL AND candidate = 0"
    # Each end is one step along the index of sessions.
    ends = [
        db.execute(f"SELECT occurred_at {active} ORDER BY occurred_at {order} LIMIT 1", (session_id,)).fetchone()
        for order in ("ASC", "DESC")
    ]
    if ends[0] is None:
        return None
    (count,) = db.execute(
        f"SELECT count(*) FROM (SELECT 1 {active} LIMIT ?)",  # noqa: S608 - constant text
        (session_id, MOST_COUNTED),
    ).fetchone()
    return SessionSpan(ends[0][0], ends[1][0], count)


def _condition(sought: JournalQuery) -> tuple[str, list[Any]]:
    parts, values = ["candidate = 0"], list[Any]()
    if sought.archived is not ArchivedFilter.ALSO:
        parts.append("archived_at IS NULL" if sought.archived is None else "archived_at IS NOT NULL")
    if sought.scope is not None:
        # Said twice for the planner: only then does it take the index of owned memories.
        owned = "" if sought.scope is ScopeKind.WORKSPACE else "scope_kind <> 'workspace' AND "
        parts.append(f"{owned}scope_kind = ?")
        values.append(sought.scope)
    if sought.entity is not None:
        parts.append(
            "seq IN (SELECT memory_seq FROM mention WHERE entity_seq IN "
            "(SELECT seq FROM entity WHERE id = ? OR name = ? OR lower(name) = ?))"
        )
        values += [sought.entity, sought.entity, sought.entity.lower()]
    for clause, value in (
        ("kind = ?", sought.kind),
        ("source = ?", sought.source),
        ("scope_id = ?", sought.owner),
        ("instr(tags, ?) > 0", None if sought.tag is None else f'"{sought.tag}"'),
        ("session_id = ?", sought.session_id),
        ("occurred_at >= ?", sought.since),
        ("occurred_at < ?", sought.until),
    ):
        if value is not None:
            parts.append(clause)
            values.append(value)
    return " AND ".join(parts), values


def _follows_time(sought: JournalQuery) -> bool:
    """Tell whether to walk back in time until enough is found: where that is likely to be soon.

    What may be rare is looked for by an index of its own, or else in the order of the file, which is twice as fast as
    going through everything in the order of time.
    """
    rare = (sought.kind, sought.source, sought.owner, sought.tag, sought.entity, sought.session_id)
    return (
        all(value is None for value in rare)
        and sought.scope in (None, ScopeKind.WORKSPACE)
        and sought.archived is not ArchivedFilter.ONLY
    )
