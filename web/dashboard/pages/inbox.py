"""The inbox: what waits for a person, and what was done without asking; every judgement can be taken back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection
from typing import Annotated, Any

from flask import redirect, url_for
from pydantic import BaseModel, StringConstraints
from werkzeug.wrappers import Response

from pipeline.errors import Conflict, NotFound
from pipeline.records import OWNER, Filter, Memory
from pipeline.store import admissions, audit, inbox, memories, pairs
from pipeline.store.admissions import Decision
from pipeline.store.audit import Entry
from pipeline.store.inbox import MOST_COUNTED, Denial, Waiting
from pipeline.store.pairs import Pair
from pipeline.write import review as verbs
from pipeline.write import revise
from pipeline.write.review import CandidateVerdict, DenialVerdict, Makers, PairVerdict
from web.dashboard.differences import Stretch, side_by_side
from web.dashboard.view import Query, Section, View, back, show

section = Section("inbox")

# An entry holds up to two texts; more would make a page too long to load and to read.
PAGE = 20
UNDONE = "It waits again."


class Tab(StrEnum):
    """What kind of entries to list."""

    CANDIDATES = "candidates"
    DUPLICATES = "duplicates"
    CONTRADICTIONS = "contradictions"
    DONE = "done"


Cursor = Annotated[str, StringConstraints(pattern=r"^\d{1,18}(\.\d{1,18})?$")]
Anchor = Annotated[str, StringConstraints(pattern=r"^e-[0-9A-Za-z.-]{1,60}$")]
Maker = Annotated[str, StringConstraints(pattern=r"^[a-z-]{1,40}$")]


class InboxQuery(Query):
    """Which entries to list; without a kind, the first of which something waits."""

    kind: Tab | None = None
    before: Cursor | None = None


class Place(BaseModel):
    """Where in the inbox a form stood, and which entry is next; a form elsewhere tells nothing."""

    kind: Tab | None = None
    before: Cursor | None = None
    next: Anchor | None = None


class CandidateForm(Place):
    """Whether a candidate becomes a memory."""

    action: CandidateVerdict


class PairForm(Place):
    """Whether a pair is one."""

    action: PairVerdict


class DenialForm(Place):
    """Which of two contradicting memories holds."""

    action: DenialVerdict


class DenialUndoForm(Place):
    """What was done about a contradiction: a memory archived, or the edges of their makers taken away."""

    archived: str | None = None
    made_by: Maker | None = None
    reverse_by: Maker | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One of two memories that are compared, and what it says otherwise."""

    memory: Memory
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of the inbox: `about` is what waits or was done, the sides its memories, the older first."""

    anchor: str
    about: Pair | Denial | Entry | Decision | None
    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True)
class Undo:
    """How a judgement is taken back: an action, its path and fields, and the entry that waits again."""

    action: str
    path: dict[str, Any]
    anchor: str
    fields: dict[str, Any]


@section.page("/inbox", InboxQuery)
def review(view: View) -> str | Response:
    """Show a page of one kind of entries."""
    query: InboxQuery = view.query
    with view.read() as db:
        waiting = inbox.waiting(db)
        counts = dict(zip(Tab, (waiting.candidates, waiting.pairs, waiting.denials, waiting.acts), strict=True))
        tab = query.kind or _first(waiting)
        items, older = _LISTS[tab](db, query.before)
    if query.before is not None and not items:
        # Everything on this later page is judged; what still waits stands on the first.
        return redirect(url_for("dashboard.inbox_review", kind=tab), 303)
    return show(
        "inbox.html",
        view,
        title="Inbox",
        tab=tab,
        counts=counts,
        most_counted=MOST_COUNTED,
        items=items,
        next_url=None if older is None else url_for("dashboard.inbox_review", kind=tab, before=older),
    )


@section.action("/inbox/candidates/<memory_id>", CandidateForm)
def judge_candidate(view: View, memory_id: str) -> Response:
    """Let a candidate in, or archive it."""
    verdict: CandidateVerdict = view.form.action
    accepted = verdict is CandidateVerdict.ACCEPT

    def judge() -> Response:
        verbs.settle_candidate(view.database, memory_id, verdict)
        message = "The candidate is a memory now." if accepted else "The candidate is archived."
        return _go_on(
            view, message, Undo("undo_candidate", {"memory_id": memory_id}, f"e-{memory_id}", {"action": verdict})
        )

    return _tried(view, judge)


@section.action("/inbox/candidates/<memory_id>/undo", CandidateForm)
def undo_candidate(view: View, memory_id: str) -> Response:
    """Let a candidate wait again."""

    def undo() -> Response:
        if view.form.action is CandidateVerdict.ACCEPT:
            verbs.put_back_candidate(view.database, memory_id)
        else:
            revise.restore(view.database, memory_id)
        return _go_on(view, UNDONE)

    return _tried(view, undo)


@section.action("/inbox/pairs/<pair_id>", PairForm)
def judge_pair(view: View, pair_id: str) -> Response:
    """Merge a pair into its older memory, or keep both."""
    verdict: PairVerdict = view.form.action

    def judge() -> Response:
        verbs.settle_pair(view.database, pair_id, verdict)
        merged = verdict is PairVerdict.MERGE
        message = "The newer memory is merged into the older." if merged else "Both are kept."
        return _go_on(view, message, Undo("undo_pair", {"pair_id": pair_id}, f"e-{pair_id}", {}))

    return _tried(view, judge)


@section.action("/inbox/pairs/<pair_id>/undo", Place)
def undo_pair(view: View, pair_id: str) -> Response:
    """Let a pair wait again."""

    def undo() -> Response:
        verbs.reopen_pair(view.database, pair_id)
        return _go_on(view, UNDONE)

    return _tried(view, undo)


@section.action("/inbox/contradictions/<denying_id>/<denied_id>", DenialForm)
def judge_denial(view: View, denying_id: str, denied_id: str) -> Response:
    """Archive the memory that does not hold, or take the contradiction away."""
    verdict: DenialVerdict = view.form.action

    def judge() -> Response:
        makers = verbs.settle_denial(view.database, denying_id, denied_id, verdict)
        if verdict is DenialVerdict.BOTH:
            message, done = "Both are kept, and do not contradict each other any more.", {"made_by": makers.denial}
            done |= {} if makers.reverse is None else {"reverse_by": makers.reverse}
        else:
            archived = denied_id if verdict is DenialVerdict.DENYING else denying_id
            message, done = "The other memory is archived.", {"archived": archived}
        path = {"denying_id": denying_id, "denied_id": denied_id}
        return _go_on(view, message, Undo("undo_denial", path, f"e-{denying_id}.{denied_id}", done))

    return _tried(view, judge)


@section.action("/inbox/contradictions/<denying_id>/<denied_id>/undo", DenialUndoForm)
def undo_denial(view: View, denying_id: str, denied_id: str) -> Response:
    """Let a contradiction wait again."""
    form: DenialUndoForm = view.form

    def undo() -> Response:
        if form.archived in (denying_id, denied_id):
            revise.restore(view.database, form.archived)
        else:
            makers = Makers(form.made_by or verbs.PERSON, form.reverse_by)
            verbs.reopen_denial(view.database, denying_id, denied_id, makers)
        return _go_on(view, UNDONE)

    return _tried(view, undo)


@section.action("/inbox/acts/<entry_id>/undo", Place)
def undo_act(view: View, entry_id: str) -> Response:
    """Take back what was merged or archived without asking."""

    def undo() -> Response:
        verbs.undo(view.database, entry_id)
        return _go_on(view, "The memory is back in every answer.")

    return _tried(view, undo)


def _tried(view: View, judge: Callable[[], Response]) -> Response:
    try:
        return judge()
    except (Conflict, NotFound) as error:
        # Somebody else was faster, or a night was; what else waits is still there.
        return _go_on(view, f"Nothing was done: {error}.")


def _go_on(view: View, message: str, undo: Undo | None = None) -> Response:
    """Return to the entry that is next, or to wherever the form stood."""
    form: Place = view.form
    here: dict[str, Any] = form.model_dump(include={"kind", "before"}, exclude_none=True)
    to = None if form.kind is None else url_for("dashboard.inbox_review", **here, _anchor=form.next)
    if undo is None:
        return back(view, message, to=to)
    # Whoever judged elsewhere goes back there, too.
    fields = undo.fields | (here | {"next": undo.anchor} if here else {})
    path = url_for(f"dashboard.inbox_{undo.action}", **undo.path)
    return back(view, message, to=to, undo=(path, {name: str(value) for name, value in fields.items()}))


def _first(waiting: Waiting) -> Tab:
    for tab, count in zip(Tab, (waiting.candidates, waiting.pairs, waiting.denials, waiting.acts), strict=True):
        if count:
            return tab
    return Tab.CANDIDATES


_Listed = tuple[list[Item], str | None]


def _candidates(db: Connection, before: str | None) -> _Listed:
    found = memories.page(db, Filter(candidates=True, viewer=OWNER), PAGE + 1, _number(before))
    items = [Item(f"e-{one.id}", admissions.of(db, one.id), (Side(one, ()),)) for one in found[:PAGE]]
    return items, _older(found, lambda one: str(one.seq))


def _pairs(db: Connection, before: str | None) -> _Listed:
    found = pairs.waiting(db, OWNER, PAGE + 1, _number(before))
    texts = memories.by_seqs(db, {seq for pair in found for seq in (pair.older_seq, pair.newer_seq)})
    items = [
        Item(f"e-{pair.id}", pair, _compared(texts[pair.older_seq], texts[pair.newer_seq])) for pair in found[:PAGE]
    ]
    return items, _older(found, lambda pair: str(pair.seq))


def _denials(db: Connection, before: str | None) -> _Listed:
    after = None
    if before is not None:
        first, _, second = before.partition(".")
        after = (int(first), int(second or 0))
    found = inbox.denials(db, PAGE + 1, after)
    texts = memories.by_seqs(db, {seq for one in found for seq in (one.from_seq, one.to_seq)})
    items = []
    for one in found[:PAGE]:
        denying, denied = texts[one.from_seq], texts[one.to_seq]
        older, newer = sorted((denying, denied), key=lambda memory: (memory.occurred_at, memory.seq))
        items.append(Item(f"e-{denying.id}.{denied.id}", one, _compared(older, newer)))
    return items, _older(found, lambda one: f"{one.from_seq}.{one.to_seq}")


def _acts(db: Connection, before: str | None) -> _Listed:
    found = audit.page(db, PAGE + 1, _number(before))
    items = []
    for entry in found[:PAGE]:
        memory = memories.get(db, entry.memory_id)
        other = None if entry.other_id is None else memories.get(db, entry.other_id)
        sides: tuple[Side, ...] = ()
        if memory is not None:
            sides = (Side(memory, ()),) if other is None else _compared(other, memory)
        items.append(Item(f"e-{entry.id}", entry, sides))
    return items, _older(found, lambda entry: str(entry.seq))


_LISTS: dict[Tab, Callable[[Connection, str | None], _Listed]] = {
    Tab.CANDIDATES: _candidates,
    Tab.DUPLICATES: _pairs,
    Tab.CONTRADICTIONS: _denials,
    Tab.DONE: _acts,
}


def _compared(older: Memory, newer: Memory) -> tuple[Side, Side]:
    first, second = side_by_side(older.content, newer.content)
    return Side(older, tuple(first)), Side(newer, tuple(second))


def _older(found: Sequence[Any], cursor: Callable[[Any], str]) -> str | None:
    return cursor(found[PAGE - 1]) if len(found) > PAGE else None


def _number(before: str | None) -> int | None:
    return None if before is None else int(before.partition(".")[0])
