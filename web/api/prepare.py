"""Prepare: everything that an agent should know before it answers a message, in one call."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import StringConstraints

from pipeline.context.prepare import PrepareLimits, prepare
from pipeline.recall.channels import elapsed_ms
from pipeline.recall.query import Hit
from pipeline.records import Memory, Viewer
from pipeline.services.feedback import make_impressions
from pipeline.services.incognito import is_incognito
from pipeline.services.workspaces import branch_of_folder
from web.api import bodies
from web.api.answers import Answer, HitAnswer
from web.api.arcs import ArcAnswer
from web.api.goals import GoalAnswer
from web.api.render import hit_json
from web.endpoint import Api, Call, Endpoint
from web.folders import workspace_of_folder

api = Api("prepare")

MAX_FOLDER_CHARS = 4096


class PrepareBody(bodies.Body):
    """A message that an agent is about to answer, and where it is."""

    message: bodies.Query
    session_id: bodies.SessionId | None = None
    cwd: Annotated[str, StringConstraints(max_length=MAX_FOLDER_CHARS)] = ""
    viewer: bodies.ViewerBody | None = None


class ProjectAnswer(Answer):
    """The workspace that a message belongs to, and the branch that its folder has checked out."""

    workspace: str
    branch: str | None


class LessonHitAnswer(HitAnswer):
    """A lesson that applies; say by its `surface_id` whether it was followed."""

    surface_id: str


class ActivityAnswer(Answer):
    """Something that was done lately."""

    id: str
    kind: str
    content: str
    occurred_at: str
    session_id: str | None


class PrepareAnswer(Answer):
    """What is about a message, by what it is; `text` says it all in a form to be read by an agent."""

    relevant: bool
    project: ProjectAnswer
    lessons: list[LessonHitAnswer]
    decisions: list[HitAnswer]
    facts: list[HitAnswer]
    open_goals: list[GoalAnswer]
    recent_activity: list[ActivityAnswer]
    active_arcs: list[ArcAnswer]
    memories: list[HitAnswer]
    text: str
    took_ms: float


@api.route(
    Endpoint(
        "POST",
        "/v1/prepare",
        "Gather what an agent should know before it answers a message",
        body=PrepareBody,
        answer=PrepareAnswer,
        problems=(404,),
    )
)
def prepare_message(call: Call) -> dict[str, Any]:
    """Answer a message with what is known about it."""
    began = time.perf_counter()
    body: PrepareBody = call.body
    workspace = workspace_of_folder(call, body.cwd)
    viewer = Viewer() if body.viewer is None else body.viewer.record()
    if viewer.session is None:
        viewer = replace(viewer, session=body.session_id)
    settings = call.front.workspace_settings(workspace)
    call.front.asked(workspace, body.message, body.session_id, viewer.session)

    def surface(shown: Sequence[Memory]) -> list[str]:
        made = make_impressions(shown, body.session_id)
        if not is_incognito(call.front.workspace(workspace), body.session_id):
            call.front.feedback.record_impressions(call.front.workspace(workspace), made)
        return [one.id for one in made]

    told = prepare(
        call.front.reader(workspace),
        body.message,
        viewer,
        PrepareLimits(settings.recall_budget_ms, settings.hook_max_chars),
        surface,
        datetime.now(UTC),
    )
    branch = branch_of_folder(Path(body.cwd)) if body.cwd else None
    return {
        "relevant": told.relevant,
        "project": {"workspace": workspace, "branch": branch},
        "lessons": [_hit(one.hit) | {"surface_id": one.surface_id} for one in told.lessons],
        "decisions": [_hit(hit) for hit in told.decisions],
        "facts": [_hit(hit) for hit in told.facts],
        "open_goals": [GoalAnswer.model_validate(goal).model_dump(mode="json") for goal in told.open_goals],
        "recent_activity": [_activity(memory) for memory in told.recent_activity],
        "active_arcs": [ArcAnswer.model_validate(arc).model_dump(mode="json") for arc in told.active_arcs],
        "memories": [_hit(hit) for hit in told.memories],
        "text": told.text,
        "took_ms": elapsed_ms(began),
    }


def _hit(hit: Hit) -> dict[str, Any]:
    return hit_json(hit)


def _activity(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "kind": memory.kind,
        "content": memory.content,
        "occurred_at": memory.occurred_at,
        "session_id": memory.session_id,
    }
