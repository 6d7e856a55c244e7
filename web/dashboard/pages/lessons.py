"""Lessons: what was learnt, how often agents were shown it, and whether they followed."""

from collections.abc import Mapping
from typing import Annotated, Literal

from flask import url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from pipeline.services import lessons, memories
from pipeline.services.feedback import answer_impression, withdraw_answer
from pipeline.services.lessons import ENOUGH, Impression, LessonOrder, Usefulness
from web.dashboard.view import PAGE_SIZE, Paged, Search, Section, View, back, next_page, show

section = Section("lessons")

LAST_SHOWN = 3
MAX_NOTE_CHARS = 2000
# What the answers to a lesson say, in words.
VERDICTS: Mapping[Usefulness, str] = {
    Usefulness.USEFUL: "useful",
    Usefulness.UNPROVEN: "unproven",
    Usefulness.DEAD: "not followed",
}


class LessonsPageQuery(Paged):
    """Which lessons to list: those that hold these words, in which order."""

    q: Search = ""
    order: LessonOrder = LessonOrder.NEWEST


class OutcomeForm(BaseModel):
    """What became of a lesson that was shown; "unknown" takes back what was said."""

    followed: Literal["true", "false", "unknown"]
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARS)] | None = None


@section.page("/lessons", LessonsPageQuery)
def list_all(view: View) -> str:
    """List lessons with their records."""
    query: LessonsPageQuery = view.query
    page = lessons.rank_lessons(
        view.workspace, view.workspace.onlooker, query.order, PAGE_SIZE, query.before, query.q.split()
    )
    shown = {one.memory.seq: lessons.list_impressions(view.workspace, one, LAST_SHOWN) for one in page.items}
    return show(
        "lessons.html",
        view,
        title="Lessons",
        lessons=page.items,
        shown=shown,
        next_url=next_page(page.next_cursor),
        orders=list(LessonOrder),
        effect=lessons.measure_effect(view.workspace),
        verdicts=VERDICTS,
    )


@section.page("/lessons/<lesson_id>")
def one(view: View, lesson_id: str) -> str:
    """Show the last times that a lesson was put before an agent, and what became of them."""
    lesson = lessons.get_lesson(view.workspace, lesson_id)
    shown = lessons.list_impressions(view.workspace, lesson, PAGE_SIZE)
    return show("lesson.html", view, title="Lesson", lesson=lesson, shown=shown, verdicts=VERDICTS, enough=ENOUGH)


@section.action("/lessons/surfaces/<surface_id>", OutcomeForm)
def answer(view: View, surface_id: str) -> Response:
    """Say whether a lesson that was shown was followed, or take back what was said."""
    form: OutcomeForm = view.form
    before = lessons.get_impression(view.workspace, surface_id)
    if form.followed == "unknown":
        withdraw_answer(view.workspace, view.container.feedback, surface_id)
        return back(view, "Rating removed.")
    followed = form.followed == "true"
    answer_impression(view.workspace, view.container.feedback, surface_id, form.note, followed=followed)
    undo = (url_for("dashboard.lessons_answer", surface_id=surface_id), _answer_of(before))
    return back(view, f"Marked as {'followed' if followed else 'ignored'}.", undo=undo)


@section.action("/lessons/<lesson_id>/archive")
def archive(view: View, lesson_id: str) -> Response:
    """Archive a lesson."""
    memories.archive(view.workspace, lessons.get_lesson(view.workspace, lesson_id).memory.id)
    return back(view, "Lesson archived.", undo=(url_for("dashboard.lessons_restore", lesson_id=lesson_id), {}))


@section.action("/lessons/<lesson_id>/restore")
def restore(view: View, lesson_id: str) -> Response:
    """Bring a lesson back."""
    memories.restore(view.workspace, lessons.get_lesson(view.workspace, lesson_id).memory.id)
    return back(view, "Lesson restored.")


def _answer_of(impression: Impression) -> dict[str, str]:
    if impression.followed is None:
        return {"followed": "unknown"}
    return {"followed": str(impression.followed).lower()} | ({"note": impression.note} if impression.note else {})
