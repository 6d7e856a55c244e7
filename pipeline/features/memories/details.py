"""Read all details of one memory, and preview its purge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.features.aging.job import DAY_S, IDLE_DAYS, UNIX_EPOCH_JULIAN, Forecast, forecast, measure_lived_time
from pipeline.features.entities import store as entities
from pipeline.features.review import store as review
from pipeline.kernel.anchors import is_stale, locate
from pipeline.kernel.errors import NotFound
from pipeline.kernel.kinds import render_text
from pipeline.kernel.records import HistoryEntry, Memory
from pipeline.kernel.registry import collect
from pipeline.kernel.store import (
    audit,
    derivations,
    duplicates,
    edges,
    history,
    impressions,
    memories,
    memory_usage,
    meta,
    work,
)
from pipeline.kernel.store.impressions import Impression, Tally
from pipeline.kernel.store.visibility import is_open_to, visible_sessions_condition
from pipeline.kernel.times import utc_text
from pipeline.kernel.workspace import Workspace
from pipeline.write.move import SHARED, is_sharer
from pipeline.write.revise import get_existing, text_mark

EDITED = "edited"
EDGES = 40
ENTITIES = 60
PAIRS = 5
ACTS = 10
DOOMED = 20
IMPRESSIONS = 20


class LinkedMemory(NamedTuple):
    """An edge, and the memory at its other end."""

    edge: edges.Edge
    other: Memory


class Duplicate(NamedTuple):
    """A pair of possible duplicates that waits for review, and the other memory of the pair."""

    pair: duplicates.Pair
    other: Memory


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """A history entry, the memory that it names, if any, and the text after it."""

    number: int
    entry: HistoryEntry
    other: Memory | None
    text_after: str


@dataclass(frozen=True, slots=True)
class MemoryDetails:
    """A memory with all its details; of edges and entities only the first ones.

    `agent_text` is the text as agents read it, `text_mark` identifies the text, `survivor` is the memory that it
    was merged into.
    """

    memory: Memory
    agent_text: str
    text_mark: str
    stale: bool | None
    admission: Any
    links: Mapping[tuple[str, bool], Sequence[LinkedMemory]]
    more_links: int
    entities: Sequence[Any]
    more_entities: int
    duplicates: Sequence[Duplicate]
    arc: Any
    acts: Sequence[Any]
    survivor: Memory | None
    tally: Tally
    impressions: Sequence[Impression]
    recalled_at: str | None
    forecast: Forecast
    undigested: work.Undigested
    history: Sequence[HistoryChange]
    older: int | None


@dataclass(frozen=True, slots=True)
class PurgePreview:
    """The records that a purge deletes; of memories only the first ones."""

    memory: Memory
    merged: Sequence[Memory]
    more_merged: int
    made: Sequence[Memory]
    texts: int
    edges: int
    entities: int
    arc: Any
    tally: Tally


def read_details(workspace: Workspace, memory_id: str, now: datetime, limit: int, before: int | None) -> MemoryDetails:
    """Return a memory with a page of its history, last change first; raise NotFound for an unknown memory."""
    with workspace.database.read() as db:
        memory = _get_existing(db, memory_id)
        seq = memory.seq
        who = workspace.person_id
        linked = [edge for edge in edges.of(db, seq) if is_open_to(edge.other_scope, who)]
        named = entities.of(db, seq)
        changes, older = _history(db, memory, limit, before, who)
        return MemoryDetails(
            memory=memory,
            agent_text=render_text(memory),
            text_mark=text_mark(memory.content),
            stale=None if memory.anchor is None else is_stale(locate(memory.anchor, meta.get(db, meta.CHECKOUT))),
            admission=review.find_decision(db, memory.id),
            links=_links(db, linked[:EDGES]),
            more_links=max(0, len(linked) - EDGES),
            entities=named[:ENTITIES],
            more_entities=max(0, len(named) - ENTITIES),
            duplicates=_duplicates(db, seq, who),
            arc=next(iter(collect("list_threads_with", db, workspace.onlooker, seq)), None),
            acts=audit.of(db, memory.id, ACTS),
            survivor=_survivor(db, memory, who),
            tally=impressions.tally(db, seq),
            impressions=impressions.latest(db, seq, IMPRESSIONS, visible_sessions_condition(who)),
            recalled_at=memory_usage.get_recalled_at(db, seq),
            forecast=_forecast(db, seq, now),
            undigested=work.find_undigested_among(db, [seq]),
            history=changes,
            older=older,
        )


def read_earlier_text(workspace: Workspace, memory_id: str, number: int) -> str:
    """Return the text that an edit replaced, by its history entry; raise NotFound if there is no such text."""
    with workspace.database.read() as db:
        memory = _get_existing(db, memory_id)
        since = _shown_since(db, memory, workspace.person_id)
        for entry_number, entry in history.page(db, memory.seq, 1, number + 1):
            if entry_number == number >= since and entry.event == EDITED and entry.content is not None:
                return entry.content
    raise NotFound("The history has no such text.")


def preview_purge(workspace: Workspace, memory_id: str) -> PurgePreview:
    """Return the records that a purge of a memory would delete."""
    with workspace.database.read() as db:
        memory = _get_existing(db, memory_id)
        seq = memory.seq
        merged = memories.list_merged_into(db, seq)
        made = {
            summary_seq
            for doomed in (*merged, memory)
            for summary_seq in derivations.list_derived_summaries(db, doomed.seq)
        }
        return PurgePreview(
            memory=memory,
            merged=merged[:DOOMED],
            more_merged=max(0, len(merged) - DOOMED),
            made=[
                summary for summary in memories.by_seqs(db, sorted(made)[:DOOMED]).values() if summary.id != memory.id
            ],
            texts=history.count(db, seq),
            edges=len(edges.of(db, seq)),
            entities=len(entities.of(db, seq)),
            arc=next(iter(collect("list_threads_with", db, workspace.onlooker, seq)), None),
            tally=impressions.tally(db, seq),
        )


def _get_existing(db: Connection, memory_id: str) -> Memory:
    try:
        return get_existing(db, memory_id)
    except NotFound as error:
        raise NotFound("There is no such memory; it may have been purged.") from error


def _history(
    db: Connection, memory: Memory, limit: int, before: int | None, person: str | None
) -> tuple[list[HistoryChange], int | None]:
    since = _shown_since(db, memory, person)
    entries = [numbered for numbered in history.page(db, memory.seq, limit + 1, before) if numbered[0] >= since]
    page = entries[:limit]
    text = memory.content
    if page and before is not None:
        text = history.text_after(db, memory.seq, page[0][0]) or text
    changes = []
    for number, entry in page:
        other = _open_to(memories.get(db, entry.detail["memory_id"]), person) if "memory_id" in entry.detail else None
        changes.append(HistoryChange(number, entry, other, text))
        if entry.event == EDITED and entry.content is not None:
            text = entry.content
    return changes, page[-1][0] if len(entries) > len(page) else None


def _links(db: Connection, linked: Sequence[edges.Edge]) -> dict[tuple[str, bool], list[LinkedMemory]]:
    links: dict[tuple[str, bool], list[LinkedMemory]] = {}
    for edge in linked:
        other = memories.get(db, edge.other_id)
        if other is not None:
            links.setdefault((edge.kind, edge.outgoing), []).append(LinkedMemory(edge, other))
    return links


def _shown_since(db: Connection, memory: Memory, person: str | None) -> int:
    """Return the first history entry that a person may see: for a shared memory, the entries since it was shared."""
    if memory.shared_from is None or is_sharer(memory, person):
        return 0
    return history.find_last(db, memory.seq, SHARED)


def _open_to(memory: Memory | None, person: str | None) -> Memory | None:
    """Return a memory unless it is private to another person."""
    return memory if memory is not None and is_open_to(memory.scope, person) else None


def _duplicates(db: Connection, seq: int, person: str | None) -> list[Duplicate]:
    waiting = {
        pair.older_seq if pair.newer_seq == seq else pair.newer_seq: pair
        for pair in duplicates.list_pairs_of(db, seq, PAIRS)
    }
    others = memories.by_seqs(db, waiting)
    return [
        Duplicate(pair, others[other_seq]) for other_seq, pair in waiting.items() if _open_to(others[other_seq], person)
    ]


def _survivor(db: Connection, memory: Memory, person: str | None) -> Memory | None:
    merge = audit.merge_of(db, memory.id) if memory.archived_at is not None else None
    return None if merge is None or merge.other_id is None else _open_to(memories.get(db, merge.other_id), person)


def _forecast(db: Connection, seq: int, now: datetime) -> Forecast:
    usage = memory_usage.of(db, utc_text(now), seq)
    assert usage is not None
    today = now.timestamp() / DAY_S + UNIX_EPOCH_JULIAN
    # A gap of up to IDLE_DAYS counts completely, so the active days in it do not matter.
    days = memory_usage.active_days(db) if today - usage.used > IDLE_DAYS else []
    return forecast(usage, measure_lived_time(days), today)
