"""Goals: what is to be reached, how far it has come, and when it is due."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pipeline.errors import Conflict, NotFound
from pipeline.records import Draft, Kind, Memory, Outcome, Source
from pipeline.store import goals as table
from pipeline.store import memories
from pipeline.store.database import Database
from pipeline.write import revise
from pipeline.write.accept import DIGESTION, commit
from pipeline.write.details import GoalStatus
from pipeline.write.prepare import prepare
from pipeline.write.revise import Revision
from web.api import bodies
from web.api.answers import Answer, ScopeAnswer
from web.api.render import page_json
from web.api.ringing import ring_for, ring_for_receipts
from web.endpoint import Api, Call, Endpoint

api = Api("goals")

Progress = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class GoalBody(bodies.Body):
    """A goal; `progress` goes from 0 to 1."""

    title: bodies.Content
    status: Annotated[GoalStatus, Field(strict=False)] = GoalStatus.OPEN
    progress: Progress = 0.0
    due_at: bodies.Moment | None = None
    importance: bodies.Importance | None = None
    scope: bodies.ScopeBody | None = None
    tags: Annotated[bodies.Tags, Field(strict=False)] = ()
    session_id: bodies.SessionId | None = None
    source: Annotated[Source, Field(strict=False)] = Source.USER


class GoalPatch(bodies.Body):
    """The fields of a goal to change."""

    title: bodies.Content | None = None
    status: Annotated[GoalStatus, Field(strict=False)] | None = None
    progress: Progress | None = None
    due_at: bodies.Moment | None = None


class GoalsQuery(bodies.ViewerQuery):
    """Which goals to list."""

    status: GoalStatus | None = None


class GoalAnswer(Answer):
    """A goal."""

    id: str
    title: str
    status: GoalStatus
    progress: float
    due_at: str | None
    importance: float
    scope: ScopeAnswer
    tags: list[str]
    session_id: str | None
    created_at: str
    updated_at: str
    outcome: Outcome | None = None


class GoalsAnswer(Answer):
    """A page of goals."""

    items: list[GoalAnswer]
    next_cursor: str | None


@api.route(
    Endpoint("POST", "/v1/goals", "Set a goal", body=GoalBody, answer=GoalAnswer, status=201, problems=(409, 503))
)
def set_goal(call: Call) -> dict[str, Any]:
    """Store a goal."""
    body: GoalBody = call.body
    details: dict[str, Any] = {"status": body.status, "progress": body.progress}
    if body.due_at is not None:
        details["due_at"] = bodies.as_text(body.due_at)
    prepared = prepare(
        Draft(
            content=body.title,
            kind=Kind.GOAL,
            importance=body.importance,
            scope=None if body.scope is None else body.scope.record(),
            tags=body.tags,
            session_id=body.session_id,
            source=body.source,
            details=details,
        )
    )
    database = call.front.databases.get(call.workspace, create=True)
    receipts = commit(database, [prepared], call.front.door(call.workspace))
    ring_for_receipts(call, receipts)
    with database.read() as db:
        stored = memories.get(db, receipts[0].id)
    if stored is None:
        raise Conflict(f"the goal was not kept: {receipts[0].reason}")
    if stored.kind is not Kind.GOAL:
        raise Conflict(f"a {stored.kind} of the same scope says exactly this")
    if receipts[0].outcome is Outcome.MERGED:
        stored = _set_again(database, stored, body, details)
    return goal_json(stored) | {"outcome": receipts[0].outcome}


@api.route(
    Endpoint(
        "PATCH",
        "/v1/goals/{goal_id}",
        "Change a goal's title, status, progress or due date",
        body=GoalPatch,
        answer=GoalAnswer,
        problems=(404, 409, 503),
    )
)
def change_goal(call: Call, goal_id: str) -> dict[str, Any]:
    """Change a goal."""
    body: GoalPatch = call.body
    database = call.front.databases.get(call.workspace)
    with database.read() as db:
        memory = memories.get(db, goal_id)
    if memory is None or memory.kind is not Kind.GOAL:
        raise NotFound("no such goal")
    given = {"status": body.status, "progress": body.progress, "due_at": bodies.as_text(body.due_at)}
    # A due date may be taken away; a goal without a status or a progress is none.
    sent = {
        name: value
        for name, value in given.items()
        if value is not None or (name == "due_at" and name in body.model_fields_set)
    }
    changed = revise.edit(database, goal_id, Revision(content=body.title, details=sent or None))
    if body.title is not None:
        ring_for(call, DIGESTION)
    return goal_json(changed)


@api.route(
    Endpoint("GET", "/v1/goals", "List goals, newest first", query=GoalsQuery, answer=GoalsAnswer, problems=(404,))
)
def list_goals(call: Call) -> dict[str, Any]:
    """List a page of goals."""
    query: GoalsQuery = call.query
    with call.front.databases.get(call.workspace).read() as db:
        found = table.page(db, query.viewer(), query.status, query.limit + 1, query.before)
    return dict(page_json(found, query.limit, lambda goal: goal.seq, goal_json))


def _set_again(database: Database, goal: Memory, body: GoalBody, details: Mapping[str, Any]) -> Memory:
    """Give a goal that was known what its setting names; one that was finished begins anew."""
    finished = goal.details.get("status", GoalStatus.OPEN) not in table.UNFINISHED
    sent = {name: value for name, value in details.items() if finished or name in body.model_fields_set}
    return revise.edit(database, goal.id, Revision(details=sent)) if sent else goal


def goal_json(goal: Memory) -> dict[str, Any]:
    """Render a goal."""
    return {
        "id": goal.id,
        "title": goal.content,
        "status": goal.details.get("status", GoalStatus.OPEN),
        "progress": goal.details.get("progress", 0.0),
        "due_at": goal.details.get("due_at"),
        "importance": goal.importance,
        "scope": {"kind": goal.scope.kind, "id": goal.scope.id},
        "tags": list(goal.tags),
        "session_id": goal.session_id,
        "created_at": goal.created_at,
        "updated_at": goal.updated_at,
    }
