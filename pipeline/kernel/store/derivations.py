"""Memories that maintenance jobs derive from other memories, and the possible sources.

A job's edges carry its name, so that no source is used twice: a job ignores memories from which it derived something
before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.kernel.records import Kind, Memory, Source, Tier
from pipeline.kernel.store.memories import select
from pipeline.kernel.store.rows import find_row, list_rows
from pipeline.kernel.store.visibility import may_be_derived_from

CONSOLIDATE = "consolidate"
LESSONS = "lessons"

# Nothing is derived from a session that is incognito by now.
_OPEN = f"archived_at IS NULL AND candidate = 0 AND instructs = 0 AND subject IS NULL AND {may_be_derived_from()}"
_MADE = f"made_by IN ('{CONSOLIDATE}', '{LESSONS}')"
_SPENT = "EXISTS (SELECT 1 FROM edge WHERE to_seq = memory.seq AND kind = 'derived_from' AND made_by = ?)"
_OWN = f"EXISTS (SELECT 1 FROM edge WHERE from_seq = memory.seq AND kind = 'derived_from' AND {_MADE})"  # noqa: S608
_EPISODIC = (
    f"{_OPEN} AND kind IN ('{Kind.EPISODE}', '{Kind.ACTIVITY}', '{Kind.FACT}') "
    f"AND tier IN ('{Tier.WORKING}', '{Tier.EPISODIC}') AND NOT {_SPENT} AND NOT {_OWN}"
)
_MONTH = "substr(occurred_at, 1, 7)"


@dataclass(frozen=True, slots=True)
class Subject:
    """An entity that memories have in common."""

    seq: int
    kind: str
    name: str

    @property
    def key(self) -> str:
        """Return a key that stays the same if its row is created again."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Memories that can be summarized together: same subject, scope, trust, branch and month (`2026-11`)."""

    subject: Subject
    scope_kind: str
    scope_id: str
    trust: str
    branch: str
    month: str


def subjects(db: Connection, kind: str, after: int, least: int, limit: int) -> list[Subject]:
    """List entities of a kind that at least `least` memories mention, in row order above a row number."""
    return list_rows(
        db,
        Subject,
        "SELECT seq, kind, name FROM entity WHERE kind = ? AND seq > ? AND (SELECT count(*) FROM "
        "(SELECT 1 FROM mention WHERE entity_seq = entity.seq LIMIT ?) found) = ? ORDER BY seq LIMIT ?",
        (kind, after, least, least, limit),
    )


def buckets(db: Connection, subject: Subject, before: str) -> list[tuple[Bucket, int]]:
    """List the unsummarized memories about a subject as buckets with their sizes."""
    rows = db.execute(
        f"SELECT scope_kind, scope_id, trust, coalesce(branch, ''), {_MONTH}, count(*) "  # noqa: S608 - constant text
        "FROM mention JOIN memory ON memory.seq = mention.memory_seq "
        f"WHERE entity_seq = ? AND occurred_at < ? AND {_EPISODIC} GROUP BY 1, 2, 3, 4, 5 ORDER BY 5, 1, 2, 3, 4",
        (subject.seq, before, CONSOLIDATE),
    )
    return [(Bucket(subject, *row[:5]), row[5]) for row in rows]


def list_bucket(db: Connection, bucket: Bucket, before: str, limit: int) -> list[Memory]:
    """List the oldest unsummarized memories of a bucket in order of time."""
    return select(
        db,
        "seq IN (SELECT memory_seq FROM mention WHERE entity_seq = ?) AND scope_kind = ? AND scope_id = ? "  # noqa: S608
        f"AND trust = ? AND coalesce(branch, '') = ? AND {_MONTH} = ? AND occurred_at < ? AND {_EPISODIC} "
        "ORDER BY occurred_at, seq LIMIT ?",
        (
            bucket.subject.seq,
            bucket.scope_kind,
            bucket.scope_id,
            bucket.trust,
            bucket.branch,
            bucket.month,
            before,
            CONSOLIDATE,
            limit,
        ),
    )


def summaries(db: Connection) -> dict[str, list[int]]:
    """Return the active summaries: bucket key → row numbers."""
    rows = db.execute(
        "SELECT seq, json_extract(metadata, '$.bucket') FROM memory WHERE archived_at IS NULL AND kind = 'fact' "
        "AND seq IN (SELECT from_seq FROM edge WHERE kind = 'derived_from' AND made_by = ?) ORDER BY seq",
        (CONSOLIDATE,),
    )
    summaries_by_bucket: dict[str, list[int]] = {}
    for seq, bucket in rows:
        summaries_by_bucket.setdefault(bucket, []).append(seq)
    return summaries_by_bucket


def list_outdated(db: Connection) -> list[int]:
    """List the active summaries with a source that changed later, by row number."""
    return list_rows(
        db,
        int,
        "SELECT DISTINCT s.seq FROM edge e JOIN memory s ON s.seq = e.from_seq JOIN memory m ON m.seq = e.to_seq "
        "WHERE e.kind = 'derived_from' AND e.made_by = ? AND s.archived_at IS NULL AND m.updated_at > s.updated_at "
        "ORDER BY s.seq",
        (CONSOLIDATE,),
    )


def sources(db: Connection, seq: int) -> list[Memory]:
    """List the current sources of a memory in order of time.

    A source that was archived because of its age remains a source; a source that a person archived or that was merged
    does not.
    """
    return select(
        db,
        f"seq IN (SELECT to_seq FROM edge WHERE from_seq = ? AND kind = 'derived_from' AND {_MADE}) "  # noqa: S608
        "AND (archived_at IS NULL OR EXISTS (SELECT 1 FROM audit WHERE memory_id = memory.id "
        "AND action = 'archive' AND undone_at IS NULL)) AND instructs = 0 "
        f"AND {may_be_derived_from()} ORDER BY occurred_at, seq",
        (seq,),
    )


