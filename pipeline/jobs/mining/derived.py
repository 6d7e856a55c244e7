"""Write what a job made of other memories: the row, its edges, tail, change log, work and decision together."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Any

from pipeline.records import Draft, EdgeKind, Kind, Memory, Outcome, Source, Tier, Trust
from pipeline.store import admissions, changes, derivations, edges, history, memories, tail, work
from pipeline.store.admissions import Decision
from pipeline.store.database import Database
from pipeline.text.tokens import memory_tokens
from pipeline.write.accept import DIGESTION
from pipeline.write.prepare import prepare


@dataclass(frozen=True, slots=True)
class Derivation:
    """A memory that a job wants to make of others, which all have one scope."""

    job: str
    content: str
    kind: Kind
    sources: Sequence[Memory]
    metadata: Mapping[str, Any]
    details: Mapping[str, Any]
    importance: float
    candidate: bool = False


def prepared(derivation: Derivation, at: str) -> Memory:
    """Return the memory as it will be stored: without secrets, and evidence if any of its sources is."""
    sources = derivation.sources
    draft = Draft(
        derivation.content,
        kind=derivation.kind,
        importance=derivation.importance,
        scope=sources[0].scope,
        metadata={"made_by": derivation.job, **derivation.metadata},
        source=Source.AGENT,
        occurred_at=max(source.occurred_at for source in sources),
        details=derivation.details,
        branch=sources[0].branch,
    )
    hearsay = any(source.trust is Trust.EVIDENCE for source in sources)
    return replace(
        prepare(draft).memory,
        trust=Trust.EVIDENCE if hearsay else Trust.TRUSTED,
        tier=Tier.SEMANTIC,
        created_at=at,
        candidate=derivation.candidate,
    )


def write_new(database: Database, derivation: Derivation, at: str) -> int | None:
    """Store a derived memory; return its row number, None when its sources changed meanwhile or it says nothing new."""
    memory = prepared(derivation, at)
    if memory.instructs:
        return None
    tokens = memory_tokens(memory.content, memory.occurred_at)
    with database.write() as db:
        if not derivations.are_unspent(db, derivation.sources, derivation.job):
            return None
        if memories.find_active_text(db, memory.scope, memory.content_hash) is not None:
            return None
        seq = memories.insert(db, memory)
        _draw_edges(db, seq, derivation, at)
        if not memory.candidate:
            tail.put(db, seq, tokens, changes.append(db, changes.CREATE, [memory.id]))
        work.add(db, [seq], DIGESTION, time.time())
        outcome = Outcome.CANDIDATE if memory.candidate else Outcome.CREATED
        reasons = ("derived at night",)
        admissions.add(db, [Decision(memory.id, at, outcome, 1.0, reasons, Source.AGENT, memory.kind)])
    return seq


def rewrite(database: Database, known: Memory, derivation: Derivation, at: str) -> bool:
    """Let a derived memory tell more or other sources; return whether it does, which one changed meanwhile does not."""
    memory = prepared(derivation, at)
    added = derivation.sources
    with database.write() as db:
        current = memories.by_seqs(db, [known.seq]).get(known.seq)
        if current is None or current.content_hash != known.content_hash or current.archived_at is not None:
            return False
        twin = memories.find_active_text(db, memory.scope, memory.content_hash)
        if memory.instructs or (twin is not None and twin.seq != known.seq):
            return False
        joined = [source for source in added if source.seq not in _known_sources(db, known.seq)]
        if not derivations.are_unspent(db, joined, derivation.job):
            return False
        values = {
            "content": memory.content,
            "content_hash": memory.content_hash,
            "metadata": {**current.metadata, **memory.metadata},
        }
        memories.update(db, known.seq, values, at)
        _draw_edges(db, known.seq, derivation, at)
        number = changes.append(db, changes.EDIT, [known.id])
        if memory.content_hash != known.content_hash:
            history.add(db, known.seq, at, "edited", known.content, {"by": derivation.job})
            work.add(db, [known.seq], DIGESTION, time.time())
            tail.put(db, known.seq, memory_tokens(memory.content, known.occurred_at), number)
    return True


def _known_sources(db: Connection, seq: int) -> set[int]:
    return {source.seq for source in derivations.sources(db, seq)}


def _draw_edges(db: Connection, seq: int, derivation: Derivation, at: str) -> None:
    for source in derivation.sources:
        edges.add(db, seq, EdgeKind.DERIVED_FROM, source.seq, derivation.job, at)
