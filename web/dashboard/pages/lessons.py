"""Lessons: what was learnt, how often agents were shown it, and whether they followed."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Literal

from flask import url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from pipeline.errors import NotFound
from pipeline.records import OWNER, Kind, Memory
from pipeline.services.feedback import answer_impression, withdraw_answer
from pipeline.services.lessons import ENOUGH, Usefulness, wilson_interval, with_records
from pipeline.store import impressions, memories
from pipeline.store import lessons as table
from pipeline.store.impressions import Impression, Tally
from pipeline.write import revise
from web.dashboard.view import PAGE_SIZE, Paged, Search, Section, View, back, cut, next_page, show

section = Section("lessons")

LAST_SHOWN = 3
# A place in a list by a measure: the measure, a share in millionths, then the row number with leading zeros.
MILLIONTHS, SEQ_DIGITS = 10**6, 10
MAX_NOTE_CHARS = 2000
# What the answers to a lesson say, in words.
VERDICTS: Mapping[Usefulness, str] = {
    Usefulness.USEFUL: "useful",
    Usefulness.UNPROVEN: "unproven",
    Usefulness.DEAD: "not followed",
}


class Order(StrEnum):
    """What stands first."""

    NEWEST = "newest"
    USEFUL = "useful"
    SHOWN = "shown"
    FOLLOWED = "followed"
    IGNORED = "ignored"


class LessonsQuery(Paged):
    """Which lessons to list: those that hold these words, in which order."""

    q: Search = ""
    order: Order = Order.NEWEST


class OutcomeForm(BaseModel):
    """What became of a lesson that was shown; "unknown" takes back what was said."""

    followed: Literal["true", "false", "unknown"]
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARS)] | None = None


@section.page("/lessons", LessonsQuery)
def list_all(view: View) -> str:
    """List lessons with their records."""
    items, next_url = _listed(view)
    with view.read() as db:
        lessons = with_records(db, items)
        shown = {memory.seq: impressions.latest(db, memory.seq, LAST_SHOWN) for memory in items}
    return show(
        "lessons.html",
        view,
        title="Lessons",
        lessons=lessons,
        shown=shown,
        next_url=next_url,
        orders=list(Order),
        verdicts=VERDICTS,
    )


@section.page("/lessons/<lesson_id>")
def one(view: View, lesson_id: str) -> str:
    """Show the last times that a lesson was put before an agent, and what became of them."""
    memory = _lesson(view, lesson_id)
    with view.read() as db:
        (lesson,) = with_records(db, [memory])
        shown = impressions.latest(db, memory.seq, PAGE_SIZE)
    return show("lesson.html", view, title="Lesson", lesson=lesson, shown=shown, verdicts=VERDICTS, enough=ENOUGH)


@section.action("/lessons/surfaces/<surface_id>", OutcomeForm)
def answer(view: View, surface_id: str) -> Response:
    """Say whether a lesson that was shown was followed, or take back what was said."""
    form: OutcomeForm = view.form
    with view.read() as db:
        before = impressions.get(db, surface_id)
    if before is None:
        raise NotFound("no such impression")
    if form.followed == "unknown":
        withdraw_answer(view.workspace, view.container.feedback, surface_id)
        return back(view, "Noted: nobody says.")
    followed = form.followed == "true"
    answer_impression(view.workspace, view.container.feedback, surface_id, form.note, followed=followed)
    undo = (url_for("dashboard.lessons_answer", surface_id=surface_id), _said(before))
    return back(view, f"Noted: {'followed' if followed else 'ignored'}.", undo=undo)


@section.action("/lessons/<lesson_id>/archive")
def archive(view: View, lesson_id: str) -> Response:
    """Archive a lesson."""
    revise.archive(view.database, _lesson(view, lesson_id).id)
    return back(view, "The lesson is archived.", undo=(url_for("dashboard.lessons_restore", lesson_id=lesson_id), {}))


@section.action("/lessons/<lesson_id>/restore")
def restore(view: View, lesson_id: str) -> Response:
    """Bring a lesson back."""
    revise.restore(view.database, _lesson(view, lesson_id).id)
    return back(view, "The lesson is back.")


def _listed(view: View) -> tuple[list[Memory], str | None]:
    """Return a page of lessons in the order that is asked for, and the address of the next."""
    query: LessonsQuery = view.query
    words = query.q.split()
    with view.read() as db:
        if query.order is Order.NEWEST:
            return cut(table.page(db, OWNER, words, PAGE_SIZE + 1, query.before), lambda memory: memory.seq)
        places = _places(query.order, table.tallies(db, OWNER, words), query.before)
        page = [place % 10**SEQ_DIGITS for place in places[:PAGE_SIZE]]
        found = memories.by_seqs(db, page)
    return [found[seq] for seq in page], next_page(places[PAGE_SIZE - 1] if len(places) > PAGE_SIZE else None)


def _places(order: Order, counted: Sequence[tuple[int, Tally]], below: int | None) -> list[int]:
    """Return the places in a list, best first, of what counts at all, from below a place."""
    found = (measure * 10**SEQ_DIGITS + seq for seq, tally in counted if (measure := _measure(order, tally)) > 0)
    return sorted((place for place in found if below is None or place < below), reverse=True)[: PAGE_SIZE + 1]


def _measure(order: Order, tally: Tally) -> int:
    if order is Order.USEFUL:
        return round(wilson_interval(tally.followed, tally.followed + tally.ignored)[0] * MILLIONTHS)
    # Counts are whole numbers already; in millionths they would soon be greater than any cursor may be.
    return {Order.SHOWN: tally.shown, Order.FOLLOWED: tally.followed, Order.IGNORED: tally.ignored}[order]


def _said(impression: Impression) -> dict[str, str]:
    if impression.followed is None:
        return {"followed": "unknown"}
    return {"followed": str(impression.followed).lower()} | ({"note": impression.note} if impression.note else {})


def _lesson(view: View, lesson_id: str) -> Memory:
    with view.read() as db:
        found = memories.get(db, lesson_id)
    if found is None or found.kind is not Kind.LESSON:
        raise NotFound("no such lesson")
    return found
