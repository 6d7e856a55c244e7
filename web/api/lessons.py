"""Lessons, whether they help, and what became of each time that one was shown."""

from typing import Annotated, ClassVar

from pydantic import AliasChoices, AliasPath, Field, PlainSerializer, StringConstraints

from pipeline.context.lesson_records import Lesson, Usefulness
from pipeline.records import Page, Source, Trust
from pipeline.services import lessons
from pipeline.services.feedback import answer_impression
from pipeline.services.lessons import FoundLesson
from web.api import bodies
from web.api.answers import Answer, PageAnswer
from web.endpoint import Api, Call, Endpoint

api = Api("lessons")


class LessonsQuery(bodies.ViewerQuery):
    """Which lessons to list: all, newest first, or those about a text, best first, which counts as showing them."""

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


class LessonAnswer(Answer):
    """A lesson and its record; `low` and `high` bound the share of times that it is followed (95 %)."""

    names_memory: ClassVar[bool] = True

    id: str = Field(validation_alias=_of_memory("id"))
    content: str = Field(validation_alias=_of_memory("content"))
    rule: str | None = Field(validation_alias=_of_memory("details", "rule"), default=None)
    applies_when: str | None = Field(validation_alias=_of_memory("details", "applies_when"), default=None)
    severity: str = Field(validation_alias=_of_memory("details", "severity"), default="warning")
    source: Source = Field(validation_alias=_of_memory("source"))
    trust: Trust = Field(validation_alias=_of_memory("trust"))
    instructs: bool = Field(validation_alias=_of_memory("instructs"))
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
    """What was said about an impression, and the lesson that it showed."""

    surface_id: str
    lesson_id: str
    followed: bool


@api.route(Endpoint("GET", "/v1/lessons", answer=LessonsAnswer, problems=(404,)))
def list_lessons(call: Call, query: LessonsQuery) -> Page[Lesson] | Page[FoundLesson]:
    """List lessons with their records."""
    if query.q is None:
        return lessons.list_lessons(call.workspace, query.viewer(call.caller), query.limit, query.before)
    container = call.container
    found = lessons.find_lessons(
        call.workspace, container.contexts, container.feedback, query.q, query.viewer(call.caller), query.limit
    )
    return Page(found)


class TrialAnswer(Answer):
    """How often lessons were followed as the journal shows, of how often it shows either."""

    followed: int
    answered: int


class EffectAnswer(Answer):
    """Whether telling lessons makes a difference, with its 95 % interval; null until both were often enough."""

    told: TrialAnswer
    withheld: TrialAnswer
    difference: Share | None
    low: Share | None
    high: Share | None


@api.route(Endpoint("GET", "/v1/lessons/effect", answer=EffectAnswer, problems=(404,)))
def measure_effect(call: Call) -> lessons.LessonEffect:
    """Compare how often lessons are followed when told and when withheld."""
    return lessons.measure_effect(call.workspace)


@api.route(Endpoint("POST", "/v1/lessons/surfaces/{surface_id}", answer=OutcomeAnswer, problems=(404,)))
def answer_surface(call: Call, body: OutcomeBody, surface_id: str) -> OutcomeAnswer:
    """Say whether a lesson that was shown was followed."""
    lesson_id = answer_impression(
        call.workspace, call.container.feedback, surface_id, body.note, followed=body.followed
    )
    return OutcomeAnswer(surface_id=surface_id, lesson_id=lesson_id, followed=body.followed)
