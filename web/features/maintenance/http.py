"""The state of the server: workspaces, statistics, errors, metrics, and the queue and the jobs of a workspace."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from flask import Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic import AliasPath, BeforeValidator, Field, PlainSerializer, StringConstraints

from config.paths import WORKSPACE_ID
from config.settings import SWITCHES
from pipeline.features.entities.store import GraphCounts
from pipeline.features.maintenance import operations, usecases as maintenance
from pipeline.features.maintenance.registry import JobStatus
from pipeline.features.predictions.store import PredictionScore
from pipeline.features.workspaces.changes import move_workspace
from pipeline.kernel.records import Kind, Page, Source, Stage
from pipeline.kernel.records.people import Role
from pipeline.kernel.store.journal import MemoryCounts
from pipeline.kernel.store.operations import LoggedError, Worker
from pipeline.kernel.store.runs import Run
from pipeline.kernel.times import utc_text
from web.features.diagnostics.http import EncoderState
from web.http import bodies
from web.http.access import Right
from web.http.answers import Answer, PageAnswer, SecondsText
from web.http.call import Call
from web.http.endpoint import Api, Endpoint
from web.http.metrics import registry_of

api = Api("operations")


class WorkspaceAnswer(Answer, of=operations.WorkspaceSummary, flat="progress"):
    """A workspace, its number of active memories and its encoder; or why it cannot be read."""


class WorkspacePage(PageAnswer[WorkspaceAnswer]):
    """The workspaces of the data directory."""


class MemoryCountsAnswer(Answer, of=MemoryCounts):
    """Memories by state, kind and source."""

    by_kind: dict[Kind, int]
    by_source: dict[Source, int]


class GraphCountsAnswer(Answer, of=GraphCounts):
    """Entities and their links."""


class IndexAnswer(Answer, of=operations.IndexStatistics, flat="progress"):
    """The derived indexes."""

    encoder: EncoderState


class PredictionsAnswer(Answer, of=PredictionScore):
    """How many questions of the last seven days were predicted; the rate is null without questions.

    `answered` is how many were answered from the store, without a search.
    """

    hit_rate: Annotated[float | None, PlainSerializer(lambda rate: None if rate is None else round(rate, 4))]


class SizeAnswer(Answer, of=operations.WorkspaceSize):
    """The size of each part of a workspace in bytes."""


class StatsAnswer(Answer, of=operations.WorkspaceStatistics):
    """The statistics of a workspace."""


class SwitchesAnswer(Answer):
    """The switches that apply to a request like this one, from the settings and the headers of the request."""

    workspace: str
    enabled: bool
    hook_recall: bool
    journal: bool
    capture: Literal["off", "suggest", "on"]
    personal: bool
    write_tools: bool
    read_only: bool
    incognito: bool
    imports_in_prompts: bool


class ErrorAnswer(Answer, of=LoggedError, without=("seq",)):
    """A background error."""

    id: int = Field(validation_alias="seq")
    at: SecondsText
    repaired_at: SecondsText | None


class ErrorQuery(bodies.PageQuery):
    """A page of background errors, optionally only unrepaired ones."""

    open: bool = False


class ErrorPage(PageAnswer[ErrorAnswer]):
    """A page of background errors."""


@api.route(Endpoint("GET", "/v1/workspaces", answer=WorkspacePage, needs=Right.ANYBODY))
def list_workspaces(call: Call) -> Page[operations.WorkspaceSummary]:
    """List the workspaces of this data directory."""
    names = [name for name in call.container.databases.ids() if call.may_enter(name)]
    return Page([operations.summarize_workspace(call.enter(name)) for name in names])


class MoveWorkspaceBody(bodies.Body):
    """The workspace to move all memories to."""

    workspace: Annotated[str, StringConstraints(pattern=f"^(?:{WORKSPACE_ID.pattern})$")]


class MovedWorkspaceAnswer(Answer):
    """The moved workspace, its target, and the number of moved memories."""

    source: str = Field(serialization_alias="from")
    target: str = Field(serialization_alias="to")
    memories: int


@api.route(Endpoint("POST", "/v1/workspaces/move", answer=MovedWorkspaceAnswer, problems=(404, 409), needs=Right.HOME))
def move_all(call: Call, body: MoveWorkspaceBody) -> MovedWorkspaceAnswer:
    """Move all memories of a workspace to another one, which its folders use from then on."""
    container, target = call.container, call.enter(body.workspace)
    memories = move_workspace(container.settings, container.stores, call.workspace, target)
    return MovedWorkspaceAnswer(source=call.workspace_id, target=target.id, memories=memories)


@api.route(Endpoint("GET", "/v1/stats", answer=StatsAnswer, problems=(404,)))
def measure_workspace(call: Call) -> operations.WorkspaceStatistics:
    """Count the contents of a workspace and measure its size."""
    return operations.measure_workspace(call.workspace, call.container.encoders.state)


@api.route(Endpoint("GET", "/v1/switches", answer=SwitchesAnswer))
def read_switches(call: Call) -> SwitchesAnswer:
    """Return the switches in force in a workspace."""
    settings, access = call.workspace.settings, call.workspace.access
    of_request = {"read_only": access.is_read_only, "incognito": access.is_incognito}
    switches = {name: getattr(settings, name) for name in SWITCHES} | of_request
    return SwitchesAnswer(workspace=call.workspace_id, **switches)


@api.route(Endpoint("GET", "/v1/errors", answer=ErrorPage, needs=Right.ADMIN))
def list_errors(call: Call, query: ErrorQuery) -> Page[LoggedError]:
    """List background errors, newest first."""
    return operations.list_errors(
        call.container.operations, call.workspace_id, query.limit, query.before, open_only=query.open
    )


@api.route(Endpoint("GET", "/metrics", media_type="text/plain", needs=Right.ADMIN))
def read_metrics(call: Call) -> Response:  # noqa: ARG001 - every handler takes a call
    """Return metrics of requests and queues as Prometheus text."""
    return Response(generate_latest(registry_of()), content_type=CONTENT_TYPE_LATEST)


class RetryBody(bodies.Body):
    """The stage whose failed work items to retry; the default is all stages."""

    stage: Annotated[Stage, Field(strict=False)] | None = None


class WorkerAnswer(Answer, of=Worker):
    """A running worker process."""

    started_at: SecondsText
    seen_at: SecondsText


class QueueAnswer(Answer, of=operations.QueueCounts, without=("oldest_by_stage",)):
    """Pending work, dead-lettered work (failed permanently), and running workers."""

    oldest_pending_s: Annotated[
        float | None, PlainSerializer(lambda waited: None if waited is None else round(waited, 3))
    ]


class RetriedAnswer(Answer):
    """Number of dead-lettered work items that are retried."""

    retried: int


class RebuildAnswer(Answer):
    """Number of memories that are queued for indexing."""

    queued: int


@api.route(Endpoint("GET", "/v1/queue", answer=QueueAnswer, problems=(404,)))
def count_queue(call: Call) -> operations.QueueCounts:
    """Count pending and failed work. If all pending counts are 0, every memory is fully processed."""
    return operations.count_queue(call.workspace, call.container.operations)


@api.route(
    Endpoint(
        "POST",
        "/v1/queue/retry",
        body_required=False,
        answer=RetriedAnswer,
        problems=(404,),
        keeps_memories=True,
        needs=Role.OWNER,
    )
)
def retry_dead_letters(call: Call, body: RetryBody) -> RetriedAnswer:
    """Retry dead-lettered work items."""
    return RetriedAnswer(retried=operations.retry_dead_letters(call.workspace, body.stage))


@api.route(
    Endpoint("POST", "/v1/rebuild", answer=RebuildAnswer, problems=(404,), keeps_memories=True, needs=Role.OWNER)
)
def rebuild_indexes(call: Call) -> RebuildAnswer:
    """Rebuild every derived index of a workspace from its memories. The queue shows the progress."""
    return RebuildAnswer(queued=operations.rebuild_indexes(call.workspace))


class RunAnswer(Answer, of=Run, without=("name", "asked_at", "generation")):
    """One run of a job; `ok` is null while it runs; `done` of `total` pieces are finished."""

    started_at: str
    took_s: float | None


class JobAnswer(Answer):
    """A job, its schedule, its last run, and when it runs next."""

    name: str = Field(validation_alias=AliasPath("job", "name"))
    summary: str = Field(validation_alias=AliasPath("job", "summary"))
    schedule: Annotated[str, BeforeValidator(str)] = Field(validation_alias=AliasPath("job", "schedule"))
    last_run: RunAnswer | None = Field(validation_alias="last")
    next_run_at: Annotated[str, BeforeValidator(lambda at: at if isinstance(at, str) else utc_text(at))] = Field(
        validation_alias="next_at"
    )


class JobsAnswer(PageAnswer[JobAnswer]):
    """The jobs, in the order in which a full run executes them."""


class RequestedRunAnswer(Answer):
    """The run that was requested."""

    run_id: str


@api.route(Endpoint("GET", "/v1/jobs", answer=JobsAnswer, problems=(404,)))
def list_jobs(call: Call) -> Page[JobStatus]:
    """List the jobs with schedule, last run and next."""
    return Page(maintenance.list_jobs(call.workspace, call.container.settings, datetime.now(UTC)))


@api.route(
    Endpoint(
        "POST",
        "/v1/jobs/{name}",
        answer=RequestedRunAnswer,
        status=202,
        problems=(404,),
        keeps_memories=True,
        needs=Role.OWNER,
    )
)
def request_job(call: Call, name: str) -> RequestedRunAnswer:
    """Run a job now."""
    return RequestedRunAnswer(run_id=maintenance.request_job(call.workspace, call.container.feedback, name))
