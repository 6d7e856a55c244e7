"""One memory: its record, its decay, and the actions on it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from flask import redirect, url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from pipeline.features.memories import usecases as memories
from pipeline.features.memories.details import (
    EDITED,
    HistoryChange,
    MemoryDetails,
    preview_purge,
    read_details,
    read_earlier_text,
)
from pipeline.features.team import sharing
from pipeline.kernel.errors import Conflict, FieldError, InvalidField
from pipeline.kernel.records import MAX_TAGS, HistoryEntry, Memory, Revision, ScopeKind, Seen
from pipeline.kernel.records.people import Role
from pipeline.text.normalize import normalize_tag
from pipeline.write.revise import text_mark
from web.dashboard.text_diff import Side, TextPart, diff_texts, shorten
from web.dashboard.view import Moment, Paged, Section, View, back, show
from web.features.changes.page import describe_digestion
from web.features.facts.page import scope_text

section = Section("memory")

HISTORY = 10
_BETWEEN_TAGS = re.compile(r"[\s,]+")

Importance = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class SeenForm(BaseModel):
    """Values that the page showed when it rendered the form; only fields that differ from them change."""

    seen_text: str = ""
    seen_tags: str = ""
    seen_given: Importance | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A rejected edit: the reason and the submitted values."""

    reason: str
    revision: Revision


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A history entry with the other memory involved and the changed parts of the text."""

    number: int
    entry: HistoryEntry
    other: Memory | None
    parts: list[TextPart]


@section.page("/memories/<memory_id>", Paged)
def record(view: View, memory_id: str) -> str:
    """Show the full record of a memory."""
    return _page(view, memory_id, view.query.before)


def _page(view: View, memory_id: str, before: int | None = None, refused: Refused | None = None) -> str:
    known = read_details(view.workspace, memory_id, view.now, HISTORY, before)
    memory, older = known.memory, known.older
    return show(
        "memory.html",
        view,
        title=memory.kind.replace("_", " ").capitalize(),
        memory=memory,
        known=known,
        sign=describe_digestion(known.undigested).get(memory.id),
        metadata=json.dumps(memory.metadata, ensure_ascii=False, indent=2) if memory.metadata else "",
        events=list_events(known),
        admission=describe_admission(known),
        changes=[_compare(change) for change in known.history],
        older_url=None if older is None else url_for("dashboard.memory_record", memory_id=memory.id, before=older),
        scope=scope_text(memory.scope) or None,
        may_share=memory.scope.kind not in (ScopeKind.WORKSPACE, ScopeKind.TASK),
        may_withdraw=memory.shared_from is not None and sharing.may_withdraw(view.workspace, memory),
        refused=refused,
        fields=_fields(memory, None if refused is None else refused.revision),
    )


def _compare(change: HistoryChange) -> ShownChange:
    entry, parts = change.entry, list[TextPart]()
    if entry.event == EDITED and entry.content is not None:
        parts = diff_texts(entry.content, change.text_after)
    elif entry.content is not None:
        # Show only the parts of a merged text that the current text lacks.
        parts = [part for part in diff_texts(change.text_after, entry.content) if part.side is not Side.OLDER]
    return ShownChange(change.number, entry, change.other, shorten(parts))


@section.page("/memories/<memory_id>/edit")
def edited(_view: View, memory_id: str) -> Response:
    """Redirect from the address of a rejected edit to the record."""
    return redirect(_address(memory_id), 303)


@section.action("/memories/<memory_id>/edit", SeenForm)
def edit(
    view: View,
    memory_id: str,
    *,
    content: str | None = None,
    tags: str = "",
    importance: Importance,
    seen_importance: Importance,
) -> Response:
    """Change the edited fields; reject the edit if another user changed them since. No `tags` removes all."""
    revision = Revision(
        content=None if content is None or text_mark(content) == view.form.seen_text else content,
        tags=_parse_changed_tags(tags, view.form.seen_tags),
        importance=None if importance == seen_importance else importance,
    )
    try:
        return _revise(view, memory_id, revision)
    except Conflict as error:
        # Keep the submitted values in the form, next to the current record.
        page = _page(view, memory_id, refused=Refused(str(error), revision))
        return Response(page, HTTPStatus.CONFLICT, mimetype="text/html")


@section.action("/memories/<memory_id>/bring-back", SeenForm)
def bring_back(
    view: View,
    memory_id: str,
    *,
    entry: Annotated[int, Field(ge=1, lt=2**62)] | None = None,
    tags: str = "",
    importance: Importance | None = None,
    given: Importance | None = None,
) -> Response:
    """Restore the values that an edit replaced (the text by history entry), unless another user changed them since."""
    text = None if entry is None else read_earlier_text(view.workspace, memory_id, entry)
    revision = Revision(
        content=text,
        tags=_parse_changed_tags(tags, view.form.seen_tags),
        importance=importance,
        given_importance=given,
    )
    try:
        return _revise(view, memory_id, revision)
    except Conflict as error:
        return back(view, f"Not changed: {error}.", to=_address(memory_id))


def _revise(view: View, memory_id: str, revision: Revision) -> Response:
    form: SeenForm = view.form
    seen = Seen(form.seen_text, _split_tags(form.seen_tags), form.seen_given)
    edited = memories.edit_as_seen(view.workspace, memory_id, revision, seen)
    undo = _undo_of(edited, revision)
    if not undo:
        return back(view, "No changes.", to=_address(memory_id))
    return back(view, "Memory changed.", to=_address(memory_id), undo=(_path("bring_back", memory_id), undo))


def _undo_of(edited: memories.Edited, revision: Revision) -> dict[str, str]:
    before, after = edited.before, edited.after
    undo: dict[str, str] = {}
    if revision.tags is not None and after.tags != before.tags:
        undo |= {"tags": " ".join(before.tags), "seen_tags": " ".join(after.tags)}
    importance_before, importance_after = (
        (before.importance, edited.given_before),
        (after.importance, edited.given_after),
    )
    if revision.importance is not None and importance_after != importance_before:
        undo |= {"importance": repr(before.importance), "given": repr(edited.given_before)}
        undo |= {"seen_given": repr(edited.given_after)}
    if revision.content is not None and edited.entry is not None:
        undo |= {"entry": str(edited.entry), "seen_text": text_mark(after.content)}
    return undo


@section.action("/memories/<memory_id>/pin")
def pin(view: View, memory_id: str, *, pinned: bool) -> Response:
    """Pin a memory so that it keeps its importance, or unpin it."""
    memories.edit(view.workspace, memory_id, Revision(pinned=pinned))
    message = "Memory pinned. It keeps its importance." if pinned else "Memory unpinned."
    return back(view, message, undo=(_path("pin", memory_id), {"pinned": str(not pinned).lower()}))


@section.action("/memories/<memory_id>/confirm")
def confirm(view: View, memory_id: str) -> Response:
    """Confirm a memory that is only evidence."""
    memory, is_new = memories.confirm(view.workspace, memory_id)
    if not is_new:
        return back(view, "This memory is already confirmed.")
    undo = (_path("unconfirm", memory_id), {"since": memory.updated_at})
    return back(view, "Memory confirmed. Agents can treat it as a rule.", undo=undo)


@section.action("/memories/<memory_id>/unconfirm")
def unconfirm(view: View, memory_id: str, *, since: Moment) -> Response:
    """Undo the confirmation of a time."""
    memories.unconfirm(view.workspace, memory_id, since)
    return back(view, "The memory and the memories derived from it are evidence again.")


@section.action("/memories/<memory_id>/archive")
def archive(view: View, memory_id: str, *, leaves: bool = False) -> Response:
    """Archive a memory; show it afterwards, instead of the page of the form, if that page is left."""
    memories.archive(view.workspace, memory_id)
    message = "Memory archived. Results no longer contain it."
    to = _address(memory_id) if leaves else None
    return back(view, message, to=to, undo=(_path("restore", memory_id), {}))


@section.action("/memories/<memory_id>/restore")
def restore(view: View, memory_id: str) -> Response:
    """Restore a memory from the archive or from the memory that it was merged into."""
    merged = memories.is_merged(view.workspace, memory_id)
    memories.restore(view.workspace, memory_id)
    undo = None if merged else (_path("archive", memory_id), dict[str, str]())
    return back(view, "Memory restored.", undo=undo)


@section.action("/memories/<memory_id>/share")
def share(view: View, memory_id: str) -> Response:
    """Share a memory with all members of the workspace."""
    sharing.share_memory(view.workspace, view.workspace, memory_id)
    undo = (_path("withdraw", memory_id), dict[str, str]())
    return back(view, "Memory shared with all members of the workspace.", undo=undo)


@section.action("/memories/<memory_id>/withdraw")
def withdraw(view: View, memory_id: str) -> Response:
    """Withdraw a shared memory, so that only its author sees it."""
    sharing.withdraw_memory(view.workspace, memory_id)
    return back(view, "Memory withdrawn. Only its author can see it now.", to=url_for("dashboard.timeline_journal"))


@section.page("/memories/<memory_id>/purge", needs=Role.OWNER)
def purge_warning(view: View, memory_id: str) -> str:
    """Show the data that a purge deletes, and ask for confirmation."""
    doomed = preview_purge(view.workspace, memory_id)
    return show("purge.html", view, title="Purge this memory?", memory=doomed.memory, doomed=doomed)


@section.action("/memories/<memory_id>/purge", needs=Role.OWNER)
def purge(view: View, memory_id: str) -> Response:
    """Delete a memory permanently."""
    memories.purge(view.workspace, view.container.feedback, memory_id)
    message = "Memory purged. A worker now removes it from the indexes and snapshots."
    return back(view, message, to=url_for("dashboard.timeline_journal"))


def _address(memory_id: str) -> str:
    return url_for("dashboard.memory_record", memory_id=memory_id)


def _path(action: str, memory_id: str) -> str:
    return url_for(f"dashboard.memory_{action}", memory_id=memory_id)


def _fields(memory: Memory, revision: Revision | None) -> dict[str, Any]:
    """Return the values of the edit form: the submitted values, else the stored values."""
    stored = {"content": memory.content, "tags": memory.tags, "importance": memory.importance}
    return {name: now if (new := getattr(revision, name, None)) is None else new for name, now in stored.items()}


def _parse_changed_tags(submitted: str, seen: str) -> tuple[str, ...] | None:
    tags = _split_tags(submitted)
    if tags == _split_tags(seen):
        return None
    if len(tags) > MAX_TAGS or not all(map(normalize_tag, tags)):
        raise InvalidField(FieldError("tags", f"must be at most {MAX_TAGS} tags of letters a to z, digits and hyphens"))
    return tags


def _split_tags(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for tag in _BETWEEN_TAGS.split(text.lower()) if tag))


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
