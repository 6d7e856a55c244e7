"""The inbox: what waits for a person, and what was done without asking; every judgement can be taken back."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any

from flask import redirect, url_for
from pydantic import BaseModel, StringConstraints
from werkzeug.wrappers import Response

from pipeline.errors import Conflict, NotFound
from pipeline.records import Memory, Page
from pipeline.records.people import Role
from pipeline.services import review
from pipeline.services.review import (
    MOST_COUNTED,
    AuditEntry,
    CandidateVerdict,
    Contradiction,
    ContradictionVerdict,
    Decision,
    DuplicatePair,
    PairVerdict,
    RefusedOffer,
    Settlement,
    Waiting,
)
from pipeline.services.workspace import Workspace
from web.dashboard.text_diff import TextPart, side_by_side
from web.dashboard.view import Cursor, Paged, Section, View, back, next_page, show

section = Section("inbox", Role.OWNER)

# An entry holds up to two texts; more would make a page too long to load and to read.
PAGE = 20
UNDONE = "Undone. The entry waits for review again."


class Tab(StrEnum):
    """What kind of entries to list."""

    CANDIDATES = "candidates"
    DUPLICATES = "duplicates"
    CONTRADICTIONS = "contradictions"
    DONE = "done"
    REFUSED = "refused"


Anchor = Annotated[str, StringConstraints(pattern=r"^e-[0-9A-Za-z.-]{1,60}$")]
Maker = Annotated[str, StringConstraints(pattern=r"^[a-z-]{1,40}$")]


class InboxQuery(Paged):
    """Which entries to list; without a kind, the first of which something waits."""

    kind: Tab | None = None


class InboxForm(BaseModel):
    """Where in the inbox a form stood, and which entry is next; a form elsewhere tells nothing."""

    kind: Tab | None = None
    before: Cursor | None = None
    next: Anchor | None = None


class CandidateForm(InboxForm):
    """Whether a candidate becomes a memory."""

    action: CandidateVerdict


class PairForm(InboxForm):
    """Whether a pair is one."""

    action: PairVerdict


class ContradictionForm(InboxForm):
    """Which of two contradicting memories holds."""

    action: ContradictionVerdict


class SettlementForm(InboxForm):
    """What was done about a contradiction: a memory archived, or the edges of their makers taken away."""

    archived: str | None = None
    denial_by: Maker | None = None
    reverse_by: Maker | None = None


@dataclass(frozen=True, slots=True)
class ComparedMemory:
    """One of two memories that are compared, and what it says otherwise."""

    memory: Memory
    stretches: tuple[TextPart, ...]


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """An entry of the inbox: `about` is what waits or was done, the sides its memories, the older first."""

    anchor: str
    about: DuplicatePair | Contradiction | AuditEntry | Decision | RefusedOffer | None
    sides: tuple[ComparedMemory, ...]


@dataclass(frozen=True, slots=True)
class Undo:
    """How a judgement is taken back: an action, its path and fields, and the entry that waits again."""

    action: str
    path: dict[str, Any]
    anchor: str
    fields: Mapping[str, Any]


def _if_still_waiting(judge: Callable[..., Response]) -> Callable[..., Response]:
    """Tell that nothing was done where somebody else was faster, or a job was; what else waits is still there."""

    @wraps(judge)
    def try_judging(view: View, **path: str) -> Response:
        try:
            return judge(view, **path)
        except (Conflict, NotFound) as error:
            return _go_on(view, f"Nothing changed: {error}.")

    return try_judging


@section.page("/inbox", InboxQuery)
def review_entries(view: View) -> str | Response:
    """Show a page of one kind of entries."""
    query: InboxQuery = view.query
    counts = _counts(review.count_waiting(view.workspace))
    tab = query.kind or next((one for one, count in counts.items() if count), Tab.CANDIDATES)
    page = _LISTS[tab](view.workspace, query.before)
    if query.before is not None and not page.items:
        # Everything on this later page is judged; what still waits stands on the first.
        return redirect(url_for("dashboard.inbox_review_entries", kind=tab), 303)
    return show(
        "inbox.html",
        view,
        title="Inbox",
        tab=tab,
        counts=counts,
        most_counted=MOST_COUNTED,
        items=page.items,
        next_url=next_page(page.next_cursor, kind=tab),
    )


@section.action("/inbox/candidates/<memory_id>", CandidateForm)
@_if_still_waiting
def judge_candidate(view: View, memory_id: str) -> Response:
    """Accept a candidate, or archive it."""
    verdict: CandidateVerdict = view.form.action
    accepted = verdict is CandidateVerdict.ACCEPT
    review.settle_candidate(view.workspace, memory_id, verdict)
    message = "Candidate accepted." if accepted else "Candidate rejected and archived."
    return _go_on(
        view, message, Undo("undo_candidate", {"memory_id": memory_id}, f"e-{memory_id}", {"action": verdict})
    )


@section.action("/inbox/candidates/<memory_id>/undo", CandidateForm)
@_if_still_waiting
def undo_candidate(view: View, memory_id: str) -> Response:
    """Let a candidate wait again."""
    review.reopen_candidate(view.workspace, memory_id, view.form.action)
    return _go_on(view, UNDONE)


@section.action("/inbox/pairs/<pair_id>", PairForm)
@_if_still_waiting
def judge_pair(view: View, pair_id: str) -> Response:
    """Merge a pair into its older memory, or keep both."""
    verdict: PairVerdict = view.form.action
    review.settle_pair(view.workspace, pair_id, verdict)
    merged = verdict is PairVerdict.MERGE
    message = "The newer memory was merged into the older." if merged else "Both memories were kept."
    return _go_on(view, message, Undo("undo_pair", {"pair_id": pair_id}, f"e-{pair_id}", {}))


@section.action("/inbox/pairs/<pair_id>/undo", InboxForm)
@_if_still_waiting
def undo_pair(view: View, pair_id: str) -> Response:
    """Let a pair wait again."""
    review.reopen_pair(view.workspace, pair_id)
    return _go_on(view, UNDONE)


@section.action("/inbox/contradictions/<denying_id>/<denied_id>", ContradictionForm)
@_if_still_waiting
def judge_contradiction(view: View, denying_id: str, denied_id: str) -> Response:
    """Archive the memory that does not hold, or take the contradiction away."""
    settlement = review.settle_contradiction(view.workspace, denying_id, denied_id, view.form.action)
    message = "Both memories were kept, and the contradiction was removed."
    if settlement.archived is not None:
        message = "The other memory was archived."
    path = {"denying_id": denying_id, "denied_id": denied_id}
    undo = Undo("undo_contradiction", path, f"e-{denying_id}.{denied_id}", asdict(settlement))
    return _go_on(view, message, undo)


@section.action("/inbox/contradictions/<denying_id>/<denied_id>/undo", SettlementForm)
@_if_still_waiting
def undo_contradiction(view: View, denying_id: str, denied_id: str) -> Response:
    """Let a contradiction wait again."""
    form: SettlementForm = view.form
    settlement = Settlement(form.archived, form.denial_by, form.reverse_by)
    review.reopen_contradiction(view.workspace, denying_id, denied_id, settlement)
    return _go_on(view, UNDONE)


@section.action("/inbox/acts/<entry_id>/undo", InboxForm)
@_if_still_waiting
def undo_act(view: View, entry_id: str) -> Response:
    """Take back what was merged or archived without asking."""
    review.undo_act(view.workspace, entry_id)
    return _go_on(view, "The memory was restored.")


@section.action("/inbox/refused/<memory_id>", InboxForm)
@_if_still_waiting
def accept_refused(view: View, memory_id: str) -> Response:
    """Change one's mind about what was refused."""
    memory = review.accept_refused(view.workspace, memory_id)
    return _go_on(view, "The memory was accepted." if memory is not None else "The text will be accepted next time.")


