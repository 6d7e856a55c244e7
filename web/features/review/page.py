"""Inbox: entries that wait for review, and automatic changes; every decision can be undone."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, Literal

from flask import redirect, url_for
from pydantic import BaseModel, StringConstraints
from werkzeug.wrappers import Response

from pipeline.features.lessons import guard_offers
from pipeline.features.review import conflicts, usecases as review
from pipeline.features.review.store import MOST_COUNTED, Decision
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import Memory, Page
from pipeline.kernel.records.people import Role
from pipeline.kernel.store.audit import AuditEntry
from pipeline.kernel.workspace import Workspace
from web.dashboard.text_diff import TextPart, side_by_side
from web.dashboard.view import Cursor, Link, Paged, Section, View, back, next_page, show

section = Section("inbox", Role.OWNER, Link("Inbox", "inbox_review_entries", "Maintenance", 49))

# Each entry contains up to two texts, so a longer page would be slow to load and read.
PAGE = 20
UNDONE = "Undone. The entry waits for review again."


class Tab(StrEnum):
    """Kind of entries to list."""

    CANDIDATES = "candidates"
    RULES = "rules"
    DUPLICATES = "duplicates"
    CONTRADICTIONS = "contradictions"
    DONE = "done"
    REFUSED = "refused"


Anchor = Annotated[str, StringConstraints(pattern=r"^e-[0-9A-Za-z.-]{1,60}$")]
Maker = Annotated[str, StringConstraints(pattern=r"^[a-z-]{1,40}$")]


class InboxForm(BaseModel):
    """Position of the form in the inbox, and the next entry; empty for forms on other pages."""

    kind: Tab | None = None
    before: Cursor | None = None
    next: Anchor | None = None


@dataclass(frozen=True, slots=True)
class ComparedMemory:
    """One of two compared memories, with its text split by differences."""

    memory: Memory
    stretches: tuple[TextPart, ...]


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """An inbox entry: `about` is the pending or completed decision; `sides` are its memories, older first."""

    anchor: str
    about: review.DuplicatePair | conflicts.MemoryConflict | AuditEntry | Decision | review.RefusedOffer | None
    sides: tuple[ComparedMemory, ...]


@dataclass(frozen=True, slots=True)
class Undo:
    """Undo of a decision: the action, its path and fields, and the entry that is pending again."""

    action: str
    path: dict[str, Any]
    anchor: str
    fields: Mapping[str, Any]


def _if_still_waiting(judge: Callable[..., Response]) -> Callable[..., Response]:
    """Return to the inbox with a message if another user or a job already settled the entry."""

    @wraps(judge)
    def try_judging(view: View, **sent: Any) -> Response:
        try:
            return judge(view, **sent)
        except (Conflict, NotFound) as error:
            return _go_on(view, f"Nothing changed: {error}.")

    return try_judging


@section.page("/inbox", Paged)
def review_entries(view: View, *, kind: Tab | None = None) -> str | Response:
    """Show a page of one kind of entries; without a kind, of the first kind that has entries."""
    counts = _counts(view.workspace)
    tab = kind or next((name for name, count in counts.items() if count), Tab.CANDIDATES)
    page = _LISTS[tab](view.workspace, view.query.before)
    if view.query.before is not None and not page.items:
        # All entries of this later page are settled; pending entries are on the first page.
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


@section.action("/inbox/candidates/<memory_id>", InboxForm)
@_if_still_waiting
def judge_candidate(view: View, memory_id: str, *, action: review.CandidateVerdict) -> Response:
    """Accept a candidate or archive it."""
    accepted = action is review.CandidateVerdict.ACCEPT
    review.settle_candidate(view.workspace, memory_id, action)
    message = "Candidate accepted." if accepted else "Candidate rejected and archived."
    return _go_on(view, message, Undo("undo_candidate", {"memory_id": memory_id}, f"e-{memory_id}", {"action": action}))


@section.action("/inbox/candidates/<memory_id>/undo", InboxForm)
@_if_still_waiting
def undo_candidate(view: View, memory_id: str, *, action: review.CandidateVerdict) -> Response:
    """Return a candidate to review."""
    review.reopen_candidate(view.workspace, memory_id, action)
    return _go_on(view, UNDONE)


@section.action("/inbox/rules/<memory_id>", InboxForm)
@_if_still_waiting
def judge_rule(view: View, memory_id: str, *, action: guard_offers.GuardVerdict) -> Response:
    """Let a rule block the calls that it forbids, or keep it as a reminder."""
    severity = guard_offers.settle_guard_offer(view.workspace, memory_id, action)
    message = "The rule stays a reminder."
    if action is guard_offers.GuardVerdict.BLOCK:
        message = "Reverie now stops calls that the rule forbids."
    return _go_on(view, message, Undo("undo_rule", {"memory_id": memory_id}, f"e-{memory_id}", {"severity": severity}))


@section.action("/inbox/rules/<memory_id>/undo", InboxForm)
@_if_still_waiting
def undo_rule(
    view: View, memory_id: str, *, severity: Annotated[str, StringConstraints(pattern=r"^(info|warning)$")]
) -> Response:
    """Return a rule to review, with its severity before the decision."""
    guard_offers.reopen_guard_offer(view.workspace, memory_id, severity)
    return _go_on(view, UNDONE)


@section.action("/inbox/pairs/<pair_id>", InboxForm)
@_if_still_waiting
def judge_pair(view: View, pair_id: str, *, action: review.PairVerdict) -> Response:
    """Merge a pair into the memory that was stated last, or keep both memories."""
    review.settle_pair(view.workspace, pair_id, action)
    merged = action is review.PairVerdict.MERGE
    message = (
        "The earlier memory was merged into the one that was stated last." if merged else "Both memories were kept."
    )
    return _go_on(view, message, Undo("undo_pair", {"pair_id": pair_id}, f"e-{pair_id}", {}))


@section.action("/inbox/pairs/<pair_id>/undo", InboxForm)
@_if_still_waiting
def undo_pair(view: View, pair_id: str) -> Response:
    """Return a pair to review."""
    review.reopen_pair(view.workspace, pair_id)
    return _go_on(view, UNDONE)


@section.action("/inbox/contradictions/<denying_id>/<denied_id>", InboxForm)
@_if_still_waiting
def judge_contradiction(
    view: View, denying_id: str, denied_id: str, *, action: Literal["denying", "denied", "both"]
) -> Response:
    """Archive one of two contradicting memories, or remove the contradiction."""
    kept = (denied_id, denying_id) if action == "denied" else (denying_id, denied_id)
    verdict = conflicts.ConflictAction.BOTH if action == "both" else conflicts.ConflictAction.KEEP
    settlement = conflicts.settle_conflict(view.workspace, *kept, verdict)
    message = "Both memories were kept, and the contradiction was removed."
    if settlement.archived is not None:
        message = "The other memory was archived."
    path = {"denying_id": denying_id, "denied_id": denied_id}
    undo = Undo("undo_contradiction", path, f"e-{denying_id}.{denied_id}", asdict(settlement))
    return _go_on(view, message, undo)


@section.action("/inbox/contradictions/<denying_id>/<denied_id>/undo", InboxForm)
@_if_still_waiting
def undo_contradiction(
    view: View,
    denying_id: str,
    denied_id: str,
    *,
    archived: str | None = None,
    denial_by: Maker | None = None,
    reverse_by: Maker | None = None,
) -> Response:
    """Return a contradiction to review: restore the archived memory, or the edges by their makers."""
    settlement = conflicts.Settlement(archived, denial_by, reverse_by)
    conflicts.reopen_conflict(view.workspace, denying_id, denied_id, settlement)
    return _go_on(view, UNDONE)


@section.action("/inbox/acts/<entry_id>/undo", InboxForm)
@_if_still_waiting
def undo_act(view: View, entry_id: str) -> Response:
    """Undo an automatic merge or archiving."""
    review.undo_act(view.workspace, entry_id)
    return _go_on(view, "The memory was restored.")


@section.action("/inbox/refused/<memory_id>", InboxForm)
@_if_still_waiting
def accept_refused(view: View, memory_id: str) -> Response:
    """Accept a memory that the user refused before."""
    memory = review.accept_refused(view.workspace, memory_id)
    return _go_on(view, "The memory was accepted." if memory is not None else "The text will be accepted next time.")


def _go_on(view: View, message: str, undo: Undo | None = None) -> Response:
    """Redirect to the next entry, or to the page of the form."""
    form: InboxForm = view.form
    here: dict[str, Any] = form.model_dump(include={"kind", "before"}, exclude_none=True)
    to = None if form.kind is None else url_for("dashboard.inbox_review_entries", **here, _anchor=form.next)
    if undo is None:
        return back(view, message, to=to)
    # A decision on another page returns to that page.
    fields = {**undo.fields, **here, "next": undo.anchor if here else None}
    path = url_for(f"dashboard.inbox_{undo.action}", **undo.path)
    texts = {name: str(value) for name, value in fields.items() if value is not None}
    return back(view, message, to=to, undo=(path, texts))


def _counts(workspace: Workspace) -> dict[Tab, int]:
    waiting = review.count_waiting(workspace)
    rules = len(guard_offers.list_guard_offers(workspace, workspace.onlooker, MOST_COUNTED))
    counts = (waiting.candidates, rules, waiting.pairs, waiting.contradictions, waiting.acts, waiting.refused)
    return dict(zip(Tab, counts, strict=True))


def _list_rules(workspace: Workspace, _before: int | None) -> Page[InboxEntry]:
    rules = guard_offers.list_guard_offers(workspace, workspace.onlooker, PAGE)
    return Page([InboxEntry(f"e-{rule.id}", None, (ComparedMemory(rule, ()),)) for rule in rules])


def _list_candidates(workspace: Workspace, before: int | None) -> Page[InboxEntry]:
    page = review.list_candidates(workspace, workspace.onlooker, PAGE, before)
    entries = [
        InboxEntry(f"e-{candidate.memory.id}", candidate.decision, (ComparedMemory(candidate.memory, ()),))
        for candidate in page.items
    ]
    return Page(entries, page.next_cursor)


def _list_pairs(workspace: Workspace, before: int | None) -> Page[InboxEntry]:
    page = review.list_pairs(workspace, workspace.onlooker, PAGE, before)
    entries = [InboxEntry(f"e-{pair.id}", pair, _compare(pair.older, pair.newer)) for pair in page.items]
    return Page(entries, page.next_cursor)


def _list_contradictions(workspace: Workspace, before: int | None) -> Page[InboxEntry]:
    page = conflicts.list_conflicts(workspace, PAGE, before)
    entries = []
    for conflict in page.items:
        both = (conflict.leading.memory, conflict.other.memory)
        older, newer = sorted(both, key=lambda memory: (memory.occurred_at, memory.seq))
        anchor = f"e-{conflict.denying_id}.{conflict.denied_id}"
        entries.append(InboxEntry(anchor, conflict, _compare(older, newer)))
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
        InboxEntry(
            f"e-{offer.refusal.memory_id}",
            offer,
            () if offer.memory is None else (ComparedMemory(offer.memory, ()),),
        )
        for offer in review.list_refused_offers(workspace, PAGE)
    ]
    return Page(entries)


_LISTS: dict[Tab, Callable[[Workspace, int | None], Page[InboxEntry]]] = {
    Tab.CANDIDATES: _list_candidates,
    Tab.RULES: _list_rules,
    Tab.DUPLICATES: _list_pairs,
    Tab.CONTRADICTIONS: _list_contradictions,
    Tab.DONE: _list_acts,
    Tab.REFUSED: _list_refused,
}


def _compare(older: Memory, newer: Memory) -> tuple[ComparedMemory, ComparedMemory]:
    first, second = side_by_side(older.content, newer.content)
    return ComparedMemory(older, tuple(first)), ComparedMemory(newer, tuple(second))
