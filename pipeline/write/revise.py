"""Change a stored memory: edit, archive, restore, purge."""

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from sqlite3 import Connection, IntegrityError
from typing import Any

from pipeline.kernel.errors import NO_SUCH_MEMORY, Conflict, FieldError, InvalidField, NotFound
from pipeline.kernel.records import EdgeDraft, EdgeKind, Memory, Revision, Seen, Stage, Trust
from pipeline.kernel.store import (
    audit,
    changes,
    derivations,
    duplicates,
    edges,
    facts,
    index_state,
    ingested,
    memories,
    refusals,
    work,
)
from pipeline.kernel.store.database import Database, savepoint
from pipeline.kernel.store.driver import sqlite_errors
from pipeline.kernel.store.edges import Edge
from pipeline.kernel.store.purges import OWNER, PurgeAuthority
from pipeline.kernel.store.refusals import RefusedBy
from pipeline.kernel.store.unfinished_moves import require_unmoved
from pipeline.kernel.store.visibility import reaches, viewer_within
from pipeline.kernel.times import utc_now
from pipeline.text.instructions import instructs
from pipeline.text.memory_terms import memory_terms
from pipeline.text.normalize import clean_tags, content_hash, normalize_text
from pipeline.text.redaction import redact
from pipeline.write.erase import erase_memories
from pipeline.write.fact_placement import end_before_next
from pipeline.write.fields import check_details, clean_metadata, normalize_content
from pipeline.write.prepare import check_branch, complete_anchor, join_agent_text
from pipeline.write.reindex import reindex
from pipeline.write.state import check_state, record_replaced_values

# Detail of a merge: the surviving memory was a candidate and was accepted only because of the merge.
LET_IN = "let_in"
CALLER = "caller"


def text_mark(text: str) -> str:
    """Return a short hash of a text, to compare texts exactly."""
    return hashlib.sha256(normalize_text(text).encode()).hexdigest()[:32]


def edit(
    database: Database,
    memory_id: str,
    revision: Revision,
    seen: Seen | None = None,
    *,
    expected: Collection[str] | None = None,
) -> Memory:
    """Edit a memory. A new text is digested again; the old text, tags and metadata are stored in the history.

    Raises Conflict if a field of the revision has neither the value that the client saw nor the new value, and
    PreconditionFailed if the memory is in none of the expected states.
    """
    values = _values(revision)
    now = utc_now()
    with _changing(database, memory_id, expected) as (db, memory):
        if seen is not None:
            _check_seen(db, memory, revision, seen)
        if memory.key is not None and (revision.content is not None or revision.details is not None):
            raise Conflict(
                "Cannot edit a keyed fact directly. Set a new value with `reverie facts set`; "
                "the old value stays in its history."
            )
        if revision.details is not None:
            details = {**memory.details, **revision.details}
            values["details"] = check_details(memory.kind, details, "details")
        values |= _judge_text(memory, values)
        same = memory.content == values.get("content")
        changed = {name: value for name, value in values.items() if not (same and name in ("content", "content_hash"))}
        if changed:
            _apply(db, memory, changed, now)
        return get_existing(db, memory_id)


@contextmanager
def _changing(
    database: Database, memory_id: str, expected: Collection[str] | None
) -> Iterator[tuple[Connection, Memory]]:
    """Change a memory in one transaction, if it exists, is in an expected state and is not being moved."""
    with database.write() as db:
        memory = get_existing(db, memory_id)
        require_unmoved(db, memory.id)
        check_state(memory, expected)
        yield db, memory


def edit_text(db: Connection, memory: Memory, content: str, at: str) -> None:
    """Change a memory's text within a transaction."""
    if content != memory.content:
        values = _values(Revision(content=content))
        _apply(db, memory, values | _judge_text(memory, values), at)


def expire(db: Connection, memory: Memory, moment: str, at: str) -> None:
    """Let a memory end at a time, within a transaction, unless it ends before."""
    if memory.expires_at is None or memory.expires_at > moment:
        _apply(db, memory, {"expires_at": moment}, at)


