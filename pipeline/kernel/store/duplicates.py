"""Near-duplicates: pairs that await a verdict, and merging two memories and undoing it."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection
from typing import Any

from ulid import ULID

from pipeline.kernel.kinds import (
    apply_standing,
    confirms_all_fields,
    is_repeated_statement,
    join_standing,
    list_standing,
)
from pipeline.kernel.records import EdgeKind, Memory, Scope, ScopeKind, Source, Stage, Trust, Viewer
from pipeline.kernel.store import audit, changes, edges, history, index_state, memories, work
from pipeline.kernel.store.memories import select
from pipeline.kernel.store.rows import DELETE, Relation, Rows, Table, has_row
from pipeline.kernel.store.visibility import ONLY_NORMAL, may_be_derived_from, reach_condition


class PairState(StrEnum):
    """The state of a pair."""

    WAITING = "waiting"
    MERGED = "merged"
    KEPT = "kept"


# The reasons of pairs that rules or a model keep apart; their verdict is void if the text changes.
KEPT_APART_BY_RULES = "rules tell them apart"
ASKED = "a model does not take them for one"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories by row number, their cosine, and why they were not merged automatically.

    `settled_at` is the time of the verdict; for a pending pair, of the last look of a job.
    """

    seq: int
    id: str
    older_seq: int
    newer_seq: int
    cosine: float
    reasons: tuple[str, ...]
    state: PairState
    at: str
    settled_at: str | None


# Memories of sessions that are incognito by now are not compared.
_OPEN = f"{{0}}.archived_at IS NULL AND {{0}}.candidate = 0 AND {may_be_derived_from('{0}')}"
_PAIRS = Rows(Pair, "pair p", settled_at="nullif(p.settled_at, '')")


def add(db: Connection, older_seq: int, newer_seq: int, cosine: float, reasons: Sequence[str], at: str) -> None:
    """Add a pending pair; a known pair keeps its verdict."""
    db.execute(
        "INSERT INTO pair (id, older_seq, newer_seq, cosine, reasons, state, at) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (str(ULID()), older_seq, newer_seq, round(cosine, 4), json.dumps(reasons), PairState.WAITING, at),
    )


# Memories that wait for embedding are excluded: their vectors belong to an older text.
_COMPARABLE = (
    "seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND subject IS NULL "
    # Refused memories are compared with later ones.
    "AND (archived_at IS NULL OR id IN (SELECT memory_id FROM refusal)) "
    "AND NOT EXISTS (SELECT 1 FROM work w WHERE w.stage = 'embed' AND w.memory_seq = memory.seq)"
)


def list_comparable(db: Connection, seqs: Sequence[int]) -> list[Memory]:
    """List, oldest first, which of some memories can be merged with another of the same scope."""
    return select(db, f"{_COMPARABLE} ORDER BY seq", (json.dumps(list(seqs)),))


def find_scopes(db: Connection, seqs: Sequence[int]) -> dict[int, Scope]:
    """Return the scopes of those of some memories that can be merged, by row number."""
    rows = db.execute(
        f"SELECT seq, scope_kind, scope_id FROM memory WHERE {_COMPARABLE}",  # noqa: S608 - constant text
        (json.dumps(list(seqs)),),
    )
    return {seq: Scope(ScopeKind(kind), owner or None) for seq, kind, owner in rows}


def find_last_statement(db: Connection, seq: int) -> tuple[str, int]:
    """Return when a memory was last stated, by itself or by a repetition: (time, row number)."""
    row = db.execute(
        """
        WITH RECURSIVE told (seq) AS (
            SELECT ?1 UNION SELECT m.seq FROM told JOIN memory m ON m.merged_into = told.seq
        )
        SELECT occurred_at, seq FROM memory WHERE seq IN (SELECT seq FROM told)
        UNION ALL
        SELECT json_extract(detail, '$.occurred_at'), 0 FROM history
            WHERE memory_seq IN (SELECT seq FROM told) AND event = 'merged'
                AND json_extract(detail, '$.occurred_at') IS NOT NULL
        ORDER BY 1 DESC, 2 DESC LIMIT 1
        """,
        (seq,),
    ).fetchone()
    return str(row[0]), int(row[1])


