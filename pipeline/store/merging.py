"""Two memories become one, and two again: the one act behind every merge, whoever decides on it."""

from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import Any

from pipeline.records import EdgeKind, Memory, Source, Trust
from pipeline.store import audit, changes, edges, history, memories, pairs, tail

# Who compares memories without being asked: the stage and the two jobs of the night.
DEDUP = "dedup"
DEDUP_JOB = "dedup-job"
EDGES_JOB = "edges-job"


def merge(db: Connection, survivor: Memory, absorbed: Memory, actor: str, at: str, detail: Mapping[str, Any]) -> str:
    """Let one memory speak for another, whose text it keeps in its history; return the id of the audit entry."""
    memories.archive(db, absorbed.seq, at, merged_into=survivor.seq)
    tail.drop(db, absorbed.seq)
    memories.reinforce(
        db,
        survivor.seq,
        importance=absorbed.importance,
        confirmed=_vouched_for(absorbed),
        tags=tuple(dict.fromkeys((*survivor.tags, *absorbed.tags))),
        at=at,
    )
    if absorbed.pinned and not survivor.pinned:
        memories.update(db, survivor.seq, {"pinned": 1}, at)
    told = {"memory_id": absorbed.id, "by": actor, **detail}
    history.add(db, survivor.seq, at, "merged", absorbed.content, told, about_seq=absorbed.seq)
    edges.add(db, survivor.seq, EdgeKind.SUPERSEDES, absorbed.seq, actor, at)
    changes.append(db, changes.MERGE, [survivor.id])
    changes.append(db, changes.ARCHIVE, [absorbed.id])
    known = {"before": _standing(survivor), **detail}
    return audit.add(db, at, actor, audit.AuditAction.MERGE, absorbed.id, survivor.id, known)


def forget_merge(
    db: Connection, survivor: Memory, absorbed: Memory, entry: audit.AuditEntry, at: str, tokens: Sequence[str]
) -> None:
    """Take a merge back: both are as they were, and nothing merges them again by itself.

    `tokens` are the search tokens of the one that comes back. Raises sqlite3.IntegrityError when an active memory
    says exactly what it says.
    """
    memories.restore(db, absorbed.seq, at)
    number = changes.append(db, changes.RESTORE, [absorbed.id])
    if not absorbed.candidate:
        tail.put(db, absorbed.seq, tokens, number)
    take_back(db, survivor, absorbed, entry, at)
    older, newer = sorted((survivor.seq, absorbed.seq))
    pairs.keep(db, older, newer, at)


def take_back(db: Connection, survivor: Memory, absorbed: Memory, entry: audit.AuditEntry, at: str) -> None:
    """Take from a memory what another gave it when it was merged into it; what somebody changed since stays."""
    history.forget_merge(db, survivor.seq, absorbed.seq)
    edges.remove(db, survivor.seq, EdgeKind.SUPERSEDES, absorbed.seq)
    before = entry.detail.get("before")
    if before is not None:
        others: list[Memory] = []
        for later in audit.merged_later(db, entry):
            # Undone after this one, it must not bring back what this one gave.
            if "before" in later.detail:
                left = _without(absorbed, later.detail["before"], before, others)
                audit.amend(db, later.id, {**later.detail, "before": left})
            other = memories.get(db, later.memory_id)
            others += [] if other is None else [other]
        left = _without(absorbed, _standing(survivor), before, others)
        pinned = left.pop("pinned")
        memories.unreinforce(db, survivor.seq, **left, at=at)
        memories.update(db, survivor.seq, {"pinned": int(pinned)}, at)
    changes.append(db, changes.EDIT, [survivor.id])


def forget_findings(db: Connection, seq: int) -> None:
    """Take back what was found by comparing a memory's text, as that text is no more; verdicts of people stay."""
    pairs.forget_waiting(db, seq)
    edges.forget_found(db, seq, (DEDUP, DEDUP_JOB, EDGES_JOB))


def _vouched_for(memory: Memory) -> bool:
    """Tell whether a person stands behind a memory: an agent may only repeat what it read."""
    return memory.trust is Trust.TRUSTED and memory.source is not Source.AGENT


def _standing(memory: Memory) -> dict[str, Any]:
    return {
        "importance": memory.importance,
        "tags": list(memory.tags),
        "trust": memory.trust,
        "pinned": memory.pinned,
    }


def _without(
    absorbed: Memory, standing: Mapping[str, Any], before: Mapping[str, Any], others: Sequence[Memory]
) -> dict[str, Any]:
    """Return a standing without what a merged memory gave to it and no other that was merged later gives too."""
    left = dict(standing)
    if standing["importance"] == absorbed.importance:
        left["importance"] = max([before["importance"], *(other.importance for other in others)])
    kept = {*before["tags"], *(tag for other in others for tag in other.tags)}
    left["tags"] = [tag for tag in standing["tags"] if tag in kept or tag not in absorbed.tags]
    if _vouched_for(absorbed) and not any(map(_vouched_for, others)):
        left["trust"] = before["trust"]
    if absorbed.pinned and not any(other.pinned for other in others):
        left["pinned"] = before["pinned"]
    return left
