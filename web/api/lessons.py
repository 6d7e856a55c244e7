"""Lessons, whether they help, and what became of each time that one was shown."""

from typing import Annotated, Any

from pydantic import StringConstraints

from pipeline.recall.rank import RELEVANT
from pipeline.recall.search import search
from pipeline.records import Filter, Kind, Source, Trust
from pipeline.records.recall import Query
from pipeline.services.feedback import answer_impression, make_impressions
from pipeline.services.incognito import is_incognito
from pipeline.services.lessons import Lesson, Usefulness, with_records
from pipeline.store import memories
from web.api import bodies
from web.api.answers import Answer
from web.api.render import page_json
from web.endpoint import Api, Call, Endpoint

api = Api("lessons")


class LessonsQuery(bodies.ViewerQuery):
    """Which lessons to list: all, newest first, or those about a text, best first, which counts as showing them."""

    q: bodies.Query | None = None


class OutcomeBody(bodies.Body):
    """Whether a lesson that was shown was followed."""

    followed: bool
    note: Annotated[str, StringConstraints(max_length=2000)] | None = None


class LessonAnswer(Answer):
    """A lesson and its record; `low` and `high` bound the share of times that it is followed (95 %)."""

    id: str
    content: str
    rule: str | None
    applies_when: str | None
    severity: str
    source: Source
    trust: Trust
    instructs: bool
    created_at: str
    shown: int
    followed: int
    ignored: int
    low: float
    high: float
    usefulness: Usefulness
    surface_id: str | None = None


class LessonsAnswer(Answer):
    """A page of lessons."""

    items: list[LessonAnswer]
    next_cursor: str | None


class OutcomeAnswer(Answer):
    """What was said about an impression, and the lesson that it showed."""

    surface_id: str
    lesson_id: str
    followed: bool


@api.route(
    Endpoint(
        "GET",
        "/v1/lessons",
        "List lessons with their records",
        query=LessonsQuery,
        answer=LessonsAnswer,
        problems=(404,),
    )
)
def list_lessons(call: Call) -> dict[str, Any]:
    """List lessons."""
    query: LessonsQuery = call.query
    wanted = Filter(kinds=(Kind.LESSON,), viewer=query.viewer())
    database = call.container.databases.get(call.workspace_id)
    if query.q is not None:
        return _about(call, query.q, query, wanted)
    with database.read() as db:
        found = with_records(db, memories.page(db, wanted, query.limit + 1, query.before))
    return dict(page_json(found, query.limit, lambda lesson: lesson.memory.seq, lesson_json))


@api.route(
    Endpoint(
        "POST",
        "/v1/lessons/surfaces/{surface_id}",
        "Say whether a lesson that was shown was followed",
        body=OutcomeBody,
        answer=OutcomeAnswer,
        problems=(404, 503),
    )
)
def answer_surface(call: Call, surface_id: str) -> dict[str, Any]:
    """Keep the answer to an impression."""
    body: OutcomeBody = call.body
    lesson_id = answer_impression(
        call.workspace, call.container.feedback, surface_id, body.note, followed=body.followed
    )
    return {"surface_id": surface_id, "lesson_id": lesson_id, "followed": body.followed}


def lesson_json(lesson: Lesson) -> dict[str, Any]:
    """Render a lesson and its record."""
    memory, tally = lesson.memory, lesson.tally
    return {
        "id": memory.id,
        "content": memory.content,
        "rule": memory.details.get("rule"),
        "applies_when": memory.details.get("applies_when"),
        "severity": memory.details.get("severity", "warning"),
        "source": memory.source,
        "trust": memory.trust,
        "instructs": memory.instructs,
        "created_at": memory.created_at,
        "shown": tally.shown,
        "followed": tally.followed,
        "ignored": tally.ignored,
        "low": round(lesson.low, 4),
        "high": round(lesson.high, 4),
        "usefulness": lesson.usefulness,
    }


def _about(call: Call, text: str, query: LessonsQuery, wanted: Filter) -> dict[str, Any]:
    budget_ms = call.workspace.settings.recall_budget_ms
    asked = Query(text, k=query.limit, filter=wanted, budget_ms=budget_ms, least_relevance=RELEVANT)
    shown = [hit.memory for hit in search(call.container.contexts.get(call.workspace), asked).hits]
    with call.container.databases.get(call.workspace_id).read() as db:
        found = with_records(db, shown)
    impressions = make_impressions(shown, query.session)
    if not is_incognito(call.workspace, query.session):
        call.container.feedback.record_impressions(call.workspace, impressions)
    items = [lesson_json(lesson) | {"surface_id": one.id} for lesson, one in zip(found, impressions, strict=True)]
    return {"items": items, "next_cursor": None}