def compare_again(db: Connection, seq: int) -> None:
    """Queue a new comparison when a superseded memory is stated again."""
    if edges.list_superseding(db, [seq]):
        work.add(db, [seq], [Stage.DEDUP], time.time())


def get(db: Connection, pair_id: str) -> Pair | None:
    """Return a pair by id."""
    return _PAIRS.fetch_one(db, "WHERE p.id = ?", (pair_id,))


def is_known(db: Connection, older_seq: int, newer_seq: int) -> bool:
    """Return whether two memories are a pair already, or parts of them were marked as different."""
    row = db.execute("SELECT 1 FROM pair WHERE older_seq = ? AND newer_seq = ?", (older_seq, newer_seq)).fetchone()
    return row is not None or is_marked_different(db, older_seq, newer_seq)


def is_marked_different(db: Connection, older_seq: int, newer_seq: int) -> bool:
    """Return whether two memories, or memories merged into them, were marked as different."""
    return has_row(
        db,
        """
        WITH RECURSIVE
            one (seq) AS (SELECT ?1 UNION SELECT m.seq FROM one JOIN memory m ON m.merged_into = one.seq),
            other (seq) AS (SELECT ?2 UNION SELECT m.seq FROM other JOIN memory m ON m.merged_into = other.seq)
        SELECT 1 FROM pair WHERE state = ?3 AND (
            (older_seq IN (SELECT seq FROM one) AND newer_seq IN (SELECT seq FROM other))
            OR (older_seq IN (SELECT seq FROM other) AND newer_seq IN (SELECT seq FROM one))) LIMIT 1
        """,
        (older_seq, newer_seq, PairState.KEPT),
    )


def list_waiting(db: Connection, viewer: Viewer, limit: int, before: int | None) -> list[Pair]:
    """List the pending pairs whose memories are both active and visible to a viewer, newest first."""
    reach, values = reach_condition(viewer)
    reach += f" AND {ONLY_NORMAL}" if viewer.only_normal else ""
    # Looked up per pair: a join could make the planner combine every two memories.
    mine = f"EXISTS (SELECT 1 FROM memory WHERE seq = p.{{0}} AND archived_at IS NULL AND {reach})"  # noqa: S608 - constant text
    return _PAIRS.fetch(
        db,
        f"WHERE p.state = ? AND p.seq < ? "
        f"AND {mine.format('older_seq')} AND {mine.format('newer_seq')} ORDER BY p.seq DESC LIMIT ?",
        (PairState.WAITING, before if before is not None else 2**62, *values, *values, limit),
    )


def list_pairs_of(db: Connection, seq: int, limit: int) -> list[Pair]:
    """List the pending pairs of a memory, the most similar first."""
    return _PAIRS.fetch(
        db,
        "JOIN memory a ON a.seq = p.older_seq JOIN memory b ON b.seq = p.newer_seq "
        "WHERE (p.older_seq = ? OR p.newer_seq = ?) AND p.state = ? "
        "AND a.archived_at IS NULL AND b.archived_at IS NULL ORDER BY p.cosine DESC, p.seq DESC LIMIT ?",
        (seq, seq, PairState.WAITING, limit),
    )


def list_due(db: Connection, at: str, after: int, limit: int, *, asking: bool) -> list[Pair]:
    """List pending pairs above a number that are new, or of which a memory changed since the last look.

    Pairs that the run of `at` has seen are excluded. With `asking`, pairs that no model has seen are included.
    """
    return _PAIRS.fetch(
        db,
        f"JOIN memory a ON a.seq = p.older_seq JOIN memory b ON b.seq = p.newer_seq "  # noqa: S608
        f"WHERE p.state = ? AND p.seq > ? AND {_OPEN.format('a')} AND {_OPEN.format('b')} "
        "AND coalesce(p.settled_at, '') < ? AND (p.settled_at IS NULL OR max(a.updated_at, b.updated_at) >= "
        "p.settled_at OR (? = 1 AND NOT EXISTS (SELECT 1 FROM json_each(p.reasons) WHERE value = ?))) "
        "ORDER BY p.seq LIMIT ?",
        (PairState.WAITING, after, at, asking, ASKED, limit),
    )


def note(db: Connection, pair_id: str, reasons: Sequence[str], at: str) -> None:
    """Record why a pair is still pending, and the time."""
    db.execute("UPDATE pair SET reasons = ?, settled_at = ? WHERE id = ?", (json.dumps(reasons), at, pair_id))


