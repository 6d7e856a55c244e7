"""Erase a memory's rows within a transaction, and record what to erase in other files."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.records import HistoryEntry, Memory, Source, Stage
from pipeline.kernel.registry import collect
from pipeline.kernel.store import agent_sessions, changes, history, meta, purges, refusals, tables, turns, work
from pipeline.kernel.store.purges import PurgeAuthority, UnfinishedPurge
from pipeline.kernel.store.refusals import RefusedBy
from pipeline.kernel.times import utc_now
from pipeline.text.memory_terms import list_value_texts
from pipeline.text.normalize import content_hash
from pipeline.text.quotation import mark_texts
from pipeline.write.tool_actions import mentions_action

_ASCII_WORD = re.compile(r"[a-z0-9]+")


def erase_memories(db: Connection, memory: Memory, going: Sequence[Memory], by: PurgeAuthority) -> None:
    """Erase a memory and the memories that depend on it, and record what other files must erase."""
    earlier = {erased.seq: history.of(db, erased.seq) for erased in going}
    contents = [text for erased in going for text in _list_contents(erased, earlier[erased.seq])]
    titles = [
        text
        for erased in going
        for text in (
            *list_value_texts((erased.tags, erased.details, erased.metadata)),
            *collect("list_derived_texts", db, erased.seq),
        )
    ]
    moved_to = [entry.detail["as"] for entries in earlier.values() for entry in entries if entry.detail.get("as")]
    for erased in going:
        _erase(db, erased, earlier[erased.seq])
    hashes = tuple(dict.fromkeys(content_hash(content) for content in contents))
    for text_hash in hashes:
        refusals.add(db, memory.id, text_hash, RefusedBy.PURGED, utc_now())
    marks = mark_texts(contents, titles, str(meta.get(db, meta.NODE)), lambda word: purges.is_word_used(db, word))
    purges.note(
        db,
        memory.id,
        UnfinishedPurge(
            tuple(dict.fromkeys([memory.id, *(erased.id for erased in going), *moved_to])),
            hashes,
            marks.as_json(),
            memory.is_of_person,
            by,
        ),
    )


def _erase(db: Connection, memory: Memory, earlier: Sequence[HistoryEntry]) -> None:
    _erase_said(db, memory, earlier)
    about = changes.describe_purged(db, memory)
    tables.erase_memory(db, memory)
    number = changes.append(db, changes.PURGE, [memory.id], about)
    meta.put(db, meta.SEGMENT_WANTED, str(number))
    work.add(db, [memory.seq], [Stage.PURGE], time.time())


def _erase_said(db: Connection, memory: Memory, earlier: Sequence[HistoryEntry]) -> None:
    """Erase the tool actions and turns that a memory was made of, or that contain one of its texts."""
    # The same result of another turn may have been merged into the memory.
    offered: list[tuple[Any, Any]] = [(memory.source, memory.session_id)]
    offered += [(entry.detail.get("source"), entry.detail.get("session_id")) for entry in earlier]
    sessions = {session for source, session in offered if source == Source.AMBIENT and session}
    texts = list(_list_contents(memory, earlier))
    if sessions:
        agent_sessions.forget_matching_actions(
            db, sessions, lambda action: any(mentions_action(action, text) for text in texts)
        )
    # The turns of a moved memory are in another workspace.
    is_native = not any(entry.detail.get("from") for entry in earlier)
    details = [memory.metadata, *(entry.detail.get("metadata") or {} for entry in earlier)] if is_native else []
    turns.forget(db, [detail["turn"] for detail in details if isinstance(detail.get("turn"), int)])
    for text in map(_fold, texts):
        _erase_quotations(db, text)


def _erase_quotations(db: Connection, text: str) -> None:
    longest_word = max(_ASCII_WORD.findall(text), key=len, default="")
    quotations = tables.find_quotations(
        db, tables.WORKSPACE, lambda _workspace, said: text in _fold(said), longest_word
    )
    tables.erase_quotations(db, quotations)


def _fold(text: str) -> str:
    """Return a text in lower case without layout."""
    return " ".join(text.split()).lower()


def _list_contents(memory: Memory, earlier: Iterable[HistoryEntry]) -> Iterator[str]:
    yield memory.content
    yield from (entry.content for entry in earlier if entry.content)
