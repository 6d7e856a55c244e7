"""Goals: title, progress and due date."""

from typing import Annotated, Any

from pydantic import AliasPath, Field

from pipeline.features.goals import usecases as goals
from pipeline.kernel.records import Draft, GoalStatus, Kind, Memory, Outcome, Page, Source
from pipeline.write.fields import Moment
from web.http import bodies
from web.http.access import session_of
from web.http.answers import Answer, Name, PageAnswer, StatementAnswer
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("goals", 65)

Progress = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class GoalBody(bodies.Body):
    """A goal; `progress` goes from 0 to 1; `to` names a team to store it for."""

    title: bodies.Content
    status: Annotated[GoalStatus, Field(strict=False)] = GoalStatus.OPEN
    progress: Progress = 0.0
    due_at: Moment | None = None
    importance: bodies.Importance | None = None
    scope: bodies.ScopeBody | None = None
    tags: Annotated[bodies.Tags, Field(strict=False)] = ()
    session_id: bodies.SessionId | None = None
    source: bodies.GivenSource = Source.USER
    team: bodies.TeamName | None = Field(default=None, alias="to")


class GoalPatch(bodies.Body):
    """The fields of a goal to change."""

    title: bodies.Content | None = None
    status: Annotated[GoalStatus, Field(strict=False)] | None = None
    progress: Progress | None = None
    due_at: Moment | None = None


class GoalsQuery(bodies.ViewerQuery):
    """Filters of a list of goals."""

    status: GoalStatus | None = None


class GoalAnswer(StatementAnswer):
    """A goal; `outcome` is the result of setting it."""

    title: str = Field(validation_alias="content")
    status: GoalStatus = Field(validation_alias=AliasPath("details", "status"), default=GoalStatus.OPEN)
    progress: float = Field(validation_alias=AliasPath("details", "progress"), default=0.0)
    due_at: str | None = Field(validation_alias=AliasPath("details", "due_at"), default=None)
    importance: float
    tags: list[str]
    session_id: Name | None
    created_at: str
    updated_at: str
    outcome: Outcome | None = Field(default=None, exclude_if=lambda outcome: outcome is None)


class GoalsAnswer(PageAnswer[GoalAnswer]):
    """A page of goals."""


UnfinishedAnswer = GoalAnswer


@api.route(Endpoint("POST", "/v1/goals", answer=GoalAnswer, status=201, problems=(409,), of_team=True))
def set_goal(call: Call, body: GoalBody) -> GoalAnswer:
    """Set a goal."""
    details: dict[str, Any] = {"status": body.status, "progress": body.progress}
    if body.due_at is not None:
        details["due_at"] = body.due_at
    draft = Draft(
        content=body.title,
        kind=Kind.GOAL,
        importance=body.importance,
        scope=None if body.scope is None else body.scope.record(call.caller, body.session_id),
        tags=body.tags,
        session_id=session_of(body.session_id, call.caller),
        source=body.source,
        details=details,
    )
    setting = goals.set_goal(call.workspace, draft, body.model_fields_set)
    return GoalAnswer.model_validate(setting.goal).model_copy(update={"outcome": setting.outcome})


@api.route(Endpoint("PATCH", "/v1/goals/{goal_id}", answer=GoalAnswer, problems=(404, 409)))
def change_goal(call: Call, body: GoalPatch, goal_id: str) -> Memory:
    """Change a goal's title, status, progress or due date."""
    changes = {"status": body.status, "progress": body.progress, "due_at": body.due_at}
    # A due date may be removed; every goal has a status and a progress.
    sent = {
        name: value
        for name, value in changes.items()
        if value is not None or (name == "due_at" and name in body.model_fields_set)
    }
    return goals.change_goal(call.workspace, goal_id, body.title, sent)


class GoalEventAnswer(Answer, of=goals.GoalEvent):
    """An event that advanced a goal, its time, and the memory that describes it, if there is one."""


class GoalRecordAnswer(GoalAnswer):
    """A goal with the events that advanced it, oldest first."""

    events: list[GoalEventAnswer] = Field(default_factory=list)


@api.route(Endpoint("GET", "/v1/goals/{goal_id}", answer=GoalRecordAnswer, problems=(404,)))
def read_goal(call: Call, goal_id: str) -> GoalRecordAnswer:
    """Read a goal with the events that advanced it."""
    goal = goals.get_goal(call.workspace, goal_id)
    events = [GoalEventAnswer.model_validate(event) for event in goals.list_events(call.workspace, goal)]
    return GoalRecordAnswer.model_validate(goal).model_copy(update={"events": events})


@api.route(Endpoint("GET", "/v1/goals", answer=GoalsAnswer, problems=(404,)))
def list_goals(call: Call, query: GoalsQuery) -> Page[Memory]:
    """List goals, newest first."""
    return goals.list_goals(call.workspace, query.viewer(call.caller), query.status, query.limit, query.before)
