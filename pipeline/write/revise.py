"""What may happen to a memory after it was written: edit, archive, restore, purge."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Connection, IntegrityError
from typing import Any

from pipeline.analysis import memory_tokens
from pipeline.errors import Conflict, NotFound
from pipeline.records import Memory, Stage
from pipeline.redaction import redact, redact_json
from pipeline.store import changes, embeddings, entities, history, memories, meta, tail, work
from pipeline.store.database import Database
from pipeline.times import utc_now
from pipeline.write.accept import DIGESTION
from pipeline.write.normalize import check_metadata, content_hash, normalize_content, normalize_json


@dataclass(frozen=True, slots=True)
class Revision:
    """The fields of a memory to set; None leaves a field as it is."""

    content: str | None = None
    importance: float | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] | None = None
    pinned: bool | None = None


def edit(database: Database, memory_id: str, revision: Revision) -> Memory:
    """Change a memory; a new text is digested again and the old one stays in the history."""
    values = _values(revision)
    now = utc_now()
    with database.write() as db:
        memory = _existing(db, memory_id)
        same = memory.content == values.get("content")
        changed = {name: value for name, value in values.items() if not (same and name in ("content", "content_hash"))}
        if changed:
            _apply(db, memory, changed, now)
        return _existing(db, memory_id)


def archive(database: Database, memory_id: str) -> Memory:
    """Take a memory out of every answer; doing it twice changes nothing."""
    with database.write() as db:
        memory = _existing(db, memory_id)
        if memory.archived_at is None:
            memories.archive(db, memory.seq, utc_now())
            tail.drop(db, memory.seq)
            changes.append(db, changes.ARCHIVE, [memory.id])
        return _existing(db, memory_id)


def restore(database: Database, memory_id: str) -> Memory:
    """Undo an archive; raise Conflict when an active memory says the same by now."""
    with database.write() as db:
        memory = _existing(db, memory_id)
        if memory.archived_at is not None:
            try:
                memories.restore(db, memory.seq, utc_now())
            except IntegrityError as error:
                raise Conflict("an active memory of the same scope says exactly this") from error
            number = changes.append(db, changes.RESTORE, [memory.id])
            tail.put(db, memory.seq, memory_tokens(memory.content, memory.occurred_at), number)
        return _existing(db, memory_id)


def purge(database: Database, memory_id: str) -> None:
    """Delete a memory for good; a worker then scrubs it from the derived indexes."""
    with database.write() as db:
        memory = _existing(db, memory_id)
        entities.unlink(db, memory.seq)
        embeddings.forget(db, memory.seq)
        history.purge(db, memory.seq)
        tail.drop(db, memory.seq)
        work.drop(db, memory.seq)
        memories.purge(db, memory.seq)
        number = changes.append(db, changes.PURGE, [memory.id])
        meta.put(db, meta.SEGMENT_WANTED, str(number))
        work.add(db, [memory.seq], [Stage.PURGE], time.time())


def _values(revision: Revision) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if revision.content is not None:
        content = normalize_content(redact(normalize_content(revision.content, "content")).text, "content")
        values |= {"content": content, "content_hash": content_hash(content)}
    if revision.importance is not None:
        values["importance"] = revision.importance
    if revision.tags is not None:
        values["tags"] = json.dumps(tuple(dict.fromkeys(revision.tags)))
    if revision.metadata is not None:
        metadata, _ = redact_json(normalize_json(revision.metadata))
        check_metadata(metadata, "metadata")
        values["metadata"] = json.dumps(metadata, ensure_ascii=False)
    if revision.pinned is not None:
        values["pinned"] = int(revision.pinned)
    return values


def _apply(db: Connection, memory: Memory, values: Mapping[str, Any], now: str) -> None:
    try:
        memories.update(db, memory.seq, values, now)
    except IntegrityError as error:
        raise Conflict("an active memory of the same scope says exactly this") from error
    number = changes.append(db, changes.EDIT, [memory.id])
    if "content" in values:
        history.add(db, memory.seq, now, "edited", memory.content, {})
        work.add(db, [memory.seq], DIGESTION, time.time())
        if memory.archived_at is None:
            tail.put(db, memory.seq, memory_tokens(values["content"], memory.occurred_at), number)


def _existing(db: Connection, memory_id: str) -> Memory:
    memory = memories.get(db, memory_id)
    if memory is None:
        raise NotFound("no such memory")
    return memory
