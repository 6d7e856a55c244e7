"""One memory: all that is known of it, why it fades, and what may be done with it."""

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from sqlite3 import Connection
from typing import Annotated, Any

from flask import redirect, url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from pipeline.anchors import is_stale
from pipeline.errors import Conflict, FieldError, InvalidField, NotFound
from pipeline.jobs.aging.decay import DAY_S, IDLE_DAYS, UNIX_EPOCH_JULIAN, lived_time
from pipeline.jobs.aging.forecast import Forecast, forecast
from pipeline.kinds import render_text
from pipeline.records import MAX_TAGS, OWNER, Memory, Revision, Seen, Trust
from pipeline.store import (
    admissions,
    arcs,
    audit,
    derivations,
    edges,
    entities,
    fading,
    history,
    impressions,
    memories,
    pairs,
    work,
)
from pipeline.store.edges import Edge
from pipeline.store.pairs import Pair
from pipeline.times import utc_text
from pipeline.write import revise
from web.dashboard.pages.facts import scope_text
from web.dashboard.pages.timeline import describe_digestion
from web.dashboard.past import EDITED, past
from web.dashboard.view import Moment, Paged, Section, View, back, show

section = Section("memory")

EDGES = 40
ENTITIES = 60
PAIRS = 5
ACTS = 10
HISTORY = 10
DOOMED = 20
_TAG = re.compile(r"[a-z0-9-]{1,50}")
_BETWEEN_TAGS = re.compile(r"[\s,]+")

Importance = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class SeenForm(BaseModel):
    """What a page showed when its form was made: only what differs from that is changed. Without tags it had none."""

    seen_text: str = ""
    seen_tags: str = ""
    seen_given: Importance | None = None


class EditForm(SeenForm):
    """What a memory becomes. Without tags it has none."""

    content: str | None = None
    tags: str = ""
    importance: Importance
    seen_importance: Importance


class BringBackForm(SeenForm):
    """What an edit replaced: a text, by its entry in the history, tags, and the importance, now and as given."""

    entry: Annotated[int, Field(ge=1, lt=2**62)] | None = None
    tags: str = ""
    importance: Importance | None = None
    given: Importance | None = None


class PinForm(BaseModel):
    """Whether a memory is pinned."""

    pinned: bool


class UnconfirmForm(BaseModel):
    """When a memory was confirmed."""

    since: Moment


@dataclass(frozen=True, slots=True)
class Refused:
    """An edit that was not made: why, and what somebody wanted."""

    reason: str
    wanted: Revision


@dataclass(frozen=True, slots=True)
class Tie:
    """An edge, and the memory at its other end."""

    edge: Edge
    other: Memory


@dataclass(frozen=True, slots=True)
class Double:
    """A pair that waits, and the other memory of the two."""

    pair: Pair
    other: Memory


@section.page("/memories/<memory_id>", Paged)
def record(view: View, memory_id: str) -> str:
    """Show the whole record."""
    return _page(view, memory_id, view.query.before)


def _page(view: View, memory_id: str, before: int | None = None, refused: Refused | None = None) -> str:
    with view.read() as db:
        memory = _existing(db, memory_id)
        seq = memory.seq
        linked, named = edges.of(db, seq), entities.of(db, seq)
        changes, older = past(db, memory, HISTORY, before)
        known = {
            "decision": admissions.of(db, memory.id),
            "ties": _ties(db, linked),
            "untold_ties": max(0, len(linked) - EDGES),
            "entities": named[:ENTITIES],
            "untold_entities": max(0, len(named) - ENTITIES),
            "doubles": _doubles(db, seq),
            "arc": arcs.of_memory(db, OWNER, seq),
            "acts": audit.of(db, memory.id, ACTS),
            "survivor": _survivor(db, memory),
            "tally": impressions.tally(db, seq),
            "recalled_at": fading.recalled_at(db, seq),
            "forecast": _forecast(view, db, seq),
            "sign": describe_digestion(work.undigested_among(db, [seq])).get(memory.id),
        }
    stale = None if memory.anchor is None else is_stale(memory.anchor)
    return show(
        "memory.html",
        view,
        title=memory.kind.replace("_", " ").capitalize(),
        memory=memory,
        told=render_text(memory),
        stale=stale,
        metadata=json.dumps(memory.metadata, ensure_ascii=False, indent=2) if memory.metadata else "",
        changes=changes,
        older_url=None if older is None else url_for("dashboard.memory_record", memory_id=memory.id, before=older),
        scope=scope_text(memory.scope) or None,
        refused=refused,
        fields=_fields(memory, None if refused is None else refused.wanted),
        text_mark=revise.text_mark(memory.content),
        **known,
    )


