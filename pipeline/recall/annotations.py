"""Annotations of memories: contradicting and superseding memories, and whether their code has changed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from sqlite3 import Connection

from pipeline.kernel.anchors import is_missing, is_stale, locate
from pipeline.kernel.records import Kind, Memory, Scope
from pipeline.kernel.records.recall import NOTHING, Annotations
from pipeline.kernel.registry import find_extensions
from pipeline.kernel.store import edges, meta
from pipeline.kernel.store.visibility import reaches, viewer_within


def refresh_staleness(memory: Memory, annotations: Annotations, checkout: str | None) -> Annotations:
    """Return annotations with the state of the code in this machine's checkout, which the store does not know."""
    if memory.anchor is None:
        return annotations
    anchor = locate(memory.anchor, checkout)
    stale = is_stale(anchor)
    # Unchanged code exists: for most memories, the file is read only once.
    return replace(annotations, stale=stale, missing=stale is not False and is_missing(anchor))


# Returns the notes about what memories state and is no longer true, by their ids.
FindBroken = Callable[[Sequence[Memory]], Mapping[str, tuple[str, ...]]]


def read_broken(db: Connection) -> FindBroken:
    """Read what features know to be no longer true, and return a function that finds it for memories."""
    finders: list[FindBroken] = [read(db) for read in find_extensions("read_broken")]
    return lambda shown: {memory_id: notes for find in finders for memory_id, notes in find(shown).items()}


def find_annotations(
    db: Connection, shown: Sequence[Memory], is_late: Callable[[], bool] = lambda: False
) -> dict[int, Annotations]:
    """Find the annotations of memories, by row number; memories without annotations are left out.

    After the deadline, no more files are read.
    """
    denied: dict[int, list[edges.Denial]] = {}
    scopes = {memory.seq: memory.scope for memory in shown}
    for denial in edges.denials(db, json.dumps(list(scopes))):
        # An edge is added where both memories could see each other; one of them may have moved since.
        if reaches(denial.other_scope, viewer_within(scopes[denial.seq])):
            denied.setdefault(denial.seq, []).append(denial)
    newer = find_superseding(db, scopes)
    checkout = meta.get(db, meta.CHECKOUT)
    annotations_by_seq = {}
    broken = read_broken(db)(shown)
    for memory in shown:
        by, notes = denied.get(memory.seq, []), broken.get(memory.id, ())
        settled = memory.key is None and any(denial.other_kind is Kind.KEYED_FACT for denial in by)
        others = tuple(denial.other_id for denial in by)
        annotation = Annotations(others, None, settled, newer.get(memory.seq), broken=notes)
        looks_at_file = memory.anchor is not None and not is_late()
        annotations = refresh_staleness(memory, annotation, checkout) if looks_at_file else annotation
        if annotations != NOTHING:
            annotations_by_seq[memory.seq] = annotations
    return annotations_by_seq


def drop_superseded(db: Connection, hits: Sequence[Memory]) -> list[Memory]:
    """Return memories without those that a newer memory supersedes."""
    newer = find_superseding(db, {memory.seq: memory.scope for memory in hits})
    return [memory for memory in hits if memory.seq not in newer]


def find_superseding(db: Connection, scopes: Mapping[int, Scope]) -> dict[int, str]:
    """Return the id of the latest memory that supersedes each of some memories, by row number; these have scopes."""
    return {
        pair.seq: pair.by_id
        for pair in edges.list_superseding(db, list(scopes))
        if reaches(pair.by_scope, viewer_within(scopes[pair.seq]))
    }
