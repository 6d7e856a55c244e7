"""Lessons, their effect, and whether each shown lesson was followed."""

from typing import Annotated

from pydantic import AliasChoices, AliasPath, Field, PlainSerializer, StringConstraints

from pipeline.features.lessons import usecases as lessons
from pipeline.kernel.records import Page, Source, Trust
from pipeline.prompt.render import Lesson, Usefulness
from pipeline.recall.feedback_usecases import answer_impression
from web.http import bodies
from web.http.answers import Answer, PageAnswer, is_missing
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("lessons", 65)


class LessonsQuery(bodies.ViewerQuery):
    """Filters of a list of lessons: all, newest first; or with a text, best match first, which counts as shown."""

    q: bodies.Query | None = None


class OutcomeBody(bodies.Body):
    """Whether a lesson that was shown was followed."""

    followed: bool
    note: Annotated[str, StringConstraints(max_length=2000)] | None = None


Share = Annotated[float, PlainSerializer(lambda share: round(share, 4), return_type=float)]


def _of_memory(*path: str) -> AliasChoices:
    return AliasChoices(AliasPath("memory", *path), AliasPath("lesson", "memory", *path))


def _of_record(*path: str) -> AliasChoices:
    return AliasChoices(AliasPath(*path), AliasPath("lesson", *path))


class LessonAnswer(Answer, names_memory=True):
    """A lesson and its record; `low` and `high` are the 95 % interval of how often it is followed."""

    id: str = Field(validation_alias=_of_memory("id"))
    content: str = Field(validation_alias=_of_memory("content"))
    rule: str | None = Field(validation_alias=_of_memory("details", "rule"), default=None)
    applies_when: str | None = Field(validation_alias=_of_memory("details", "applies_when"), default=None)
    severity: str = Field(validation_alias=_of_memory("details", "severity"), default="warning")
    source: Source = Field(validation_alias=_of_memory("source"))
    trust: Trust = Field(validation_alias=_of_memory("trust"))
    instructs: bool = Field(validation_alias=_of_memory("instructs"))
    said_by: str | None = Field(default=None, validation_alias=_of_memory("said_by"), exclude_if=is_missing)
    created_at: str = Field(validation_alias=_of_memory("created_at"))
    shown: int = Field(validation_alias=_of_record("tally", "shown"))
    followed: int = Field(validation_alias=_of_record("tally", "followed"))
    ignored: int = Field(validation_alias=_of_record("tally", "ignored"))
    low: Share = Field(validation_alias=_of_record("low"))
    high: Share = Field(validation_alias=_of_record("high"))
    usefulness: Usefulness = Field(validation_alias=_of_record("usefulness"))
    surface_id: str | None = Field(
        validation_alias="impression_id", default=None, exclude_if=lambda impression_id: impression_id is None
    )


class LessonsAnswer(PageAnswer[LessonAnswer]):
    """A page of lessons."""


class OutcomeAnswer(Answer):
    """The reported outcome of one time that a lesson was shown, and the lesson."""

    surface_id: str
    lesson_id: str
    followed: bool


@api.route(Endpoint("GET", "/v1/lessons", answer=LessonsAnswer, problems=(404,)))
def list_lessons(call: Call, query: LessonsQuery) -> Page[Lesson] | Page[lessons.FoundLesson]:
    """List lessons with their records."""
    if query.q is None:
        return lessons.list_lessons(call.workspace, query.viewer(call.caller), query.limit, query.before)
    container = call.container
    matching = lessons.find_lessons(
        call.workspace, container.contexts, container.feedback, query.q, query.viewer(call.caller), query.limit
    )
    return Page(matching)


@api.route(Endpoint("POST", "/v1/lessons/surfaces/{surface_id}", answer=OutcomeAnswer, problems=(404,)))
def answer_surface(call: Call, body: OutcomeBody, surface_id: str) -> OutcomeAnswer:
    """Report whether a shown lesson was followed."""
    lesson_id = answer_impression(
        call.workspace, call.container.feedback, surface_id, body.note, followed=body.followed
    )
    return OutcomeAnswer(surface_id=surface_id, lesson_id=lesson_id, followed=body.followed)
