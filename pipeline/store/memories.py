"""The memory table: one row a memory, archived by date, purged by deletion."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.records import Anchor, FactKey, Filter, Kind, Memory, Scope, ScopeKind, Source, Tier, Trust, Viewer
from pipeline.store.visibility import condition, lasting, owned

COLUMNS = (
    "seq, id, content, kind, scope_kind, scope_id, tags, metadata, source, trust, importance, tier, pinned, "
    "session_id, created_at, occurred_at, updated_at, archived_at, content_hash, recall_count, merge_count, "
    "details, anchor, branch, candidate, instructs, subject, attribute, valid_from, valid_to"
)

_EDITABLE = frozenset(
    {"content", "content_hash", "importance", "tags", "metadata", "pinned", "details", "anchor", "branch", "trust"}
    | {"instructs", "candidate", "given_importance"}
)


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory that passed the door and waits to be inserted."""

    id: str
    content: str
    kind: Kind
    scope: Scope
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    source: Source
    trust: Trust
    importance: float
    tier: Tier
    session_id: str | None
    created_at: str
    occurred_at: str
    content_hash: str
    details: Mapping[str, Any] = field(default_factory=dict)
    anchor: Anchor | None = None
    branch: str | None = None
    candidate: bool = False
    instructs: bool = False
    key: FactKey | None = None
    valid_from: str | None = None
    valid_to: str | None = None


class Standing(NamedTuple):
    """What ranks a memory beside its relevance.

    `visible` tells whether it reaches the whole workspace and is not archived, `days` is its Julian day, `repeats` how
    often it was written again.
    """

    seq: int
    visible: bool
    importance: float
    days: float
    kind: str
    repeats: int