def unconfirm(database: Database, memory_id: str, since: str) -> Memory:
    """Undo a person's confirmation of a memory since a time, as if it had always been evidence.

    Memories derived from it since are evidence too; memories trusted before stay trusted.
    """
    now = utc_now()
    with database.write() as db:
        memory = get_existing(db, memory_id)
        if memory.trust is Trust.TRUSTED:
            memories.update(db, memory.seq, {"trust": Trust.EVIDENCE}, now)
            changes.append(db, changes.EDIT, [memory.id])
            for edge in edges.of(db, memory.seq):
                if edge.kind is EdgeKind.DERIVED_FROM and not edge.outgoing and edge.at >= since:
                    lower_trust(db, get_existing(db, edge.other_id), now)
        return get_existing(db, memory_id)


def lower_trust(db: Connection, memory: Memory, at: str) -> None:
    """Lower the trust of a memory and of all memories derived from it, directly or indirectly."""
    affected = memories.by_seqs(db, [memory.seq, *edges.list_derived(db, memory.seq)]).values()
    lowered = [derived for derived in affected if derived.trust is Trust.TRUSTED]
    for lowered_memory in lowered:
        memories.update(db, lowered_memory.seq, {"trust": Trust.EVIDENCE}, at)
    changes.append(db, changes.EDIT, [changed.id for changed in lowered])


def archive(database: Database, memory_id: str, expected: Collection[str] | None = None) -> Memory:
    """Archive a memory at a person's request: no answer contains it. Archiving twice has no effect."""
    with _changing(database, memory_id, expected) as (db, memory):
        if memory.archived_at is None:
            now = utc_now()
            archive_memory(db, memory, now)
            refusals.add(db, memory.id, memory.content_hash, RefusedBy.ARCHIVED, now)
        return get_existing(db, memory_id)


def archive_memory(db: Connection, memory: Memory, at: str) -> None:
    """Archive a memory within a transaction."""
    memories.archive(db, memory.seq, at)
    index_state.drop_tokens(db, memory.seq)
    changes.append(db, changes.ARCHIVE, [memory.id])


def restore(database: Database, memory_id: str, expected: Collection[str] | None = None) -> Memory:
    """Undo an archive or a merge; raise Conflict if an active memory has the same text by now."""
    now = utc_now()
    with database.write() as db:
        memory = get_existing(db, memory_id)
        check_state(memory, expected)
        if memory.archived_at is not None:
            restore_archived(db, memory, now)
        return get_existing(db, memory_id)


def undo_merge(db: Connection, merge: audit.AuditEntry, memory: Memory, at: str) -> None:
    """Undo a merge within a transaction."""
    survivor = None if merge.other_id is None else memories.get(db, merge.other_id)
    if survivor is None:
        raise NotFound("Cannot undo the merge: the memory that it was merged into was purged.")
    with _saying_it_alone(db):
        duplicates.undo_merge(db, survivor, memory, merge, at, memory_terms(memory))
        reindex(db, survivor)
    audit.mark_undone(db, merge.id, at)
    if merge.detail.get(LET_IN) and all(merged.candidate for merged in memories.list_merged_into(db, survivor.seq)):
        again = get_existing(db, survivor.id)
        if not again.candidate:
            return_to_review(db, again, at)


@contextmanager
def _saying_it_alone(db: Connection) -> Iterator[None]:
    """Raise Conflict if another active memory of the scope has the same text."""
    try:
        with savepoint(db):
            yield
    except sqlite_errors(IntegrityError) as error:
        raise Conflict("An active memory of the same scope has exactly this text.") from error


def return_to_review(db: Connection, memory: Memory, at: str) -> None:
    """Return a former candidate to review within a transaction, and reopen the fact that it ended.

    Raises Conflict for a fact that was stated again since.
    """
    if memory.key is not None:
        _reopen_ended(db, memory, at)
    memories.update(db, memory.seq, {"candidate": 1}, at)
    index_state.drop_tokens(db, memory.seq)
    changes.append(db, changes.CANDIDATE, [memory.id])


def restore_memory(db: Connection, memory: Memory, at: str) -> None:
    """Restore an archived memory within a transaction; a keyed fact becomes current only if no later value is."""
    with _saying_it_alone(db):
        memories.restore(db, memory.seq, at)
    refusals.take_back(db, memory.id)
    ingested.record_restored(db, memory.seq)
    ended = end_before_next(db, memory, at) if memory.key is not None and not memory.candidate else None
    if ended is not None:
        changes.append(db, changes.CLOSE, [ended.id])
    number = changes.append(db, changes.RESTORE, [memory.id])
    if not memory.candidate:
        index_state.put_tokens(db, memory.seq, memory_terms(memory), number)
    # Memories that were stored in the meantime were not compared with it.
    work.add(db, [memory.seq], [Stage.DEDUP], time.time())


