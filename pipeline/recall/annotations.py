"""What a reader must know beside a memory's text: who denies or supersedes it, and whether its code has changed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from sqlite3 import Connection

from pipeline.anchors import is_stale
from pipeline.records import Kind, Memory
from pipeline.records.recall import Annotations
from pipeline.store import edges
from pipeline.store.visibility import reaches, viewer_within


def refresh_staleness(memory: Memory, annotations: Annotations) -> Annotations:
    """Return annotations that were found earlier with what has become of the code since, of which no store knows."""
    return annotations if memory.anchor is None else replace(annotations, stale=is_stale(memory.anchor))


def find_annotations(db: Connection, shown: Sequence[Memory]) -> dict[int, Annotations]:
    """Find the annotations of memories, by row number; most memories have none and are left out."""
    denied: dict[int, list[edges.Denial]] = {}
    scopes = {memory.seq: memory.scope for memory in shown}
    for denial in edges.denials(db, json.dumps(list(scopes))):
        # An edge is drawn where both could see each other; one of them may have moved since.
        if reaches(denial.other_scope, viewer_within(scopes[denial.seq])):
            denied.setdefault(denial.seq, []).append(denial)
    newer = _find_newer(db, shown)
    found = {}
    for memory in shown:
        stale = None if memory.anchor is None else is_stale(memory.anchor)
        by = denied.get(memory.seq, [])
        if by or stale is not None or memory.seq in newer:
            settled = memory.key is None and any(denial.other_kind is Kind.KEYED_FACT for denial in by)
            found[memory.seq] = Annotations(
                tuple(denial.other_id for denial in by), stale, settled, newer.get(memory.seq)
            )
    return found


def drop_superseded(db: Connection, found: Sequence[Memory]) -> list[Memory]:
    """Return some memories without those of which something newer says otherwise."""
    newer = _find_newer(db, found)
    return [memory for memory in found if memory.seq not in newer]


def _find_newer(db: Connection, found: Sequence[Memory]) -> dict[int, str]:
    scopes = {memory.seq: memory.scope for memory in found}
    return {
        one.seq: one.by_id
        for one in edges.list_superseding(db, list(scopes))
        if reaches(one.by_scope, viewer_within(scopes[one.seq]))
    }
