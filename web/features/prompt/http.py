"""Prepare: all memories that an agent needs before it answers a message, in one call."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from config.paths import WORKSPACE_HEADER
from pipeline.kernel.errors import NotFound
from pipeline.kernel.git.repository import branch_of_folder
from pipeline.kernel.records import Viewer
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.times import elapsed_ms
from pipeline.prompt.briefing import Briefing
from web.http import bodies
from web.http.access import session_of, viewer_of
from web.http.answers import Answer, ChainLink, HitAnswer, Name, OfFeature, is_missing
from web.http.call import Call, workspace_of_folder
from web.http.endpoint import Api, Endpoint

api = Api("prepare")


class PrepareBody(bodies.Body):
    """A message that an agent is about to answer, and the agent's folder."""

    message: bodies.Query
    session_id: bodies.SessionId | None = None
    cwd: bodies.Folder = ""
    viewer: bodies.ViewerBody | None = None


class ProjectAnswer(Answer):
    """The workspace that a message belongs to, and the branch that its folder has checked out."""

    workspace: str
    branch: str | None


class LessonHitAnswer(HitAnswer):
    """A lesson that applies. Report by its `surface_id` whether it was followed."""

    surface_id: str = Field(validation_alias="impression_id")


class ActivityAnswer(ChainLink):
    """A recent action."""

    session_id: Name | None


class PrepareAnswer(Answer):
    """The memories about a message, by kind; `text` contains all of them in a form for an agent.

    On the first call of a session, `start` is what hooks show at a session's start, and `text` begins with it. Without
    a session ID, the calls of an agent in a folder are one session until it is idle for 4 hours.
    """

    relevant: bool
    project: ProjectAnswer
    lessons: list[LessonHitAnswer]
    decisions: list[HitAnswer]
    facts: list[HitAnswer]
    open_goals: Annotated[list[Any], OfFeature("UnfinishedAnswer")]
    recent_activity: list[ActivityAnswer]
    active_arcs: Annotated[list[Any], OfFeature("ThreadAnswer")]
    memories: list[HitAnswer]
    person: list[HitAnswer]
    team: list[HitAnswer] = Field(default_factory=list, exclude_if=is_missing)
    start: str
    text: str
    took_ms: float
    degraded: bool


@api.route(Endpoint("POST", "/v1/prepare", answer=PrepareAnswer, problems=(404,), of_folder=True, reads=True))
def prepare_message(call: Call, body: PrepareBody) -> PrepareAnswer:
    """Return the memories for a message, on a session's first call also the standing rules and decisions."""
    began = time.perf_counter()
    workspace = workspace_of_folder(call, body.cwd)
    session_id = session_of(body.session_id, call.caller)
    viewer = viewer_of(Viewer(), call.caller) if body.viewer is None else body.viewer.viewer(call.caller)
    if viewer.session is None:
        viewer = replace(viewer, session=session_id)
    session = AgentSession(session_id, cwd=body.cwd, viewer=viewer)
    try:
        briefing = call.container.agents.prompts.prepare(workspace, session, body.message)
    except NotFound:
        # A project that nothing was stored for yet is no mistake of the caller.
        if WORKSPACE_HEADER in call.headers or not body.cwd:
            raise
        briefing = Briefing()
    # A person's folder is on their machine.
    is_here = body.cwd and call.caller.person is None
    branch = branch_of_folder(Path(body.cwd)) if is_here else None
    project = ProjectAnswer(workspace=workspace.id, branch=branch)
    parts = {name: getattr(briefing, name) for name in PrepareAnswer.model_fields if hasattr(briefing, name)}
    return PrepareAnswer(project=project, took_ms=elapsed_ms(began), **parts)
