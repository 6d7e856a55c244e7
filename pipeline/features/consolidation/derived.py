"""Derive a memory from other memories: choose sentences, in any language, and write the result.

The row, edges, tail, change log, work and decision are written together.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Any

from pipeline.features.review import store as review
from pipeline.kernel.records import Draft, EdgeKind, Kind, Memory, Outcome, Source, Tier, Trust
from pipeline.kernel.records.digestion import DIGESTION
from pipeline.kernel.store import changes, derivations, edges, history, index_state, memories, work
from pipeline.kernel.store.database import Database
from pipeline.text.instructions import instructs
from pipeline.text.memory_terms import memory_terms
from pipeline.text.redaction import redact
from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import search_tokens
from pipeline.write.prepare import prepare
from pipeline.write.reindex import reindex

FEWEST, MOST = 3, 5
MAX_SENTENCE_CHARS = 400
# A longer text is represented by its beginning.
READ_CHARS = 2000
CUT = "…"

_DIGIT = re.compile(r"\d")
# This share of a model's words must occur in its prompt.
_GROUNDED = 0.6


@dataclass(frozen=True, slots=True)
class Derivation:
    """A memory that a job wants to derive from others, all of one scope."""

    job: str
    content: str
    kind: Kind
    sources: Sequence[Memory]
    metadata: Mapping[str, Any]
    details: Mapping[str, Any]
    importance: float
    candidate: bool = False


def prepare_derived(derivation: Derivation, at: str) -> Memory:
    """Return the memory as it will be stored: without secrets, and marked as evidence if any source is."""
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
    """Store a derived memory; return its row number, None if its sources changed or it adds nothing new."""
    memory = prepare_derived(derivation, at)
    if memory.instructs:
        return None
    tokens = memory_terms(memory)
    with database.write() as db:
        if not derivations.are_unused_sources(db, derivation.sources, derivation.job):
            return None
        if memories.find_active_text(db, memory.scope, memory.content_hash) is not None:
            return None
        seq = memories.insert(db, memory)
        _add_edges(db, seq, derivation, at)
        if memory.candidate:
            changes.append(db, changes.CANDIDATE, [memory.id])
        else:
            index_state.put_tokens(db, seq, tokens, changes.append(db, changes.CREATE, [memory.id]))
        work.add(db, [seq], DIGESTION, time.time())
        outcome = Outcome.CANDIDATE if memory.candidate else Outcome.CREATED
        reasons = ("derived by a nightly job",)
        review.add_decisions(db, [review.Decision(memory.id, at, outcome, 1.0, reasons, Source.AGENT, memory.kind)])
    return seq


def rewrite(database: Database, known: Memory, derivation: Derivation, at: str) -> bool:
    """Rewrite a derived memory from more or other sources; return False if a source or the memory changed meanwhile."""
    memory = prepare_derived(derivation, at)
    added = derivation.sources
    with database.write() as db:
        current = memories.by_seqs(db, [known.seq]).get(known.seq)
        if current is None or current.content_hash != known.content_hash or current.archived_at is not None:
            return False
        duplicate = memories.find_active_text(db, memory.scope, memory.content_hash)
        if memory.instructs or (duplicate is not None and duplicate.seq != known.seq):
            return False
        sources = {source.seq for source in derivations.sources(db, known.seq)}
        joined = [source for source in added if source.seq not in sources]
        if not derivations.are_unused_sources(db, joined, derivation.job):
            return False
        values = {
            "content": memory.content,
            "content_hash": memory.content_hash,
            "metadata": {**current.metadata, **memory.metadata},
        }
        memories.update(db, known.seq, values, at)
        _add_edges(db, known.seq, derivation, at)
        changes.append(db, changes.EDIT, [known.id])
        if memory.content_hash != known.content_hash:
            history.add(db, known.seq, at, "edited", known.content, {"by": derivation.job})
        reindex(db, current)
    return True


def _add_edges(db: Connection, seq: int, derivation: Derivation, at: str) -> None:
    for source in derivation.sources:
        edges.add(db, seq, EdgeKind.DERIVED_FROM, source.seq, derivation.job, at)


def shorten(sentence: str) -> str:
    """Return a sentence of at most this many characters, cut between words."""
    if len(sentence) <= MAX_SENTENCE_CHARS:
        return sentence
    head = sentence[:MAX_SENTENCE_CHARS]
    return f"{head.rsplit(' ', 1)[0]}{CUT}"


def find_central_sentences(sources: Sequence[Memory]) -> list[tuple[Memory, str]]:
    """Return the sentences that are most common to some memories, with their memories, one sentence per memory."""
    parts = [
        (index, sentence)
        for index, memory in enumerate(sources)
        for sentence in split_sentences(memory.content[:READ_CHARS])
    ]
    tokens = [frozenset(search_tokens(sentence)) for _, sentence in parts]
    mentions: Counter[str] = Counter()
    for index in range(len(sources)):
        mentions.update(frozenset[str]().union(*(t for t, (p, _) in zip(tokens, parts, strict=True) if p == index)))
    # A term of only one memory does not represent the others.
    weights = {token: math.log(times) for token, times in mentions.items()}
    limit = min(MOST, max(FEWEST, len(sources) // 2))
    chosen: dict[int, str] = {}
    while len(chosen) < limit:
        left = [number for number, (index, _) in enumerate(parts) if index not in chosen]
        if not left:
            break
        best = max(left, key=lambda n: (sum(weights[t] for t in tokens[n]) / math.sqrt(len(tokens[n]) + 4), -n))
        chosen[parts[best][0]] = parts[best][1]
        for token in tokens[best]:
            # Repeating a term is worth less each time.
            weights[token] /= 2
    return [(sources[index], shorten(chosen[index])) for index in sorted(chosen)]


def is_grounded(text: str, prompt: str) -> bool:
    """Tell whether a model's text is limited to its prompt: every number and name, and most of its words."""
    tokens, known = set(search_tokens(text)), set(search_tokens(prompt))
    if not tokens or instructs(text) or redact(text).kinds:
        return False
    invented = tokens - known
    return not any(map(_DIGIT.search, invented)) and len(invented) <= (1 - _GROUNDED) * len(tokens)