def list_derived_summaries(db: Connection, seq: int) -> list[int]:
    """List the memories that maintenance jobs derived from a memory, reviewed or not, by row number: they quote it."""
    return list_rows(
        db,
        int,
        f"SELECT from_seq FROM edge WHERE to_seq = ? AND kind = 'derived_from' AND {_MADE} ORDER BY from_seq",  # noqa: S608
        (seq,),
    )


def is_made_of(db: Connection, seq: int, source_seq: int) -> bool:
    """Return whether a maintenance job derived a memory from another."""
    return seq in list_derived_summaries(db, source_seq)


def are_unused_sources(db: Connection, seqs: Sequence[Memory], job: str) -> bool:
    """Return whether memories are unchanged since they were read, and the job has used none of them."""
    for memory in seqs:
        row = db.execute(
            f"SELECT content_hash, archived_at IS NULL, {_SPENT} FROM memory WHERE seq = ?",  # noqa: S608 - constant text
            (job, memory.seq),
        ).fetchone()
        if row != (memory.content_hash, 1, 0):
            return False
    return True


def list_memories_without_lesson(db: Connection, since: str, after: int, limit: int) -> list[Memory]:
    """List memories since a time that are no lesson's source yet, in row order above a row number."""
    return select(
        db,
        f"seq > ? AND occurred_at >= ? AND {_OPEN} AND kind IN ('{Kind.EPISODE}', '{Kind.ACTIVITY}', '{Kind.FACT}') "
        f"AND NOT {_SPENT} AND NOT {_OWN} ORDER BY seq LIMIT ?",
        (after, since, LESSONS, limit),
    )


def list_later(db: Connection, memory: Memory, until: str, limit: int) -> list[Memory]:
    """List the memories after a memory in its session and scope, in order of time, up to a time."""
    return select(
        db,
        "session_id = ? AND (occurred_at, seq) > (?, ?) AND occurred_at <= ? AND scope_kind = ? AND scope_id = ? "
        f"AND {_OPEN} AND kind IN ('{Kind.EPISODE}', '{Kind.ACTIVITY}', '{Kind.FACT}') "
        f"AND NOT {_SPENT} AND NOT {_OWN} ORDER BY occurred_at, seq LIMIT ?",
        (
            memory.session_id,
            memory.occurred_at,
            memory.seq,
            until,
            memory.scope.kind,
            memory.scope.id or "",
            LESSONS,
            limit,
        ),
    )


def count_stating_sessions(db: Connection, seq: int) -> int:
    """Count the sessions in which a person stated a text, including repetitions."""
    return (
        find_row(
            db,
            int,
            "SELECT count(DISTINCT session) FROM (SELECT session_id AS session FROM memory WHERE seq = ?1 UNION ALL "  # noqa: S608
            "SELECT json_extract(detail, '$.session_id') FROM history WHERE memory_seq = ?1 AND event = 'merged' "
            f"AND coalesce(json_extract(detail, '$.source'), '') IN ('{Source.USER}', '{Source.AMBIENT}')) said",
            (seq,),
        )
        or 0
    )


def list_deciding_sessions(db: Connection, since: str, before: str, limit: int, skipped: int) -> list[str]:
    """List sessions with a decision since a time that have no new memories after another time."""
    return list_rows(
        db,
        str,
        f"SELECT session_id FROM memory WHERE session_id IS NOT NULL AND {_OPEN} GROUP BY session_id "  # noqa: S608 - constant text
        "HAVING max(occurred_at) >= ? AND max(created_at) < ? "
        f"AND count(*) FILTER (WHERE kind = '{Kind.DECISION}') > 0 ORDER BY session_id LIMIT ? OFFSET ?",
        (since, before, limit, skipped),
    )


def list_accomplishments(db: Connection, since: str, limit: int) -> list[Memory]:
    """List activities and milestones since a time, the last first."""
    return select(
        db,
        f"kind IN ('{Kind.ACTIVITY}', '{Kind.MILESTONE}') AND occurred_at >= ? AND {_OPEN} "
        "ORDER BY occurred_at DESC, seq DESC LIMIT ?",
        (since, limit),
    )


def list_of_session(db: Connection, session_id: str) -> list[Memory]:
    """List the memories of a session in order of time."""
    return select(db, f"session_id = ? AND {_OPEN} ORDER BY occurred_at, seq LIMIT 500", (session_id,))


def common_subjects(db: Connection, first: int, other: int) -> list[str]:
    """List the names of entities that two memories both mention."""
    return list_rows(
        db,
        str,
        "SELECT e.name FROM mention a JOIN mention b ON b.entity_seq = a.entity_seq "
        "JOIN entity e ON e.seq = a.entity_seq WHERE a.memory_seq = ? AND b.memory_seq = ? "
        "AND e.kind NOT IN ('date', 'version', 'port', 'person', 'organisation', 'place', 'name') ORDER BY e.name",
        (first, other),
    )


def find_surface_form(db: Connection, subject: Subject) -> str:
    """Return the most frequent spelling of a subject."""
    row = db.execute(
        "SELECT surface FROM mention WHERE entity_seq = ? GROUP BY surface ORDER BY count(*) DESC, surface LIMIT 1",
        (subject.seq,),
    ).fetchone()
    return subject.name if row is None else str(row[0])
