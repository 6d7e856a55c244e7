"""One memory: all that is known of it, why it fades, and what may be done with it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Annotated, Any

from flask import url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from pipeline.anchors import is_stale
from pipeline.errors import FieldError, InvalidField, NotFound
from pipeline.kinds import told
from pipeline.records import MAX_TAGS, OWNER, HistoryEntry, Memory, Stage, Trust
from pipeline.sleep.decay import DAY_S, IDLE_DAYS, UNIX_EPOCH_JULIAN, lived_time
from pipeline.sleep.forecast import Forecast, forecast
from pipeline.store import (
    admissions,
    arcs,
    audit,
    derivations,
    edges,
    entities,
    fading,
    history,
    memories,
    pairs,
    surfaces,
    work,
)
from pipeline.store.edges import Edge
from pipeline.store.pairs import Pair
from pipeline.times import utc_text
from pipeline.write import revise
from pipeline.write.accept import DIGESTION
from pipeline.write.normalize import normalize_text
from pipeline.write.revise import Revision
from web.dashboard.differences import Fate, Stretch, differences, shortened
from web.dashboard.pages.timeline import signs
from web.dashboard.view import Paged, Section, View, back, next_page, show

section = Section("memory")

EDGES = 40
ENTITIES = 60
PAIRS = 5
ACTS = 10
HISTORY = 10
DOOMED = 20
EDITED = "edited"
_TAG = re.compile(r"[a-z0-9-]{1,50}")
_BETWEEN_TAGS = re.compile(r"[\s,]+")


class EditForm(BaseModel):
    """What a memory becomes; `entry` names an earlier text of its history. Without tags it has none."""

    content: str | None = None
    entry: int | None = None
    tags: str = ""
    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class PinForm(BaseModel):
    """Whether a memory is pinned."""

    pinned: bool


class TrustForm(BaseModel):
    """Whether a memory may speak as a rule."""

    trust: Trust


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


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the history, with the memory that it tells of and what it changed."""

    number: int
    entry: HistoryEntry
    other: Memory | None
    stretches: tuple[Stretch, ...]


@section.page("/memories/<memory_id>", Paged)
def record(view: View, memory_id: str) -> str:
    """Show the whole record."""
    with view.read() as db:
        memory = _existing(db, memory_id)
        seq = memory.seq
        linked, named = edges.of(db, seq), entities.of(db, seq)
        changes, older = _history(db, memory, view.query.before)
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
            "tally": surfaces.tally(db, seq),
            "recalled_at": fading.recalled_at(db, seq),
            "forecast": _forecast(view, db, seq),
            "sign": signs(work.undigested_among(db, [seq])).get(memory.id),
        }
    stale = None if memory.anchor is None else is_stale(memory.anchor)
    return show(
        "memory.html",
        view,
        title=memory.kind.replace("_", " ").capitalize(),
        memory=memory,
        told=told(memory),
        stale=stale,
        metadata=json.dumps(memory.metadata, ensure_ascii=False, indent=2) if memory.metadata else "",
        changes=changes,
        older_url=next_page(older),
        trusts=Trust,
        **known,
    )


@section.action("/memories/<memory_id>/edit", EditForm)
def edit(view: View, memory_id: str) -> Response:
    """Change text, tags and importance; what did not change is left alone."""
    form: EditForm = view.form
    with view.read() as db:
        before = _existing(db, memory_id)
        content = form.content if form.entry is None else _earlier_text(db, before, form.entry)
    tags = _tags(form.tags)
    new_text = None if content is None or normalize_text(content) == before.content else content
    after = revise.edit(
        view.database,
        memory_id,
        Revision(
            content=new_text,
            tags=None if tags == before.tags else tags,
            importance=None if form.importance == before.importance else form.importance,
        ),
    )
    if after == before:
        return back(view, "Nothing was changed.", to=_address(memory_id))
    undo = {"tags": " ".join(before.tags), "importance": repr(before.importance)}
    if after.content != before.content:
        for stage in DIGESTION:
            view.front.ring(view.workspace, stage)
        with view.read() as db:
            undo["entry"] = str(history.page(db, before.seq, 1, None)[0][0])
    return back(view, "The memory is changed.", to=_address(memory_id), undo=(_path("edit", memory_id), undo))


@section.action("/memories/<memory_id>/pin", PinForm)
def pin(view: View, memory_id: str) -> Response:
    """Pin a memory, so that it never fades, or let it go."""
    pinned: bool = view.form.pinned
    revise.edit(view.database, memory_id, Revision(pinned=pinned))
    message = "The memory is pinned; it does not fade." if pinned else "The memory is not pinned any more."
    return back(view, message, undo=(_path("pin", memory_id), {"pinned": str(not pinned).lower()}))


@section.action("/memories/<memory_id>/trust", TrustForm)
def set_trust(view: View, memory_id: str) -> Response:
    """Confirm what nobody vouched for, or take that back."""
    trust: Trust = view.form.trust
    other = Trust.EVIDENCE if trust is Trust.TRUSTED else Trust.TRUSTED
    revise.edit(view.database, memory_id, Revision(trust=trust))
    message = (
        "The memory is confirmed; it may speak as a rule."
        if trust is Trust.TRUSTED
        else "The memory is evidence, and so is what was derived from it."
    )
    return back(view, message, undo=(_path("set_trust", memory_id), {"trust": other}))


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
    view.front.ring(view.workspace, Stage.DEDUP)
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
            "tally": surfaces.tally(db, memory.seq),
        }
    return show("purge.html", view, title="Purge this memory?", memory=memory, **found)


@section.action("/memories/<memory_id>/purge")
def purge(view: View, memory_id: str) -> Response:
    """Delete a memory for good."""
    revise.purge(view.database, memory_id)
    view.front.ring(view.workspace, Stage.PURGE)
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


def _history(db: Connection, memory: Memory, before: int | None) -> tuple[list[Change], int | None]:
    """Return a page of the history, the last change first, and from below which number the next page goes on."""
    found = history.page(db, memory.seq, HISTORY + 1, before)
    page = found[:HISTORY]
    text = memory.content
    if page and before is not None:
        text = history.text_after(db, memory.seq, page[0][0]) or text
    changes = []
    for number, entry in page:
        stretches: list[Stretch] = []
        if entry.event == EDITED and entry.content is not None:
            stretches, text = differences(entry.content, text), entry.content
        elif entry.content is not None:
            # A merge took it in; what the memory itself says stands elsewhere.
            stretches = [one for one in differences(text, entry.content) if one.fate is not Fate.GONE]
        changes.append(Change(number, entry, _told_of(db, entry.detail), tuple(shortened(stretches))))
    return changes, page[-1][0] if len(found) > len(page) else None


def _told_of(db: Connection, detail: Mapping[str, Any]) -> Memory | None:
    return memories.get(db, detail["memory_id"]) if "memory_id" in detail else None


def _earlier_text(db: Connection, memory: Memory, number: int) -> str:
    for found, entry in history.page(db, memory.seq, 1, number + 1):
        if found == number and entry.event == EDITED and entry.content is not None:
            return entry.content
    raise NotFound("The history has no such text.")


def _tags(given: str) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(tag for tag in _BETWEEN_TAGS.split(given.lower()) if tag))
    if len(tags) > MAX_TAGS or not all(_TAG.fullmatch(tag) for tag in tags):
        raise InvalidField(FieldError("tags", f"must be at most {MAX_TAGS}, of the letters a to z, digits and hyphens"))
    return tags
