"""Keep memories in sync with a source whose items are added, changed and removed.

    unchanged? → incognito? → each text: purged? known? through the write policy → archive texts without an item

An unchanged text keeps its memory with all later changes. Each update is one transaction.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from sqlite3 import Connection

from pipeline.features.ingest.fields import Item
from pipeline.kernel.records import Memory, Outcome, Page, Receipt, Scope, page_of
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import changes, history, index_state, ingested, memories
from pipeline.kernel.store.ingested import KnownItem, Link, SourceSummary
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.text.normalize import content_hash
from pipeline.write.accept import (
    INCOGNITO,
    WriteEffects,
    is_incognito,
    log_and_enqueue,
    write_one,
)
from pipeline.write.prepare import Prepared, prepare
from pipeline.write.reindex import reindex
from pipeline.write.revise import archive_memory, edit_text, restore_memory

# Between a heading and the text below it, and between the steps of a heading.
_BREAK, _STEP = "\n\n", " › "
# A text of this length is the same section under another heading, too.
DISTINCT_CHARS = 60


@dataclass(frozen=True, slots=True)
class _Section:
    """A memory with the heading and the text under which its source offered it."""

    memory: Memory
    heading: str
    body: str

    def is_same_as(self, other: "_Section") -> bool:
        """Return whether two sections have the same text, and a text or a heading that distinguishes it."""
        if self.body != other.body:
            return False
        names = [section.heading.rpartition(_STEP)[2].casefold() for section in (self, other)]
        # Without headings in the text, the heading is the name of the file.
        are_whole_files = _STEP not in self.heading + other.heading
        return names[0] == names[1] or are_whole_files or len(self.body) >= DISTINCT_CHARS


def follow_moved_sections(db: Connection, source: str, created: Iterable[str], at: str) -> tuple[str, ...]:
    """Put memories that a person changed in the place of created ones of the same section; return their ids.

    A section of a file that was renamed or split is read as a new memory. A memory that a person pinned, edited or
    confirmed takes its place if it has the same text below its heading, and is in no item any more.
    """
    left = [section for seq, name in ingested.list_left_behind(db, source) if (section := _find_offered(db, seq, name))]
    followed: list[str] = []
    for memory_id in created if left else ():
        memory = memories.get(db, memory_id)
        if memory is None or memory.archived_at is not None or not ingested.is_fresh(db, memory.seq, source):
            continue
        arrived = _split(memory, memory.content)
        same = [section for section in left if section.is_same_as(arrived)]
        if same:
            same.sort(key=lambda section: section.heading.casefold() != arrived.heading.casefold())
            left.remove(same[0])
            _replace(db, arrived, same[0], at)
            followed.append(same[0].memory.id)
    return tuple(followed)


def _find_offered(db: Connection, seq: int, name: str) -> _Section | None:
    """Return the section of a memory as it was offered, before a person edited it; None if that text is gone."""
    memory = memories.by_seqs(db, [seq])[seq]
    offered = name.partition(ingested.NAME_SEPARATOR)[0]
    texts = [memory.content, *(entry.content for entry in history.of(db, seq) if entry.content is not None)]
    return next((_split(memory, text) for text in texts if content_hash(text) == offered), None)


def _split(memory: Memory, text: str) -> _Section:
    heading, _, body = text.partition(_BREAK)
    return _Section(memory, heading, body)


def _replace(db: Connection, arrived: _Section, left: _Section, at: str) -> None:
    archive_memory(db, arrived.memory, at)
    ingested.move_links(db, arrived.memory.seq, left.memory.seq)
    moved = {"details": arrived.memory.details, "session_id": arrived.memory.session_id}
    moved |= {"metadata": {**left.memory.metadata, **arrived.memory.metadata}}
    memories.update(db, left.memory.seq, moved, at)
    changes.append(db, changes.EDIT, [left.memory.id])
    current = memories.by_seqs(db, [left.memory.seq])[left.memory.seq]
    heading = f"{left.heading}{_BREAK}"
    if current.content.startswith(heading):
        edit_text(db, current, f"{arrived.heading}{_BREAK}{current.content.removeprefix(heading)}", at)
    else:
        reindex(db, current)


PURGED = "was purged"
PUT_AWAY = "was archived or merged into another"


class ItemOutcome(StrEnum):
    """The result for an item."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class TakenItem:
    """The result for an item and for each of its memories; no receipts if nothing changed."""

    key: str
    outcome: ItemOutcome
    receipts: tuple[Receipt, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceUpdate:
    """The results for items, in their order, and the ids of archived and restored memories."""

    taken: tuple[TakenItem, ...]
    archived: tuple[str, ...]
    restored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForgottenItems:
    """The keys of forgotten items, and the ids of archived memories and of memories whose section moved."""

    keys: tuple[str, ...]
    archived: tuple[str, ...]
    moved: tuple[str, ...] = ()


@dataclass(slots=True)
class _Update:
    """The inputs of one transaction and its changes so far; `purged` and `known` contain names of texts."""

    db: Connection
    policy: WritePolicy
    at: str
    purged: set[str]
    known: set[str]
    effects: WriteEffects = field(default_factory=WriteEffects)
    released: set[int] = field(default_factory=set)
    # Memories as they were before.
    refreshed: list[Memory] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)