def purge(
    database: Database, memory_id: str, by: PurgeAuthority = OWNER, expected: Collection[str] | None = None
) -> list[str]:
    """Delete a memory permanently, with memories merged into it or derived from it; return their ids.

    A worker then removes it from the indexes and from other workspaces.
    """
    with _changing(database, memory_id, expected) as (db, memory):
        return purge_memory(db, memory, by)


def purge_memory(db: Connection, memory: Memory, by: PurgeAuthority = OWNER) -> list[str]:
    """Purge a memory within a transaction, with memories merged into it or derived from it; return their ids."""
    merge = audit.merge_of(db, memory.id)
    survivor = None if merge is None or merge.other_id is None else memories.get(db, merge.other_id)
    if merge is not None and survivor is not None:
        duplicates.take_back(db, survivor, memory, merge, utc_now())
        reindex(db, survivor)
    doomed = [*memories.list_merged_into(db, memory.seq), memory]
    # Memories that maintenance jobs derived from it quote it.
    made = {seq for purged in doomed for seq in derivations.list_derived_summaries(db, purged.seq)}
    going = [*memories.by_seqs(db, made).values(), *doomed]
    erase_memories(db, memory, going, by)
    return [purged.id for purged in going]


def purge_existing(db: Connection, memory_ids: Iterable[str], by: PurgeAuthority = OWNER) -> list[str]:
    """Purge those of some memories that exist; return the ids of all that were purged."""
    # Purging one may also delete others.
    present = (memories.get(db, memory_id) for memory_id in memory_ids)
    return [purged_id for memory in present if memory is not None for purged_id in purge_memory(db, memory, by)]


def _reopen_ended(db: Connection, memory: Memory, now: str) -> None:
    assert memory.valid_from is not None
    if facts.repeats(db, memory, memory.valid_from):
        raise Conflict("This value was stated again later. End the fact instead.")
    ended = facts.find_replaced_by(db, memory)
    if ended is not None and memory.valid_to != memory.valid_from:
        facts.close(db, ended.seq, memory.valid_to, now)
        edges.remove(db, memory.seq, EdgeKind.SUPERSEDES, ended.seq)
        changes.append(db, changes.CLOSE, [ended.id])


def _check_seen(db: Connection, memory: Memory, revision: Revision, seen: Seen) -> None:
    text = None if revision.content is None else text_mark(revision.content)
    importance = revision.importance if revision.given_importance is None else revision.given_importance
    compared = (
        ("text", text, seen.text, text_mark(memory.content)),
        ("tags", revision.tags, seen.tags, memory.tags),
        ("importance", importance, seen.given_importance, memories.get_given_importance(db, memory.seq)),
    )
    changed = [
        name
        for name, new, seen_value, current in compared
        if None not in (new, seen_value) and current not in (new, seen_value)
    ]
    if changed:
        raise Conflict(f"its {' and its '.join(changed)} changed since you opened it")


def _values(revision: Revision) -> dict[str, Any]:
    """Return the fields to set, in stored form."""
    values = {field.name: getattr(revision, field.name) for field in fields(revision)}
    values = {
        name: CHECKS[name](value) if name in CHECKS else value for name, value in values.items() if value is not None
    }
    if "content" in values:
        values["content_hash"] = content_hash(values["content"])
    return values


# Conversions of a revision's fields to their stored form; other fields are stored unchanged.
CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "content": lambda content: normalize_content(redact(normalize_content(content, "content")).text, "content"),
    "tags": lambda tags: tuple(dict.fromkeys(clean_tags(tags).values())),
    "metadata": lambda metadata: clean_metadata(metadata, "metadata"),
    "anchor": lambda anchor: complete_anchor(anchor, "anchor"),
    "branch": lambda branch: check_branch(branch, "branch"),
}