@section.page("/memories/<memory_id>/edit")
def edited(_view: View, memory_id: str) -> Response:
    """Lead from the address of a refused edit to the record."""
    return redirect(_address(memory_id), 303)


@section.action("/memories/<memory_id>/edit", EditForm)
def edit(view: View, memory_id: str) -> Response:
    """Change what was changed on the page; what somebody else changed meanwhile is not overwritten."""
    form: EditForm = view.form
    wanted = Revision(
        content=None if form.content is None or revise.text_mark(form.content) == form.seen_text else form.content,
        tags=_changed_tags(form.tags, form.seen_tags),
        importance=None if form.importance == form.seen_importance else form.importance,
    )
    try:
        return _revised(view, memory_id, wanted)
    except Conflict as error:
        # What was typed is not lost: a second attempt is made knowing what stands there now.
        page = _page(view, memory_id, refused=Refused(str(error), wanted))
        return Response(page, HTTPStatus.CONFLICT, mimetype="text/html")


@section.action("/memories/<memory_id>/bring-back", BringBackForm)
def bring_back(view: View, memory_id: str) -> Response:
    """Bring back what an edit replaced, unless somebody changed it since."""
    form: BringBackForm = view.form
    with view.read() as db:
        text = None if form.entry is None else _earlier_text(db, _existing(db, memory_id), form.entry)
    wanted = Revision(
        content=text,
        tags=_changed_tags(form.tags, form.seen_tags),
        importance=form.importance,
        given_importance=form.given,
    )
    try:
        return _revised(view, memory_id, wanted)
    except Conflict as error:
        return back(view, f"Nothing was changed: {error}.", to=_address(memory_id))


def _revised(view: View, memory_id: str, wanted: Revision) -> Response:
    form: SeenForm = view.form
    with view.read() as db:
        before = _existing(db, memory_id)
        given_before = memories.given_importance(db, before.seq)
    seen = Seen(form.seen_text, _split_tags(form.seen_tags), form.seen_given)
    after = before if wanted == Revision() else revise.edit(view.database, memory_id, wanted, seen)
    undo: dict[str, str] = {}
    if wanted.tags is not None and after.tags != before.tags:
        undo |= {"tags": " ".join(before.tags), "seen_tags": " ".join(after.tags)}
    if wanted.importance is not None:
        with view.read() as db:
            given_after = memories.given_importance(db, after.seq)
        if (after.importance, given_after) != (before.importance, given_before):
            undo |= {"importance": repr(before.importance), "given": repr(given_before)}
            undo |= {"seen_given": repr(given_after)}
    if wanted.content is not None and after.content != before.content:
        with view.read() as db:
            undo["entry"] = str(history.page(db, before.seq, 1, None)[0][0])
        undo["seen_text"] = revise.text_mark(after.content)
    if not undo:
        return back(view, "Nothing was changed.", to=_address(memory_id))
    return back(view, "The memory is changed.", to=_address(memory_id), undo=(_path("bring_back", memory_id), undo))


@section.action("/memories/<memory_id>/pin", PinForm)
def pin(view: View, memory_id: str) -> Response:
    """Pin a memory, so that it never fades, or let it go."""
    pinned: bool = view.form.pinned
    revise.edit(view.database, memory_id, Revision(pinned=pinned))
    message = "The memory is pinned; it does not fade." if pinned else "The memory is not pinned any more."
    return back(view, message, undo=(_path("pin", memory_id), {"pinned": str(not pinned).lower()}))


@section.action("/memories/<memory_id>/confirm")
def confirm(view: View, memory_id: str) -> Response:
    """Confirm what nobody vouched for."""
    with view.read() as db:
        before = _existing(db, memory_id)
    if before.trust is Trust.TRUSTED:
        return back(view, "The memory is confirmed already.")
    after = revise.edit(view.database, memory_id, Revision(trust=Trust.TRUSTED))
    undo = (_path("unconfirm", memory_id), {"since": after.updated_at})
    return back(view, "The memory is confirmed; it may speak as a rule.", undo=undo)


@section.action("/memories/<memory_id>/unconfirm", UnconfirmForm)
def unconfirm(view: View, memory_id: str) -> Response:
    """Take a confirmation back."""
    revise.unconfirm(view.database, memory_id, view.form.since)
    return back(view, "The memory is evidence again, and so is what was derived from it meanwhile.")


@section.action("/memories/<memory_id>/archive")
def archive(view: View, memory_id: str) -> Response:
    """Take a memory out of every answer."""
    revise.archive(view.database, memory_id)
    message = "The memory is archived; no answer contains it."
    return back(view, message, to=_address(memory_id), undo=(_path("restore", memory_id), {}))


