"""Merge operations so that the rows match the log, independent of the order in which operations arrive.

    known? → too far ahead? → purged? → append → rows of memories → relations → conflicts between rows

If rows of two machines conflict (the same text twice, two values of a fact at one time), every machine computes the
same resolution independently and logs it as a regular operation.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.errors import PeerRefused
from pipeline.kernel.kinds import TRAITS
from pipeline.kernel.records import FactKey, Kind, Memory, Scope, ScopeKind, Stage
from pipeline.kernel.records.digestion import DIGESTION
from pipeline.kernel.store import (
    changes,
    clock,
    duplicates,
    facts,
    history,
    index_state,
    ingested,
    memories,
    oplog,
    replicated_records,
    work,
)
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.log_start import NEEDED, list_differences, start_log
from pipeline.kernel.store.oplog import Fold, Operation
from pipeline.kernel.store.replicated_records import MEMORY, PURGE, Fields, Key
from pipeline.kernel.times import utc_text
from pipeline.text.instructions import instructs
from pipeline.text.memory_terms import embedded_text, memory_terms
from pipeline.text.normalize import content_hash
from pipeline.write.move import follow_scope
from pipeline.write.prepare import join_agent_text
from pipeline.write.revise import purge_existing

# Actor of the merge of two memories with the same text.
ACTOR = "sync"
# History event with the value of a field that another machine's value replaced.
CONFLICT = "conflict"
# Maximum number of operations in one transaction, so that other writers do not wait long.
AT_ONCE = 500
# Fields whose replaced values are kept in the history.
_VALUED = ("content", "metadata", "importance", "pinned", "kind", "branch", "expires_at", "sensitivity")


@dataclass(slots=True)
class Merged:
    """Counts of new and known operations, and the index and reason of each rejected one."""

    applied: int = 0
    known: int = 0
    put_aside: list[tuple[int, str]] = field(default_factory=list)


def merge(database: Database, operations: Sequence[Operation], wall_ms: Callable[[], int] = clock.wall_ms) -> Merged:
    """Merge operations of other machines into a store; continue after rejected ones."""
    start_log(database)
    merged = Merged()
    for start in range(0, len(operations), AT_ONCE):
        _merge(database, start, operations[start : start + AT_ONCE], wall_ms(), merged)
    return merged


def _merge(database: Database, start: int, operations: Sequence[Operation], now_ms: int, merged: Merged) -> None:
    sound = []
    for index, operation in enumerate(operations, start):
        try:
            clock.check_drift(operation.hlc, now_ms)
        except PeerRefused as error:
            merged.put_aside.append((index, str(error)))
        else:
            sound.append(operation)
    with database.write() as db:
        fresh = list_new(db, sound)
        merged.applied += len(fresh)
        merged.known += len(sound) - len(fresh)
        if fresh:
            _take_in(db, fresh)


def list_new(db: Connection, operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations that are new to a store, without duplicates and without those about purged memories."""
    by_id = {operation.id: operation for operation in operations}
    known = oplog.list_known(db, by_id) | oplog.list_erased(db)
    owners = {owner for operation in operations for owner in (operation.key.memory_id, operation.key.other_id) if owner}
    purged = oplog.list_purged(db, owners)
    return [
        operation
        for operation_id, operation in by_id.items()
        if operation_id not in known and (operation.key.kind == PURGE or not _is_about(operation, purged))
    ]


def _is_about(operation: Operation, purged: set[str]) -> bool:
    """Return whether an operation is about a purged memory."""
    key = operation.key
    return key.memory_id in purged or key.other_id in purged


def _take_in(db: Connection, fresh: Sequence[Operation]) -> None:
    for operation in fresh:
        clock.receive(db, operation.hlc)
    doomed = {operation.key.memory_id for operation in fresh if operation.key.kind == PURGE}
    for memory_id in doomed:
        oplog.erase(db, memory_id)
    oplog.insert(
        db, (operation for operation in fresh if operation.key.kind == PURGE or not _is_about(operation, doomed))
    )
    purge_existing(db, doomed)
    keys = {operation.key for operation in fresh if operation.key.kind != PURGE and not _is_about(operation, doomed)}
    purges = [operation for operation in fresh if operation.key.kind == PURGE]
    erased = {operation_id for purge in purges for operation_id in purge.fields.get(oplog.ERASED, ())}
    project(db, keys | oplog.erase_operations(db, erased))


def project(db: Connection, keys: Iterable[Key]) -> None:
    """Update the rows of some keys, and the rows that depend on them, to match the log."""
    keys = set(keys)
    owners = {key for key in keys if key.kind == MEMORY}
    folds = oplog.fold(db, owners)
    arrived: list[str] = []
    for key in sorted(owners):
        fold = folds.get(key)
        if fold is not None and fold.fields.keys() >= NEEDED:
            if replicated_records.find_seq(db, key.memory_id) is None:
                arrived.append(key.memory_id)
            _project_memory(db, key.memory_id, fold)
    merged = oplog.list_merged_into(db, arrived) | {key for key, fold in folds.items() if "merged_into" in fold.fields}
    for key, fold in oplog.fold(db, merged).items():
        if fold.fields.get("archived_at") and fold.fields.get("merged_into"):
            replicated_records.set_merged_into(db, key.memory_id, fold.fields["merged_into"])
    relations = {key for key in keys | oplog.list_keys_about(db, arrived) if key.kind != MEMORY}
    for key, fold in oplog.fold(db, relations).items():
        replicated_records.put_relation(db, key, fold.says)
    for memory_id in {key.memory_id for key in relations if key.kind == replicated_records.HISTORY}:
        replicated_records.count_confirmations(db, memory_id)
    _settle_facts(db, (memories.get(db, key.memory_id) for key in owners))


