"""The door: from a draft to an acknowledged memory.

    normalize → redact → resolve the scope → hash → one transaction: merge or insert, tail, change log, work

No model and no network in here: what is slow is queued as work in the same transaction.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from ulid import ULID

from pipeline.analysis import memory_tokens
from pipeline.records import Draft, Outcome, Receipt, Source, Stage, Tier, Trust
from pipeline.redaction import redact, redact_json
from pipeline.store import changes, history, memories, tail, work
from pipeline.store.database import Database
from pipeline.store.memories import NewMemory
from pipeline.times import utc_now
from pipeline.write.normalize import (
    check_metadata,
    content_hash,
    normalize_content,
    normalize_id,
    normalize_json,
)
from pipeline.write.scope import resolve_scope

DIGESTION = (Stage.EMBED, Stage.ENTITIES)
DEFAULT_IMPORTANCE = 0.5

_EVIDENCE_SOURCES = frozenset({Source.AMBIENT, Source.IMPORT, Source.SYNC})


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft that is ready for its transaction: the memory and its search tokens."""

    memory: NewMemory
    tokens: list[str]


def accept(database: Database, draft: Draft) -> Receipt:
    """Store one memory durably; raise InvalidField for a draft that cannot be taken."""
    return commit(database, [prepare(draft)])[0]


def accept_batch(database: Database, drafts: Sequence[Draft]) -> list[Receipt]:
    """Store memories in one transaction, all or none; an invalid draft is named by its index."""
    return commit(database, prepare_batch(drafts))


def prepare_batch(drafts: Sequence[Draft]) -> list[Prepared]:
    """Prepare memories for one transaction; an invalid draft is named by its index."""
    return [prepare(draft, f"items.{index}.") for index, draft in enumerate(drafts)]


def prepare(draft: Draft, loc: str = "") -> Prepared:
    """Do everything that needs no transaction."""
    now = utc_now()
    # Redaction may lengthen a text, so the limit is checked on what will be stored.
    content = redact(normalize_content(draft.content, f"{loc}content")).text
    content = normalize_content(content, f"{loc}content")
    metadata, _ = redact_json(normalize_json(draft.metadata))
    check_metadata(metadata, f"{loc}metadata")
    session_id = None if draft.session_id is None else normalize_id(draft.session_id) or None
    memory = NewMemory(
        id=str(ULID()),
        content=content,
        kind=draft.kind,
        scope=resolve_scope(draft.scope, session_id, f"{loc}scope.id"),
        tags=tuple(dict.fromkeys(draft.tags)),
        metadata=metadata,
        source=draft.source,
        trust=Trust.EVIDENCE if draft.source in _EVIDENCE_SOURCES else Trust.TRUSTED,
        importance=DEFAULT_IMPORTANCE if draft.importance is None else draft.importance,
        tier=Tier.WORKING,
        session_id=session_id,
        created_at=now,
        occurred_at=draft.occurred_at or now,
        content_hash=content_hash(content),
    )
    return Prepared(memory, memory_tokens(content, memory.occurred_at))


def commit(database: Database, prepared: Sequence[Prepared]) -> list[Receipt]:
    """Store prepared memories in one transaction: merge each into its exact twin or insert it."""
    with database.write() as db:
        receipts: list[Receipt] = []
        created: list[tuple[int, Prepared]] = []
        merged: list[tuple[str, NewMemory]] = []
        for item in prepared:
            twin = memories.find_active_text(db, item.memory.scope, item.memory.content_hash)
            if twin is None:
                created.append((memories.insert(db, item.memory), item))
                receipts.append(Receipt(item.memory.id, Outcome.CREATED))
            else:
                merged.append((twin.id, item.memory))
                receipts.append(Receipt(twin.id, Outcome.MERGED, duplicate_of=twin.id))
        if created:
            _announce(db, created)
        # After the announcement: the change log names a memory's creation before anything else that befell it.
        for twin_id, memory in merged:
            _merge(db, twin_id, memory)
    return receipts


def _merge(db: Connection, twin_id: str, memory: NewMemory) -> None:
    twin = memories.get(db, twin_id)
    assert twin is not None
    tags = tuple(dict.fromkeys((*twin.tags, *memory.tags)))
    memories.reinforce(db, twin.seq, importance=memory.importance, trust=memory.trust, tags=tags, at=memory.created_at)
    detail = {
        "source": memory.source,
        "kind": memory.kind,
        "session_id": memory.session_id,
        "occurred_at": memory.occurred_at,
        "tags": memory.tags,
        "metadata": memory.metadata,
    }
    history.add(db, twin.seq, memory.created_at, "merged", None, detail)
    changes.append(db, changes.MERGE, [twin.id])


def _announce(db: Connection, created: Sequence[tuple[int, Prepared]]) -> None:
    first = changes.append(db, changes.CREATE, [item.memory.id for _, item in created])
    for number, (seq, item) in enumerate(created, start=first):
        tail.put(db, seq, item.tokens, number)
    work.add(db, [seq for seq, _ in created], DIGESTION, time.time())