def settle(db: Connection, pair_id: str, state: PairState, at: str) -> None:
    """Set the verdict of a pair."""
    db.execute("UPDATE pair SET state = ?, settled_at = ? WHERE id = ?", (state, at, pair_id))


def keep(db: Connection, older_seq: int, newer_seq: int, at: str) -> None:
    """Mark two memories as different, whether they were a pair or not."""
    db.execute(
        "INSERT INTO pair (id, older_seq, newer_seq, cosine, reasons, state, at, settled_at) "
        "VALUES (?, ?, ?, 0, '[]', ?, ?, ?) "
        "ON CONFLICT (older_seq, newer_seq) DO UPDATE SET state = excluded.state, settled_at = excluded.settled_at",
        (str(ULID()), older_seq, newer_seq, PairState.KEPT, at, at),
    )


# Detail of an archival: the refused memory that this memory repeats.
REFUSED = "refused"
# Automatic comparisons: the stage and the two maintenance jobs.
DEDUP = "dedup"
DEDUP_JOB = "dedup-job"
EDGES_JOB = "edges-job"


def merge(db: Connection, survivor: Memory, absorbed: Memory, actor: str, at: str, detail: Mapping[str, Any]) -> str:
    """Merge a memory into a survivor, which keeps its text in the history; return the id of the audit entry."""
    memories.archive(db, absorbed.seq, at, merged_into=survivor.seq)
    index_state.drop_tokens(db, absorbed.seq)
    memories.reinforce(
        db,
        survivor.seq,
        importance=absorbed.importance,
        confirmed=_confirms(absorbed, survivor),
        tags=tuple(dict.fromkeys((*survivor.tags, *absorbed.tags))),
        at=at,
    )
    strengthen(db, survivor, absorbed, at)
    compare_again(db, survivor.seq)
    noted = {"memory_id": absorbed.id, "by": actor, **detail}
    history.add(
        db, survivor.seq, at, "merged", absorbed.content, noted, about_seq=absorbed.seq, uid=f"merge-{absorbed.id}"
    )
    edges.add(db, survivor.seq, EdgeKind.SUPERSEDES, absorbed.seq, actor, at)
    changes.append(db, changes.MERGE, [survivor.id])
    changes.append(db, changes.ARCHIVE, [absorbed.id])
    known = {"before": _snapshot_standing(survivor), **detail}
    return audit.add(db, at, actor, audit.AuditAction.MERGE, absorbed.id, survivor.id, known)


def strengthen(db: Connection, survivor: Memory, repeated: Memory, at: str) -> dict[str, Any]:
    """Give a memory the stronger fields of its repetition; return the resulting value of each field that differs."""
    mine, theirs = list_standing(survivor), list_standing(repeated)
    joined = join_standing(mine, theirs)
    changed = apply_standing(survivor, joined)
    if changed:
        memories.update(db, survivor.seq, changed, at)
    return {name: value for name, value in joined.items() if name in theirs and mine[name] != theirs[name]}


def undo_merge(
    db: Connection, survivor: Memory, absorbed: Memory, entry: audit.AuditEntry, at: str, tokens: Sequence[str]
) -> None:
    """Undo a merge: restore both memories, and prevent another automatic merge.

    `tokens` are the search tokens of the restored memory. Raises sqlite3.IntegrityError if an active memory has the
    same text.
    """
    memories.restore(db, absorbed.seq, at)
    number = changes.append(db, changes.RESTORE, [absorbed.id])
    if not absorbed.candidate:
        index_state.put_tokens(db, absorbed.seq, tokens, number)
    take_back(db, survivor, absorbed, entry, at)
    work.add(db, [survivor.seq, absorbed.seq], [Stage.DEDUP], time.time())
    older, newer = sorted((survivor.seq, absorbed.seq))
    keep(db, older, newer, at)


