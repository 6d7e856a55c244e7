"""Keep memories in step with a source that is read again: its items come, change and go.

    unchanged? → off the record? → each text: purged? known? through the door → what no item gives any more is archived

A text that stays keeps its memory with everything that became of it. One transaction, all or none.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from sqlite3 import Connection

from pipeline.records import Memory, Outcome, Receipt, Scope
from pipeline.store import changes, ingested, memories, tail
from pipeline.store.database import Database
from pipeline.store.ingested import Link
from pipeline.store.memories import NewMemory
from pipeline.times import utc_now
from pipeline.write.accept import OFF_THE_RECORD, Ledger, WritePolicy, announce, off_the_record, take
from pipeline.write.prepare import Prepared
from pipeline.write.revise import bring_back

PURGED = "was purged"
PUT_AWAY = "was archived or merged into another"


class Fate(StrEnum):
    """What became of an item."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Offered:
    """An item of a source: its key there, the digest of what was read, and the memories that it gives."""

    key: str
    digest: str
    prepared: tuple[Prepared, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of an item and of each memory that it gave; no receipts where nothing changed."""

    key: str
    fate: Fate
    receipts: tuple[Receipt, ...] = ()


@dataclass(frozen=True, slots=True)
class Sweep:
    """What became of items, in their order, and the ids of the memories that were archived and that came back."""

    taken: tuple[Taken, ...]
    archived: tuple[str, ...]
    restored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The keys of the items that were forgotten, and the ids of the memories that were archived."""

    keys: tuple[str, ...]
    archived: tuple[str, ...]


@dataclass(slots=True)
class _Run:
    """One transaction: what it goes by, and what it did so far; `purged` and `known` name texts."""

    db: Connection
    policy: WritePolicy
    at: str
    purged: set[str]
    known: set[str]
    ledger: Ledger = field(default_factory=Ledger)
    released: set[int] = field(default_factory=set)
    refreshed: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)


def take_items(database: Database, source: str, offered: Sequence[Offered], policy: WritePolicy) -> Sweep:
    """Bring the memories of a source in step with some of its items; raise InvalidField for an edge to nowhere."""
    with database.write() as db:
        names = [name_of(one.memory) for item in offered for one in item.prepared]
        run = _Run(db, policy, utc_now(), ingested.purged_among(db, names), ingested.known_among(db, names))
        taken = tuple(_take_item(run, source, item) for item in offered)
        announce(db, run.ledger)
        if run.refreshed:
            changes.append(db, changes.EDIT, run.refreshed)
        archived = _archive_unwanted(db, run.released, run.at)
    return Sweep(taken, archived, tuple(run.restored))


def forget_items(database: Database, source: str, keys: Sequence[str]) -> Forgotten:
    """Archive what some items of a source brought, unless it is somebody else's too; unknown ones are passed over."""
    gone: list[str] = []
    released: set[int] = set()
    with database.write() as db:
        at = utc_now()
        for key in dict.fromkeys(keys):
            item = ingested.find(db, source, key)
            if item is None or not item.digest:
                continue
            ingested.forget(db, item.seq, at)
            released.update(ingested.release(db, item.seq, ()))
            gone.append(key)
        archived = _archive_unwanted(db, released, at)
    return Forgotten(tuple(gone), archived)


def name_of(memory: NewMemory) -> str:
    """Return the name that a text is known by in its scope; a fact is told anew each time that it begins to hold."""
    scope = "" if memory.scope == Scope() else f"{memory.scope.kind}:{memory.scope.id or ''}"
    apart = [part for part in (scope, memory.valid_from) if part]
    return ingested.NAME_JOINT.join([memory.content_hash, *apart])


def _take_item(run: _Run, source: str, item: Offered) -> Taken:
    known = ingested.find(run.db, source, item.key)
    if known is not None and known.digest == item.digest:
        return Taken(item.key, Fate.UNCHANGED)
    silent = [off_the_record(run.db, one.memory, run.policy) for one in item.prepared]
    if run.policy.incognito or (silent and all(silent)):
        # Not even the name of the item is kept.
        return Taken(item.key, Fate.REJECTED, tuple(_turned_away(one, OFF_THE_RECORD) for one in item.prepared))
    item_seq = ingested.put(run.db, source, item.key, item.digest, run.at)
    receipts: list[Receipt] = []
    told: dict[str, Receipt] = {}
    for one in item.prepared:
        name = name_of(one.memory)
        receipts.append(_again(told[name]) if name in told else _take_text(run, item_seq, one, name))
        told.setdefault(name, receipts[-1])
    if known is None or not known.digest:
        return Taken(item.key, Fate.CREATED, tuple(receipts))
    run.released.update(ingested.release(run.db, item_seq, told))
    return Taken(item.key, Fate.REPLACED, tuple(receipts))