@section.action("/memories/<memory_id>/restore")
def restore(view: View, memory_id: str) -> Response:
    """Bring a memory back, from the archive or out of the one that it was merged into."""
    with view.read() as db:
        merged = audit.merge_of(db, memory_id) is not None
    revise.restore(view.database, memory_id)
    undo = None if merged else (_path("archive", memory_id), dict[str, str]())
    return back(view, "The memory is back in every answer.", undo=undo)


@section.page("/memories/<memory_id>/purge")
def purge_warning(view: View, memory_id: str) -> str:
    """Say what a purge takes away, before it does."""
    with view.read() as db:
        memory = _existing(db, memory_id)
        merged = memories.merged_into(db, memory.seq)
        made = {seq for one in (*merged, memory) for seq in derivations.derived_summaries(db, one.seq)}
        found = {
            "merged": merged[:DOOMED],
            "untold": max(0, len(merged) - DOOMED),
            "made": [one for one in memories.by_seqs(db, sorted(made)[:DOOMED]).values() if one.id != memory.id],
            "texts": history.count(db, memory.seq),
            "ties": len(edges.of(db, memory.seq)),
            "entities": len(entities.of(db, memory.seq)),
            "arc": arcs.of_memory(db, OWNER, memory.seq),
            "tally": impressions.tally(db, memory.seq),
        }
    return show("purge.html", view, title="Purge this memory?", memory=memory, **found)


@section.action("/memories/<memory_id>/purge")
def purge(view: View, memory_id: str) -> Response:
    """Delete a memory for good."""
    revise.purge(view.database, memory_id)
    message = "The memory is purged; a worker scrubs the indexes and the copies now."
    return back(view, message, to=url_for("dashboard.timeline_journal"))


def _existing(db: Connection, memory_id: str) -> Memory:
    memory = memories.get(db, memory_id)
    if memory is None:
        raise NotFound("There is no such memory; it may have been purged.")
    return memory


def _address(memory_id: str) -> str:
    return url_for("dashboard.memory_record", memory_id=memory_id)


def _path(action: str, memory_id: str) -> str:
    return url_for(f"dashboard.memory_{action}", memory_id=memory_id)


def _ties(db: Connection, linked: list[Edge]) -> dict[tuple[str, bool], list[Tie]]:
    found: dict[tuple[str, bool], list[Tie]] = {}
    for edge in linked[:EDGES]:
        other = memories.get(db, edge.other_id)
        if other is not None:
            found.setdefault((edge.kind, edge.outgoing), []).append(Tie(edge, other))
    return found


def _doubles(db: Connection, seq: int) -> list[Double]:
    waiting = {
        pair.older_seq if pair.newer_seq == seq else pair.newer_seq: pair for pair in pairs.beside(db, seq, PAIRS)
    }
    others = memories.by_seqs(db, waiting)
    return [Double(pair, others[other]) for other, pair in waiting.items()]


def _survivor(db: Connection, memory: Memory) -> Memory | None:
    merge = audit.merge_of(db, memory.id) if memory.archived_at is not None else None
    return None if merge is None or merge.other_id is None else memories.get(db, merge.other_id)


def _forecast(view: View, db: Connection, seq: int) -> Forecast:
    usage = fading.of(db, utc_text(view.now), seq)
    assert usage is not None
    today = view.now.timestamp() / DAY_S + UNIX_EPOCH_JULIAN
    # A stretch shorter than what counts of an idle one counts as a whole, whatever happened in it.
    days = fading.active_days(db) if today - usage.used > IDLE_DAYS else []
    return forecast(usage, lived_time(days), today)


def _earlier_text(db: Connection, memory: Memory, number: int) -> str:
    for found, entry in history.page(db, memory.seq, 1, number + 1):
        if found == number and entry.event == EDITED and entry.content is not None:
            return entry.content
    raise NotFound("The history has no such text.")


def _fields(memory: Memory, wanted: Revision | None) -> dict[str, Any]:
    """Return what the fields of the edit form hold: what somebody wanted, else what is."""
    held = {"content": memory.content, "tags": memory.tags, "importance": memory.importance}
    return {name: now if (new := getattr(wanted, name, None)) is None else new for name, now in held.items()}


def _changed_tags(given: str, seen: str) -> tuple[str, ...] | None:
    tags = _split_tags(given)
    if tags == _split_tags(seen):
        return None
    if len(tags) > MAX_TAGS or not all(_TAG.fullmatch(tag) for tag in tags):
        raise InvalidField(FieldError("tags", f"must be at most {MAX_TAGS}, of the letters a to z, digits and hyphens"))
    return tags


def _split_tags(given: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for tag in _BETWEEN_TAGS.split(given.lower()) if tag))