def list_sources(workspace: Workspace, limit: int, before: int | None) -> Page[SourceSummary]:
    """List the sources of memories, newest first."""
    with workspace.database.read() as db:
        return page_of(ingested.sources(db, limit + 1, before), limit, lambda source: source.seq)


def list_items(workspace: Workspace, source: str, limit: int, after: int | None) -> Page[KnownItem]:
    """List the known items of a source; none for an unknown source."""
    with workspace.database.read() as db:
        return page_of(ingested.items(db, source, limit + 1, after), limit, lambda item: item.seq)


def take_items(workspace: Workspace, source: str, offered: Sequence[Item]) -> SourceUpdate:
    """Update the memories of a source from some of its items; raise InvalidField for an invalid item."""
    # Prepare first: invalid items must not create a workspace.
    items = [(item, _prepare_drafts(number, item)) for number, item in enumerate(offered)]
    policy = workspace.write_policy()
    with workspace.create().write() as db:
        names = [name_of(text.memory) for _, texts in items for text in texts]
        update = _Update(db, policy, utc_now(), ingested.find_purged(db, names), ingested.find_known(db, names))
        taken = tuple(_take_item(update, source, item, texts) for item, texts in items)
        log_and_enqueue(db, update.effects)
        if update.refreshed:
            changes.append(db, changes.EDIT, [memory.id for memory in update.refreshed])
            for memory in update.refreshed:
                reindex(db, memory)
        archived = _archive_unwanted(db, update.released, update.at)
    return SourceUpdate(taken, archived, tuple(update.restored))


def forget_items(workspace: Workspace, source: str, keys: Sequence[str], created: Sequence[str] = ()) -> ForgottenItems:
    """Archive the memories of some items of a source, unless another item also gave them; skip unknown items.

    `created` are memories that the same import created: a section that moved keeps the memory that a person changed.
    """
    gone: list[str] = []
    released: set[int] = set()
    with workspace.database.write() as db:
        at = utc_now()
        for key in dict.fromkeys(keys):
            item = ingested.find(db, source, key)
            if item is None or not item.digest:
                continue
            ingested.forget(db, item.seq, at)
            released.update(ingested.release(db, item.seq, ()))
            gone.append(key)
        archived = _archive_unwanted(db, released, at)
        moved = follow_moved_sections(db, source, created, at)
    return ForgottenItems(tuple(gone), archived, moved)


def name_of(memory: Memory) -> str:
    """Return the name of a text in its scope; the name of a fact includes its start time."""
    scope = "" if memory.scope == Scope() else f"{memory.scope.kind}:{memory.scope.id or ''}"
    apart = [part for part in (scope, memory.valid_from) if part]
    return ingested.NAME_SEPARATOR.join([memory.content_hash, *apart])


def _prepare_drafts(number: int, item: Item) -> list[Prepared]:
    return [prepare(draft, f"items.{number}.memories.{index}.") for index, draft in enumerate(item.drafts)]


def _take_item(update: _Update, source: str, item: Item, texts: Sequence[Prepared]) -> TakenItem:
    known = ingested.find(update.db, source, item.key)
    if known is not None and known.digest == item.digest and not ingested.is_hidden_by_another(update.db, known.seq):
        return TakenItem(item.key, ItemOutcome.UNCHANGED)
    silent = [is_incognito(update.db, text.memory, update.policy) for text in texts]
    if update.policy.incognito or (silent and all(silent)):
        # Do not even store the name of the item.
        return TakenItem(item.key, ItemOutcome.REJECTED, tuple(_reject(text, INCOGNITO) for text in texts))
    item_seq = ingested.put(update.db, source, item.key, item.digest, update.at)
    receipts: list[Receipt] = []
    repeated: dict[str, Receipt] = {}
    for text in texts:
        name = name_of(text.memory)
        receipts.append(
            _repeat_receipt(repeated[name]) if name in repeated else _take_text(update, item_seq, text, name)
        )
        repeated.setdefault(name, receipts[-1])
    if known is None or not known.digest:
        return TakenItem(item.key, ItemOutcome.CREATED, tuple(receipts))
    update.released.update(ingested.release(update.db, item_seq, repeated))
    return TakenItem(item.key, ItemOutcome.REPLACED, tuple(receipts))