def _take_text(run: _Run, item_seq: int, item: Prepared, name: str) -> Receipt:
    if name in run.purged:
        return _turned_away(item, PURGED)
    if off_the_record(run.db, item.memory, run.policy):
        return _turned_away(item, OFF_THE_RECORD)
    standing = _standing(run.db, name) if name in run.known else None
    if standing is None:
        return _through_door(run, item_seq, item, name)
    memory, comes_back = standing
    if comes_back and not _speaks_for_itself(run.db, memory):
        # Somebody wrote the same meanwhile: the door knows what that means.
        return _through_door(run, item_seq, item, name)
    ingested.link(run.db, item_seq, name, memory.seq)
    if comes_back:
        bring_back(run.db, memory, run.at)
        run.restored.append(memory.id)
    elif memory.archived_at is not None:
        return Receipt(memory.id, Outcome.REJECTED, reason=PUT_AWAY)
    _refresh(run, item_seq, memory, item.memory)
    return Receipt(memory.id, Outcome.MERGED, duplicate_of=memory.id)


def _standing(db: Connection, name: str) -> tuple[Memory, bool] | None:
    """Return the memory that stands for a text, and whether it is in the archive only for want of an item."""
    links = ingested.of_text(db, name)
    known = memories.by_seqs(db, [link.memory_seq for link in links])
    found = [known[seq] for seq in sorted(known)]
    if not found:
        return None
    active = [one for one in found if one.archived_at is None]
    if active:
        return active[-1], False
    # What somebody archived stays so, whatever a source says.
    ours = [one for one in found if Link(one.seq, one.archived_at) in links]
    return (ours[-1], True) if ours else (found[-1], False)


def _speaks_for_itself(db: Connection, memory: Memory) -> bool:
    return memory.key is not None or memories.find_active_text(db, memory.scope, memory.content_hash) is None


def _through_door(run: _Run, item_seq: int, item: Prepared, name: str) -> Receipt:
    receipt = take(run.db, item, run.policy, run.ledger)
    # What only repeats what was shown stands for nothing.
    if receipt.outcome is not Outcome.REJECTED and ingested.link_as(
        run.db, item_seq, name, receipt.id, item.memory.content_hash
    ):
        run.known.add(name)
    return receipt


def _refresh(run: _Run, item_seq: int, stored: Memory, memory: NewMemory) -> None:
    """Let a memory that one item alone brought say where its text stands now; its signals stay."""
    metadata = {**stored.metadata, **memory.metadata}
    details = memory.details if stored.kind is memory.kind else stored.details
    wanted = {
        "anchor": (stored.anchor, memory.anchor, memories.anchor_text(memory.anchor)),
        "branch": (stored.branch, memory.branch, memory.branch),
        "metadata": (stored.metadata, metadata, json.dumps(metadata, ensure_ascii=False)),
        "details": (stored.details, details, json.dumps(details, ensure_ascii=False)),
        "instructs": (stored.instructs, memory.instructs, int(memory.instructs)),
    }
    changed = {column: value for column, (before, after, value) in wanted.items() if before != after}
    if changed and ingested.is_own(run.db, stored.seq, item_seq):
        memories.update(run.db, stored.seq, changed, run.at)
        run.refreshed.append(stored.id)


def _archive_unwanted(db: Connection, released: Iterable[int], at: str) -> tuple[str, ...]:
    gone = ingested.unwanted(db, released)
    for memory in gone:
        memories.archive(db, memory.seq, at)
        tail.drop(db, memory.seq)
    ingested.note_archived(db, [memory.seq for memory in gone], at)
    ids = tuple(memory.id for memory in gone)
    if ids:
        changes.append(db, changes.ARCHIVE, ids)
    return ids


def _turned_away(item: Prepared, reason: str) -> Receipt:
    return Receipt(item.memory.id, Outcome.REJECTED, reason=reason)


def _again(receipt: Receipt) -> Receipt:
    """Return the answer to a text that stands twice in an item."""
    if receipt.outcome is Outcome.REJECTED:
        return receipt
    return Receipt(receipt.id, Outcome.MERGED, duplicate_of=receipt.id)