def _project_memory(db: Connection, memory_id: str, fold: Fold) -> None:
    fields = fold.fields
    before = memories.get(db, memory_id)
    scope = Scope(ScopeKind(fields.get("scope_kind", ScopeKind.WORKSPACE)), fields.get("scope_id"))
    text_hash = content_hash(fields["content"])
    twin = None
    if fields.get("archived_at") is None and fields.get("subject") is None:
        twin = memories.find_active_text(db, scope, text_hash)
    if twin is None or twin.id == memory_id:
        _put(db, memory_id, fields, text_hash)
        _index(db, before, memory_id)
    else:
        _unite(db, before, twin, memory_id, fields, text_hash)
    _keep_overruled(db, memory_id, fold)


def _put(db: Connection, memory_id: str, fields: Fields, text_hash: str) -> None:
    kind = Kind(fields["kind"])
    seq = replicated_records.put_memory(db, memory_id, fields, {"content_hash": text_hash}, TRAITS[kind].tier)
    stored = memories.by_seqs(db, [seq])[seq]
    flagged = instructs(join_agent_text(stored))
    if flagged != stored.instructs:
        memories.update(db, seq, {"instructs": flagged}, stored.updated_at)


def _unite(db: Connection, before: Memory | None, twin: Memory, memory_id: str, fields: Fields, text_hash: str) -> None:
    """Merge two memories with the same text; on every machine the one with the smaller id survives."""
    at = max(twin.created_at, fields["created_at"])
    if twin.id < memory_id:
        _put(db, memory_id, {**fields, "archived_at": at}, text_hash)
    else:
        memories.archive(db, twin.seq, at)
        _put(db, memory_id, fields, text_hash)
    _index(db, before, memory_id)
    written = memories.by_ids(db, [memory_id, twin.id])
    survivor, absorbed = written[min(written)], written[max(written)]
    if survivor.candidate and not absorbed.candidate:
        memories.update(db, survivor.seq, {"candidate": 0}, at)
    duplicates.merge(db, survivor, absorbed, ACTOR, at, {})
    ingested.move_links(db, absorbed.seq, survivor.seq)
    replicated_records.count_confirmations(db, survivor.id)
    if survivor.candidate and not absorbed.candidate:
        number = changes.append(db, changes.EDIT, [survivor.id])
        index_state.put_tokens(db, survivor.seq, memory_terms(survivor), number)


def _index(db: Connection, before: Memory | None, memory_id: str) -> None:
    """Update the indexes after a peer changed a memory."""
    now = memories.get(db, memory_id)
    assert now is not None
    if before == now:
        return
    op = changes.CREATE if before is None else changes.EDIT
    number = changes.append(db, op, [memory_id])
    if before is not None and before.scope != now.scope:
        follow_scope(db, before, now)
    if before is not None and before.content != now.content:
        duplicates.forget_findings(db, now.seq)
    if before is None or embedded_text(before) != embedded_text(now):
        work.add(db, [now.seq], DIGESTION, time.time())
    elif before.archived_at is not None and now.archived_at is None:
        work.add(db, [now.seq], [Stage.DEDUP], time.time())
    if now.archived_at is None and not now.candidate:
        index_state.put_tokens(db, now.seq, memory_terms(now), number)
    else:
        index_state.drop_tokens(db, now.seq)
        changes.append(db, changes.ARCHIVE, [memory_id])


def list_overruled(fold: Fold) -> list[tuple[str, str, str, Any]]:
    """List (field, operation, stamp, value) of concurrent values that lost against another one."""
    overruled = []
    for name, heads in fold.heads.items():
        if name in _VALUED or name.startswith(replicated_records.DETAIL):
            won = fold.fields.get(name)
            overruled += [
                (name, operation_id, stamp, value)
                for operation_id, (stamp, value) in sorted(heads.items())
                if value != won
            ]
    return overruled


def _keep_overruled(db: Connection, memory_id: str, fold: Fold) -> None:
    seq = replicated_records.find_seq(db, memory_id)
    for name, operation_id, stamp, value in list_overruled(fold):
        assert seq is not None
        at = utc_text(datetime.fromtimestamp(clock.parse(stamp)[0] / 1000, UTC))
        text = value if name == "content" else None
        detail: Mapping[str, Any] = {"field": name, "by": stamp[22:]}
        if text is None:
            detail = {**detail, "value": value}
        history.add(db, seq, at, CONFLICT, text, detail, uid=f"{CONFLICT}-{operation_id}-{name}")


def _settle_facts(db: Connection, written: Iterable[Memory | None]) -> None:
    """End each value of a fact when the next one starts; every machine computes the same times."""
    keys: set[tuple[FactKey, Scope]] = {
        (memory.key, memory.scope) for memory in written if memory is not None and memory.key
    }
    for key, scope in sorted(keys, key=lambda scoped: (scoped[0], scoped[1].kind, scoped[1].id or "")):
        values = sorted(facts.history(db, key, scope), key=lambda fact: (fact.valid_from or "", fact.id))
        for fact, following in pairwise(values):
            begins = following.valid_from
            if begins is not None and (fact.valid_to is None or fact.valid_to > begins):
                facts.close(db, fact.seq, begins, max(fact.updated_at, following.updated_at))
                changes.append(db, changes.CLOSE, [fact.id])


def repair(database: Database) -> int:
    """Update every row that differs from the log; return how many did."""
    with database.write() as db:
        wrong = list_differences(db)
        project(db, wrong)
    return len(wrong)