def _go_on(view: View, message: str, undo: Undo | None = None) -> Response:
    """Return to the entry that is next, or to wherever the form stood."""
    form: InboxForm = view.form
    here: dict[str, Any] = form.model_dump(include={"kind", "before"}, exclude_none=True)
    to = None if form.kind is None else url_for("dashboard.inbox_review_entries", **here, _anchor=form.next)
    if undo is None:
        return back(view, message, to=to)
    # Whoever judged elsewhere goes back there, too.
    fields = {**undo.fields, **here, "next": undo.anchor if here else None}
    path = url_for(f"dashboard.inbox_{undo.action}", **undo.path)
    said = {name: str(value) for name, value in fields.items() if value is not None}
    return back(view, message, to=to, undo=(path, said))


def _counts(waiting: Waiting) -> dict[Tab, int]:
    counts = (waiting.candidates, waiting.pairs, waiting.contradictions, waiting.acts, waiting.refused)
    return dict(zip(Tab, counts, strict=True))


def _list_candidates(workspace: Workspace, before: int | None) -> Page[InboxEntry]:
    page = review.list_candidates(workspace, workspace.onlooker, PAGE, before)
    entries = [InboxEntry(f"e-{one.memory.id}", one.decision, (ComparedMemory(one.memory, ()),)) for one in page.items]
    return Page(entries, page.next_cursor)


def _list_pairs(workspace: Workspace, before: int | None) -> Page[InboxEntry]:
    page = review.list_pairs(workspace, workspace.onlooker, PAGE, before)
    entries = [InboxEntry(f"e-{pair.id}", pair, _compare(pair.older, pair.newer)) for pair in page.items]
    return Page(entries, page.next_cursor)


def _list_contradictions(workspace: Workspace, before: int | None) -> Page[InboxEntry]:
    page = review.list_contradictions(workspace, PAGE, before)
    entries = []
    for one in page.items:
        older, newer = sorted((one.denying, one.denied), key=lambda memory: (memory.occurred_at, memory.seq))
        entries.append(InboxEntry(f"e-{one.denying.id}.{one.denied.id}", one, _compare(older, newer)))
    return Page(entries, page.next_cursor)


def _list_acts(workspace: Workspace, before: int | None) -> Page[InboxEntry]:
    page = review.list_acts(workspace, PAGE, before)
    entries = []
    for act in page.items:
        sides: tuple[ComparedMemory, ...] = ()
        if act.memory is not None:
            sides = (ComparedMemory(act.memory, ()),) if act.other is None else _compare(act.other, act.memory)
        entries.append(InboxEntry(f"e-{act.entry.id}", act.entry, sides))
    return Page(entries, page.next_cursor)


def _list_refused(workspace: Workspace, _before: int | None) -> Page[InboxEntry]:
    entries = [
        InboxEntry(f"e-{one.refusal.memory_id}", one, () if one.memory is None else (ComparedMemory(one.memory, ()),))
        for one in review.list_refused_offers(workspace, PAGE, None)
    ]
    return Page(entries)


_LISTS: dict[Tab, Callable[[Workspace, int | None], Page[InboxEntry]]] = {
    Tab.CANDIDATES: _list_candidates,
    Tab.DUPLICATES: _list_pairs,
    Tab.CONTRADICTIONS: _list_contradictions,
    Tab.DONE: _list_acts,
    Tab.REFUSED: _list_refused,
}


def _compare(older: Memory, newer: Memory) -> tuple[ComparedMemory, ComparedMemory]:
    first, second = side_by_side(older.content, newer.content)
    return ComparedMemory(older, tuple(first)), ComparedMemory(newer, tuple(second))
