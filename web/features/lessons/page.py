"""Lessons, how often agents saw them, and whether agents followed them."""

from collections.abc import Mapping
from typing import Annotated, Literal

from flask import url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from pipeline.features.lessons import usecases as lessons
from pipeline.features.memories import usecases as memories
from pipeline.kernel.store.impressions import Impression
from pipeline.prompt.render import ENOUGH, Usefulness
from pipeline.recall.feedback_usecases import answer_impression, withdraw_answer
from web.dashboard.view import PAGE_SIZE, Link, Paged, Search, Section, View, back, next_page, show

section = Section("lessons", link=Link("Lessons", "lessons_list_all", "Knowledge", 48))

LAST_SHOWN = 3
MAX_NOTE_CHARS = 2000
# Label of each usefulness.
VERDICTS: Mapping[Usefulness, str] = {
    Usefulness.USEFUL: "useful",
    Usefulness.UNPROVEN: "unproven",
    Usefulness.DEAD: "not followed",
}


class LessonsPageQuery(Paged):
    """Search words and order of the list of lessons."""

    q: Search = ""
    order: lessons.LessonOrder = lessons.LessonOrder.NEWEST


class OutcomeForm(BaseModel):
    """Rating of a shown lesson; "unknown" removes the rating."""

    followed: Literal["true", "false", "unknown"]
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARS)] | None = None


@section.page("/lessons", LessonsPageQuery)
def list_all(view: View) -> str:
    """List lessons with their ratings."""
    query: LessonsPageQuery = view.query
    page = lessons.rank_lessons(
        view.workspace, view.workspace.onlooker, query.order, PAGE_SIZE, query.before, query.q.split()
    )
    shown = {lesson.memory.seq: lessons.list_impressions(view.workspace, lesson, LAST_SHOWN) for lesson in page.items}
    return show(
        "lessons.html",
        view,
        title="Lessons",
        lessons=page.items,
        shown=shown,
        next_url=next_page(page.next_cursor),
        orders=list(lessons.LessonOrder),
        verdicts=VERDICTS,
    )


@section.page("/lessons/<lesson_id>")
def one(view: View, lesson_id: str) -> str:
    """Show a lesson with its recent uses and their ratings."""
    lesson = lessons.get_lesson(view.workspace, lesson_id)
    shown = lessons.list_impressions(view.workspace, lesson, PAGE_SIZE)
    return show("lesson.html", view, title="Lesson", lesson=lesson, shown=shown, verdicts=VERDICTS, enough=ENOUGH)


@section.action("/lessons/surfaces/<surface_id>", OutcomeForm)
def answer(view: View, surface_id: str) -> Response:
    """Rate a use of a lesson, or remove the rating."""
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
    """Restore a lesson."""
    memories.restore(view.workspace, lessons.get_lesson(view.workspace, lesson_id).memory.id)
    return back(view, "Lesson restored.")


def _answer_of(impression: Impression) -> dict[str, str]:
    if impression.followed is None:
        return {"followed": "unknown"}
    return {"followed": str(impression.followed).lower()} | ({"note": impression.note} if impression.note else {})