def _take_text(update: _Update, item_seq: int, item: Prepared, name: str) -> Receipt:
    if name in update.purged:
        return _reject(item, PURGED)
    if is_incognito(update.db, item.memory, update.policy):
        return _reject(item, INCOGNITO)
    standing = _find_standing(update.db, item_seq, name) if name in update.known else None
    if standing is None:
        return _admit(update, item_seq, item, name)
    memory, comes_back = standing
    if (
        comes_back
        and memory.key is None
        and memories.find_active_text(update.db, memory.scope, memory.content_hash) is not None
    ):
        # The same text was written meanwhile, so the write policy decides.
        return _admit(update, item_seq, item, name)
    ingested.link(update.db, item_seq, name, memory.seq)
    if comes_back:
        restore_memory(update.db, memory, update.at)
        update.restored.append(memory.id)
    elif memory.archived_at is not None:
        return Receipt(memory.id, Outcome.REJECTED, reason=PUT_AWAY)
    _refresh(update, item_seq, memory, item.memory)
    return Receipt(memory.id, Outcome.MERGED, duplicate_of=memory.id)


def _find_standing(db: Connection, item_seq: int, name: str) -> tuple[Memory, bool] | None:
    """Return the memory of a text, and whether it is archived only because no item contained it."""
    links = ingested.of_text(db, name)
    known = memories.by_seqs(db, [link.memory_seq for link in links])
    linked = [known[seq] for seq in sorted(known)]
    if not linked:
        return None
    active = [memory for memory in linked if memory.archived_at is None]
    if active:
        return active[-1], False
    # A memory that a person archived stays archived, even if a source contains its text.
    ours = [
        memory
        for memory in linked
        if Link(memory.seq, memory.archived_at) in links or ingested.is_hidden_by_another(db, item_seq, memory.seq)
    ]
    return (ours[-1], True) if ours else (linked[-1], False)


def _admit(update: _Update, item_seq: int, item: Prepared, name: str) -> Receipt:
    receipt = write_one(update.db, item, update.policy, update.effects)
    # A text that only repeats what an agent was shown gets no link.
    if receipt.outcome is not Outcome.REJECTED and ingested.link_as(
        update.db, item_seq, name, receipt.id, item.memory.content_hash
    ):
        update.known.add(name)
    return receipt


def _refresh(update: _Update, item_seq: int, stored: Memory, memory: Memory) -> None:
    """Update the location of a memory's text if only this item contains it; keep the memory's signals."""
    metadata = {**stored.metadata, **memory.metadata}
    details = memory.details if stored.kind is memory.kind else stored.details
    current = {
        "anchor": memory.anchor,
        "branch": memory.branch,
        "metadata": metadata,
        "details": details,
        "instructs": memory.instructs,
    }
    changed = {name: value for name, value in current.items() if getattr(stored, name) != value}
    if changed and ingested.is_own(update.db, stored.seq, item_seq):
        memories.update(update.db, stored.seq, changed, update.at)
        update.refreshed.append(stored)


def _archive_unwanted(db: Connection, released: Iterable[int], at: str) -> tuple[str, ...]:
    gone = ingested.list_unwanted(db, released)
    for memory in gone:
        memories.archive(db, memory.seq, at)
        index_state.drop_tokens(db, memory.seq)
    ingested.record_archived(db, [memory.seq for memory in gone], at)
    ids = tuple(memory.id for memory in gone)
    if ids:
        changes.append(db, changes.ARCHIVE, ids)
    return ids


def _reject(item: Prepared, reason: str) -> Receipt:
    return Receipt(item.memory.id, Outcome.REJECTED, reason=reason)


def _repeat_receipt(receipt: Receipt) -> Receipt:
    """Return the receipt for a text that an item contains twice."""
    if receipt.outcome is Outcome.REJECTED:
        return receipt
    return Receipt(receipt.id, Outcome.MERGED, duplicate_of=receipt.id)