def _judge_text(memory: Memory, values: Mapping[str, Any]) -> dict[str, bool]:
    read = {name: value for name, value in values.items() if name in ("content", "details", *CHECKS)}
    if not read:
        return {}
    flagged = instructs(join_agent_text(replace(memory, **read)))
    same_text = values.get("content", memory.content) == memory.content
    if memory.instructs and not flagged and same_text and not instructs(join_agent_text(memory)):
        # The screen stage flagged this text; rules cannot overrule it.
        return {}
    return {} if flagged == memory.instructs else {"instructs": flagged}


def _apply(db: Connection, memory: Memory, values: Mapping[str, Any], now: str) -> None:
    with _saying_it_alone(db):
        memories.update(db, memory.seq, values, now)
    changes.append(db, changes.EDIT, [memory.id])
    if values.get("trust") == Trust.EVIDENCE:
        lower_trust(db, memory, now)
    record_replaced_values(db, memory, values, now)
    if "content" in values:
        duplicates.forget_findings(db, memory.seq)
    reindex(db, memory)


def get_existing(db: Connection, memory_id: str) -> Memory:
    """Return a memory; raise NotFound if it does not exist."""
    memory = memories.get(db, memory_id)
    if memory is None:
        raise NotFound(NO_SUCH_MEMORY)
    return memory


def add_edge(database: Database, memory_id: str, draft: EdgeDraft, person: str | None = None) -> list[Edge]:
    """Add an edge and return the memory's edges; a memory derived from evidence becomes evidence."""
    now = utc_now()
    with database.write() as db:
        memory = get_existing(db, memory_id)
        other = memories.get(db, draft.to)
        if other is None or other.seq == memory.seq or not reaches(other.scope, viewer_within(memory.scope, person)):
            raise InvalidField(FieldError("to", "does not name another memory in the reach of this memory"))
        if edges.add(db, memory.seq, draft.kind, other.seq, CALLER, now):
            changes.append_link(db, draft.kind, memory.id, [other.id])
            if draft.kind is EdgeKind.DERIVED_FROM and other.trust is Trust.EVIDENCE:
                lower_trust(db, memory, now)
        return list_visible_edges(db, memory, person)


def remove_edge(database: Database, memory_id: str, kind: EdgeKind, to: str, person: str | None = None) -> list[Edge]:
    """Remove an edge permanently and return the memory's edges; raise NotFound if there is no such edge.

    Raises Conflict for an edge from a maintenance job's memory to its source: a purge follows such edges.
    """
    now = utc_now()
    with database.write() as db:
        memory = get_existing(db, memory_id)
        other = memories.get(db, to)
        if other is not None and kind is EdgeKind.DERIVED_FROM and derivations.is_made_of(db, memory.seq, other.seq):
            raise Conflict("Cannot remove the edge: this memory was derived from the other. Archive it instead.")
        if other is None or not edges.erase(db, memory.seq, kind, other.seq, now):
            raise NotFound("no such edge")
        changes.append(db, changes.RELATE, [memory.id, other.id])
        return list_visible_edges(db, memory, person)


def list_visible_edges(db: Connection, memory: Memory, person: str | None = None) -> list[Edge]:
    """List a memory's edges to memories that a person may see."""
    home = viewer_within(memory.scope, person)
    return [edge for edge in edges.of(db, memory.seq) if reaches(edge.other_scope, home)]


def restore_archived(db: Connection, memory: Memory, now: str) -> None:
    """Restore an archived memory, or undo the merge that archived it; raise Conflict for an active one."""
    if memory.archived_at is None:
        raise Conflict("this memory is not archived")
    merge = audit.merge_of(db, memory.id)
    if merge is not None:
        undo_merge(db, merge, memory, now)
    else:
        restore_memory(db, memory, now)


def let_in(db: Connection, memory: Memory, now: str, by: str) -> None:
    """Make a candidate an active memory; a keyed fact ends the value before it."""
    ended = end_before_next(db, memory, now) if memory.key is not None else None
    if ended is not None:
        edges.add(db, memory.seq, EdgeKind.SUPERSEDES, ended.seq, by, now)
        changes.append(db, changes.CLOSE, [ended.id])
    memories.update(db, memory.seq, {"candidate": 0}, now)
    number = changes.append(db, changes.CREATE, [memory.id])
    index_state.put_tokens(db, memory.seq, memory_terms(memory), number)
    work.add(db, [memory.seq], [Stage.DEDUP], time.time())