def insert(db: Connection, memory: NewMemory) -> int:
    """Insert a memory and return its row number."""
    cursor = db.execute(
        """
        INSERT INTO memory (id, content, kind, scope_kind, scope_id, tags, metadata, source, trust, importance, tier,
            pinned, session_id, created_at, occurred_at, updated_at, content_hash, details, anchor, branch, candidate,
            instructs, subject, attribute, valid_from, valid_to)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            memory.id,
            memory.content,
            memory.kind,
            memory.scope.kind,
            memory.scope.id or "",
            json.dumps(memory.tags),
            json.dumps(memory.metadata, ensure_ascii=False),
            memory.source,
            memory.trust,
            memory.importance,
            memory.tier,
            memory.session_id,
            memory.created_at,
            memory.occurred_at,
            memory.created_at,
            memory.content_hash,
            json.dumps(memory.details, ensure_ascii=False),
            anchor_text(memory.anchor),
            memory.branch,
            int(memory.candidate),
            int(memory.instructs),
            None if memory.key is None else memory.key.subject,
            None if memory.key is None else memory.key.attribute,
            memory.valid_from,
            memory.valid_to,
        ),
    )
    return int(cursor.lastrowid or 0)


def find_active_text(db: Connection, scope: Scope, content_hash: str) -> Memory | None:
    """Return the active memory of the same scope that says exactly this."""
    row = db.execute(
        f"SELECT {COLUMNS} FROM memory WHERE scope_kind = ? AND scope_id = ? AND content_hash = ? "  # noqa: S608 - constant columns
        "AND archived_at IS NULL AND subject IS NULL",
        (scope.kind, scope.id or "", content_hash),
    ).fetchone()
    return None if row is None else _memory(row)


def get(db: Connection, memory_id: str) -> Memory | None:
    """Return a memory by id, archived or not."""
    row = db.execute(f"SELECT {COLUMNS} FROM memory WHERE id = ?", (memory_id,)).fetchone()  # noqa: S608 - constant columns
    return None if row is None else _memory(row)


def ending_in(db: Connection, short_id: str) -> list[Memory]:
    """List the memories, archived ones aside, whose id ends so."""
    return select(db, "archived_at IS NULL AND substr(id, -length(?)) = ?", (short_id, short_id))


def ids_ending_in(db: Connection, end: str) -> list[str]:
    """List the ids that end so, those of archived memories too, two at most."""
    rows = db.execute("SELECT id FROM memory WHERE substr(id, -length(?)) = ? LIMIT 2", (end, end))
    return [row[0] for row in rows]


def by_seqs(db: Connection, seqs: Iterable[int]) -> dict[int, Memory]:
    """Return the memories with these row numbers, archived or not."""
    rows = db.execute(
        f"SELECT {COLUMNS} FROM memory WHERE seq IN (SELECT value FROM json_each(?))",  # noqa: S608 - constant columns
        (json.dumps(list(seqs)),),
    )
    return {row[0]: _memory(row) for row in rows}


def by_ids(db: Connection, ids: Iterable[str]) -> dict[str, Memory]:
    """Return the memories with these ids, archived or not."""
    found = select(db, "id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
    return {memory.id: memory for memory in found}


def select(db: Connection, rest: str, values: Sequence[Any]) -> list[Memory]:
    """List memories by the rest of a statement after WHERE, which is constant text of a sibling module."""
    return [_memory(row) for row in db.execute(f"SELECT {COLUMNS} FROM memory WHERE {rest}", values)]  # noqa: S608


def standings(db: Connection, after_change: int) -> list[Standing]:
    """Return what ranks the memories that changed after a change number; all of them for one below 0."""
    changed = (
        "seq IN (SELECT m.seq FROM change c JOIN memory m ON m.id = c.memory_id WHERE c.seq > ?)"
        if after_change >= 0
        else "? < 0"
    )
    clause, values = lasting()
    rows = db.execute(
        f"SELECT seq, {clause}, importance, julianday(occurred_at), kind, merge_count "  # noqa: S608 - constant text
        f"FROM memory WHERE {changed}",
        (*values, after_change),
    )
    return [Standing(*row) for row in rows]


def showable(db: Connection, seqs: Sequence[int], wanted: Filter) -> dict[int, Memory]:
    """Return those of the given memories that the filter lets through, in the order given."""
    clause, values = condition(wanted)
    rows = db.execute(
        f"SELECT {COLUMNS} FROM memory WHERE seq IN (SELECT value FROM json_each(?)) AND {clause}",  # noqa: S608 - constant text
        (json.dumps(list(seqs)), *values),
    )
    found = {row[0]: _memory(row) for row in rows}
    return {seq: found[seq] for seq in seqs if seq in found}


def visible_seqs(db: Connection, wanted: Filter) -> list[int]:
    """List the row numbers of everything that the filter lets through."""
    clause, values = condition(wanted)
    return [row[0] for row in db.execute(f"SELECT seq FROM memory WHERE {clause}", values)]  # noqa: S608 - constant text


def owned_seqs(db: Connection, wanted: Filter) -> list[int]:
    """List the row numbers of what a caller sees beyond what reaches the whole workspace."""
    clause, values = owned(wanted)
    return [row[0] for row in db.execute(f"SELECT seq FROM memory WHERE {clause}", values)]  # noqa: S608 - constant text


def owns_any(db: Connection, viewer: Viewer) -> bool:
    """Tell whether anything was ever written into a viewer's own scopes, whatever became of it."""
    if viewer.everything:
        anything = f"SELECT 1 FROM memory WHERE scope_kind <> '{ScopeKind.WORKSPACE}' LIMIT 1"  # noqa: S608 - constant text
        return db.execute(anything).fetchone() is not None
    named = [(kind, owner) for kind in ScopeKind if kind != ScopeKind.WORKSPACE and (owner := getattr(viewer, kind))]
    # Said with the first condition for the query planner: only then does it take the index of owned memories.
    statement = (
        f"SELECT 1 FROM memory WHERE scope_kind <> '{ScopeKind.WORKSPACE}' AND scope_kind = ? AND scope_id = ? LIMIT 1"  # noqa: S608 - constant text
    )
    return any(db.execute(statement, one).fetchone() is not None for one in named)


def leading(db: Connection, wanted: Filter, limit: int) -> list[Memory]:
    """List memories by pin, importance and recency."""
    clause, values = condition(wanted)
    rows = db.execute(
        f"SELECT {COLUMNS} FROM memory WHERE {clause} "  # noqa: S608 - constant text
        "ORDER BY pinned DESC, importance DESC, occurred_at DESC, seq DESC LIMIT ?",
        (*values, limit),
    )
    return [_memory(row) for row in rows]


def page(db: Connection, wanted: Filter, limit: int, before: int | None) -> list[Memory]:
    """List memories newest first, from below a row number."""
    clause, values = condition(wanted)
    rows = db.execute(
        f"SELECT {COLUMNS} FROM memory WHERE {clause} AND seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608 - constant text
        (*values, before if before is not None else 2**62, limit),
    )
    return [_memory(row) for row in rows]


def lately(db: Connection, wanted: Filter, since: str, limit: int, looked_at: int) -> list[Memory]:
    """List what happened since a moment, the latest first, among the last that were written."""
    clause, values = condition(wanted)
    return select(
        db,
        f"seq IN (SELECT seq FROM memory WHERE {clause} ORDER BY seq DESC LIMIT ?) "  # noqa: S608 - constant text
        "AND occurred_at >= ? ORDER BY occurred_at DESC, seq DESC LIMIT ?",
        (*values, looked_at, since, limit),
    )


def update(db: Connection, seq: int, values: Mapping[str, Any], at: str) -> None:
    """Set some columns of a memory and its time of change."""
    if not _EDITABLE.issuperset(values):
        raise ValueError(f"not editable: {sorted(set(values) - _EDITABLE)}")
    if "importance" in values:
        # What is given counts from the day that it is given; nights let it fade from there.
        values = {"given_importance": values["importance"], **values}
    settings = ", ".join(f"{column} = ?" for column in values)
    db.execute(
        f"UPDATE memory SET {settings}, updated_at = ? WHERE seq = ?",  # noqa: S608 - column names checked above
        (*values.values(), at, seq),
    )


def given_importance(db: Connection, seq: int) -> float:
    """Return the importance that a memory was given, before nights let it fade."""
    row = db.execute("SELECT coalesce(given_importance, importance) FROM memory WHERE seq = ?", (seq,)).fetchone()
    return float(row[0])


def reinforce(db: Connection, seq: int, *, importance: float, confirmed: bool, tags: Sequence[str], at: str) -> None:
    """Count a repeated write; keep the strongest importance ever given and all tags, and trust what was confirmed."""
    db.execute(
        "UPDATE memory SET merge_count = merge_count + 1, "
        "importance = max(importance, coalesce(given_importance, 0), ?), given_importance = max(given_importance, ?), "
        "tags = ?, updated_at = ?, trust = iif(?, 'trusted', trust) WHERE seq = ?",
        (importance, importance, json.dumps(tags), at, confirmed, seq),
    )


def unreinforce(db: Connection, seq: int, *, importance: float, trust: str, tags: Sequence[str], at: str) -> None:
    """Take a reinforcement back."""
    db.execute(
        "UPDATE memory SET merge_count = max(0, merge_count - 1), importance = ?, "
        "given_importance = iif(importance = ?, given_importance, ?), trust = ?, tags = ?, updated_at = ? "
        "WHERE seq = ?",
        (importance, importance, importance, trust, json.dumps(tags), at, seq),
    )


def archive(db: Connection, seq: int, at: str, merged_into: int | None = None) -> None:
    """Take a memory out of every answer, reversibly; `merged_into` is the one that speaks for it now."""
    db.execute(
        "UPDATE memory SET archived_at = ?, updated_at = ?, merged_into = ? WHERE seq = ?", (at, at, merged_into, seq)
    )


def restore(db: Connection, seq: int, at: str) -> None:
    """Undo an archive."""
    db.execute("UPDATE memory SET archived_at = NULL, merged_into = NULL, updated_at = ? WHERE seq = ?", (at, seq))


def merged_into(db: Connection, seq: int) -> list[Memory]:
    """List what was merged into a memory, directly or by way of others."""
    return select(
        db,
        "seq IN (WITH RECURSIVE part (seq) AS (SELECT seq FROM memory WHERE merged_into = ? UNION "
        "SELECT m.seq FROM memory m JOIN part ON m.merged_into = part.seq) SELECT seq FROM part)",
        (seq,),
    )


def purge(db: Connection, seq: int) -> None:
    """Delete a memory's row for good."""
    db.execute("DELETE FROM memory WHERE seq = ?", (seq,))


def after(db: Connection, seq: int, limit: int) -> list[tuple[int, str | None, str]]:
    """List (row number, session, time) of the memories written after a row, in row order."""
    return db.execute(
        "SELECT seq, session_id, occurred_at FROM memory WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit)
    ).fetchall()


def active_texts(db: Connection, after_seq: int, limit: int) -> list[tuple[int, str, str]]:
    """List (row number, content, time) of what may be found by words above a row number, in row order.

    Facts that hold no longer are among them: they answer questions about the past.
    """
    return db.execute(
        "SELECT seq, content, occurred_at FROM memory "
        "WHERE archived_at IS NULL AND candidate = 0 AND seq > ? ORDER BY seq LIMIT ?",
        (after_seq, limit),
    ).fetchall()


def written_by_agent(db: Connection, session_id: str, since: str) -> bool:
    """Tell whether an agent kept something itself in a session since a moment."""
    row = db.execute(
        "SELECT 1 FROM memory WHERE session_id = ? AND source = 'agent' AND created_at >= ? LIMIT 1",
        (session_id, since),
    ).fetchone()
    return row is not None


def last_seq(db: Connection) -> int:
    """Return the highest row number, 0 without any memory."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM memory").fetchone()[0])


def all_seqs(db: Connection) -> list[int]:
    """List every memory's row number, archived ones included."""
    return [row[0] for row in db.execute("SELECT seq FROM memory ORDER BY seq")]


def _memory(row: Sequence[Any]) -> Memory:
    return Memory(
        seq=row[0],
        id=row[1],
        content=row[2],
        kind=Kind(row[3]),
        scope=Scope(ScopeKind(row[4]), row[5] or None),
        # Most memories hold none of these, and parsing would be a third of the work.
        tags=() if row[6] == "[]" else tuple(json.loads(row[6])),
        metadata={} if row[7] == "{}" else json.loads(row[7]),
        source=Source(row[8]),
        trust=Trust(row[9]),
        importance=row[10],
        tier=Tier(row[11]),
        pinned=bool(row[12]),
        session_id=row[13],
        created_at=row[14],
        occurred_at=row[15],
        updated_at=row[16],
        archived_at=row[17],
        content_hash=row[18],
        recall_count=row[19],
        merge_count=row[20],
        details={} if row[21] == "{}" else json.loads(row[21]),
        anchor=None if row[22] is None else Anchor(**json.loads(row[22])),
        branch=row[23],
        candidate=bool(row[24]),
        instructs=bool(row[25]),
        key=None if row[26] is None else FactKey(row[26], row[27]),
        valid_from=row[28],
        valid_to=row[29],
    )


def anchor_text(anchor: Anchor | None) -> str | None:
    """Return an anchor as the column holds it."""
    return None if anchor is None else json.dumps(asdict(anchor), ensure_ascii=False)
