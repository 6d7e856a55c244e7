"""The events of a memory in chronological order: written, changed, linked, shown, archived."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.records import Memory
from pipeline.services.memory_details import EDITED, HistoryChange, MemoryDetails

_ADMITTED = {"created": "accepted", "candidate": "stored as a candidate", "merged": "merged", "rejected": "rejected"}
_LINKED = {"supersedes": ("replaced", "replaced by"), "contradicts": ("contradicts", "contradicted by")}
_ANSWERED = {None: "not rated yet", True: "followed", False: "ignored"}


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """An event of a memory, with its time, session and the other memory that it involves."""

    at: str
    text: str
    session_id: str | None = None
    other: Memory | None = None
    note: str = ""


def list_events(known: MemoryDetails) -> list[MemoryEvent]:
    """List the events of a memory, oldest first; long lists contain only their latest entries."""
    return sorted(_events(known), key=lambda event: event.at)


def _events(known: MemoryDetails) -> Iterator[MemoryEvent]:
    memory = known.memory
    # Sorting is stable: events with the same time stay in this order.
    yield MemoryEvent(memory.occurred_at, f"event, reported by {memory.source}", memory.session_id)
    yield MemoryEvent(memory.created_at, "written", note=describe_admission(known))
    yield from map(_describe_change, known.history)
    for (kind, outgoing), links in known.links.items():
        if kind in _LINKED:
            yield from (MemoryEvent(link.edge.at, _LINKED[kind][not outgoing], None, link.other) for link in links)
    for shown in known.impressions:
        yield MemoryEvent(shown.at, "shown to an agent", shown.session_id, note=shown.note or _ANSWERED[shown.followed])
    if known.recalled_at:
        yield MemoryEvent(known.recalled_at, "last recalled", note=f"{memory.recall_count:,} in total")
    for act in known.acts:
        yield MemoryEvent(act.at, f"{act.action}d by {'a person' if act.actor == 'review' else act.actor}")
        if act.undone_at:
            yield MemoryEvent(act.undone_at, f"{act.action} undone")
    if memory.archived_at and not any(act.at == memory.archived_at for act in known.acts):
        yield MemoryEvent(memory.archived_at, "archived", None, known.survivor)


def describe_admission(known: MemoryDetails) -> str:
    """Return the admission outcome and its reasons, "" without a decision."""
    decision = known.admission
    if decision is None:
        return ""
    reasons = f": {'; '.join(decision.reasons)}" if decision.reasons else ""
    return f"{_ADMITTED[str(decision.outcome)]}, score {decision.score:.2f}{reasons}"


def _describe_change(change: HistoryChange) -> MemoryEvent:
    entry = change.entry
    detail = entry.detail
    if entry.event == EDITED:
        return MemoryEvent(entry.at, "edited", note=f"by {detail['by']}" if detail.get("by") else "")
    if entry.event == "merged" and entry.content is not None:
        return MemoryEvent(entry.at, "merged with a near-duplicate", None, change.other, str(detail.get("by", "")))
    if entry.event == "merged":
        return MemoryEvent(entry.at, "same text stored again", detail.get("session_id"))
    return MemoryEvent(entry.at, entry.event.replace("_", " "), None, change.other)