def take_back(db: Connection, survivor: Memory, absorbed: Memory, entry: audit.AuditEntry, at: str) -> None:
    """Remove the contribution of a merged memory from the survivor, except fields that were changed since."""
    history.forget_merge(db, survivor.seq, absorbed.seq)
    edges.remove(db, survivor.seq, EdgeKind.SUPERSEDES, absorbed.seq)
    before = entry.detail.get("before")
    if before is not None:
        others: list[Memory] = []
        for later in audit.list_later_merges(db, entry):
            # A later undo of this earlier merge must not bring back the contribution of the undone one.
            if "before" in later.detail:
                left = _without(survivor, absorbed, later.detail["before"], before, others)
                audit.amend(db, later.id, {**later.detail, "before": left})
            other = memories.get(db, later.memory_id)
            others += [] if other is None else [other]
        left = _without(survivor, absorbed, _snapshot_standing(survivor), before, others)
        standing = {name: left.pop(name) for name in list_standing(survivor)}
        memories.unreinforce(db, survivor.seq, **left, at=at)
        if changed := apply_standing(survivor, standing):
            memories.update(db, survivor.seq, changed, at)
    changes.append(db, changes.EDIT, [survivor.id])


def forget_findings(db: Connection, seq: int) -> None:
    """Delete results of comparing a memory's old text: pending pairs and rules' verdicts, but not people's verdicts."""
    db.execute(
        "DELETE FROM pair WHERE (older_seq = ? OR newer_seq = ?) "
        "AND (state = ? OR EXISTS (SELECT 1 FROM json_each(reasons) WHERE value = ?))",
        (seq, seq, PairState.WAITING, KEPT_APART_BY_RULES),
    )
    edges.forget_found(db, seq, (DEDUP, DEDUP_JOB, EDGES_JOB))


def _confirms(absorbed: Memory, survivor: Memory) -> bool:
    """Return whether a person confirmed every rendered field of a memory; an agent may only repeat what it read."""
    vouched_for = absorbed.trust is Trust.TRUSTED and absorbed.source is not Source.AGENT
    return (vouched_for or is_repeated_statement(absorbed, survivor)) and confirms_all_fields(absorbed, survivor)


def _snapshot_standing(memory: Memory) -> dict[str, Any]:
    return {
        "importance": memory.importance,
        "tags": list(memory.tags),
        "trust": memory.trust,
        **list_standing(memory),
    }


def _without(
    survivor: Memory,
    absorbed: Memory,
    standing: Mapping[str, Any],
    before: Mapping[str, Any],
    others: Sequence[Memory],
) -> dict[str, Any]:
    """Return a memory's values without the contribution of a merged memory, unless a later merge repeats it."""
    left = dict(standing)
    if standing["importance"] == absorbed.importance:
        left["importance"] = max([before["importance"], *(other.importance for other in others)])
    tags = {*before["tags"], *(tag for other in others for tag in other.tags)}
    left["tags"] = [tag for tag in standing["tags"] if tag in tags or tag not in absorbed.tags]
    if _confirms(absorbed, survivor) and not any(_confirms(other, survivor) for other in others):
        left["trust"] = before["trust"]
    theirs = list_standing(absorbed)
    for name in theirs.keys() & standing.keys() & before.keys():
        earlier = {name: before[name]}
        if standing[name] == theirs[name] and join_standing(earlier, theirs) != earlier:
            for other in others:
                earlier = join_standing(earlier, list_standing(other))
            left |= earlier
    return left


TABLES = (
    Table(
        "pair",
        memory=("older_seq", "newer_seq"),
        erasure=DELETE,
        replicated=Relation(
            "verdict",
            fields=("state", "settled_at"),
            key="min(a.id, b.id), max(a.id, b.id), ''",
            source="pair r JOIN memory a ON a.seq = r.older_seq JOIN memory b ON b.seq = r.newer_seq "
            "WHERE r.state <> 'waiting'",
            chosen="r.seq IN (SELECT p.seq FROM memory m JOIN pair p ON p.older_seq = m.seq OR p.newer_seq = m.seq "
            "WHERE m.id IN (SELECT value FROM json_each(?)))",
            put=(
                (
                    "INSERT INTO pair (id, older_seq, newer_seq, cosine, reasons, state, at, settled_at) "
                    "VALUES (:new_id, :older_seq, :newer_seq, 0, '[]', :state, :settled_at, :settled_at) "
                    "ON CONFLICT (older_seq, newer_seq) "
                    "DO UPDATE SET state = excluded.state, settled_at = excluded.settled_at"
                ),
            ),
            drop="DELETE FROM pair WHERE older_seq = :older_seq AND newer_seq = :newer_seq",
            is_named=False,
        ),
        is_per_scope=True,
        orphans="pairs",
    ),
)
