"""Runs of hooks and tools: the text that each showed to an agent, or why it showed nothing."""

import time
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from config.paths import WORKSPACE_ID
from pipeline.kernel.records import MAX_FOLDER_CHARS, OWNED, Page
from pipeline.kernel.records.hooks import LeftOut
from pipeline.kernel.records.people import display_name, personal_scope
from pipeline.kernel.store.hook_runs import HookRun
from web.http import bodies
from web.http.access import Right, session_of
from web.http.answers import Answer, PageAnswer, Rounded, SecondsText
from web.http.call import Call, workspace_of_folder
from web.http.endpoint import Api, Endpoint
from web.http.metrics import count_hook_event, count_mcp_call

api = Api("hook_runs")

# The start of the event name of a call of an MCP tool.
MCP_CALL = "mcp:"
MAX_TEXT_CHARS = 200_000
Outcome = Literal["told", "quiet", "failed", "late"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[\w.:-]+$")]


class RunsQuery(bodies.PageQuery):
    """Filters of a list of runs."""

    session_id: bodies.SessionId | None = None
    workspace: Annotated[str, StringConstraints(pattern=f"^{WORKSPACE_ID.pattern}$")] | None = None


class RunBody(bodies.Body):
    """A call of a tool, as the MCP server of an agent reports it."""

    event: Name
    host: Name
    session_id: bodies.SessionId | None = None
    cwd: Annotated[str, StringConstraints(max_length=MAX_FOLDER_CHARS)] = ""
    took_ms: Annotated[float, Field(ge=0)]
    outcome: Outcome
    memory_ids: Annotated[list[bodies.MemoryId], Field(max_length=200)] = Field(default_factory=list)
    reason: Annotated[str, StringConstraints(max_length=1000)] | None = None
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS)] = ""


def _session_name(stored: str | None) -> str | None:
    # Without a session it is stored under the person.
    return None if stored is not None and stored.endswith(OWNED) else display_name(stored)


class RunAnswer(Answer, of=HookRun, without=("text", "trace", "seq")):
    """One event of a host or call of a tool: the memories that it showed, or why it showed nothing."""

    id: str
    at: SecondsText
    session_id: Annotated[str | None, BeforeValidator(_session_name)]
    took_ms: Rounded
    outcome: Outcome
    chars: int


class RunPage(PageAnswer[RunAnswer]):
    """A page of runs."""


class WholeRunAnswer(RunAnswer):
    """A run with the text for the agent, and why the other lines were left out."""

    text: str
    left_out: list[LeftOut]


class ReadRunAnswer(WholeRunAnswer):
    """A run with the person's message that it answered, read from the stored turns; null if it is not stored."""

    prompt: str | None


class NotedAnswer(Answer):
    """Confirmation that a run was recorded."""

    noted: bool


@api.route(Endpoint("GET", "/v1/hook-runs", answer=RunPage, needs=Right.ANYBODY))
def list_runs(call: Call, query: RunsQuery) -> Page[HookRun]:
    """List the runs of hooks and tools, newest first, in all workspaces or in one. Runs are kept for two weeks."""
    session_id = session_of(query.session_id, call.caller)
    return call.container.agents.hook_runs.page(
        query.limit, query.before, query.workspace, session_id, call.caller.person_id
    )


@api.route(Endpoint("GET", "/v1/hook-runs/{run_id}", answer=ReadRunAnswer, problems=(404,), needs=Right.ANYBODY))
def read_run(call: Call, run_id: str) -> ReadRunAnswer:
    """Read a run: the prompt, the text that it showed to the agent, and what it left out."""
    runs = call.container.agents.hook_runs
    run = runs.get(run_id, call.caller.person_id)
    return ReadRunAnswer(**WholeRunAnswer.model_validate(run).model_dump(), prompt=runs.find_prompt(run))


@api.route(Endpoint("POST", "/v1/hook-runs", answer=NotedAnswer, status=202, of_folder=True, reads=True))
def note_run(call: Call, body: RunBody) -> NotedAnswer:
    """Record a call of a tool."""
    workspace = workspace_of_folder(call, body.cwd)
    container = call.container
    count_hook_event(body.event, body.host, body.outcome)
    if body.event.startswith(MCP_CALL):
        count_mcp_call(body.event.removeprefix(MCP_CALL), body.outcome, body.took_ms / 1000)
    session_id = session_of(body.session_id, call.caller)
    if not (call.caller.is_read_only or container.agents.sessions.is_off_the_record(workspace, session_id)):
        reason = None if body.reason is None else container.operations.redact(body.reason)
        run = HookRun(
            time.time(),
            body.event,
            body.host,
            workspace.id,
            session_id or personal_scope(call.caller.person_id).id,
            body.took_ms,
            body.outcome,
            tuple(body.memory_ids),
            reason,
            container.operations.redact(body.text),
        )
        container.agents.hook_runs.record(run)
    return NotedAnswer(noted=True)
