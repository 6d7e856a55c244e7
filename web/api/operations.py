"""What there is and how it fares: workspaces, statistics, errors, metrics, the queue of a workspace, its jobs.

And what the contract names and this version does not do yet: said plainly, never pretended.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal

from flask import Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic import AliasPath, BeforeValidator, Field, PlainSerializer

from config.settings import SWITCHES
from pipeline.jobs.registry import JobStatus
from pipeline.records import Kind, Page, Source, Stage
from pipeline.records.people import Role
from pipeline.services import maintenance, operations
from pipeline.services.operations import QueueCounts, WorkspaceStatistics, WorkspaceSummary
from pipeline.store.operations import LoggedError
from pipeline.times import utc_text
from web.access import Access
from web.api import bodies
from web.api.answers import Answer, PageAnswer, SecondsText
from web.api.health import EncoderState
from web.endpoint import Api, Call, Endpoint
from web.metrics import registry_of

api = Api("operations")


class EncoderProgressAnswer(Answer):
    """The model whose vectors answer, and the one that is to follow it, with the number of memories it has embedded.

    `languages` says what showed that the workspace is not in English alone.
    """

    model: str = Field(validation_alias=AliasPath("progress", "model"))
    languages: str | None = Field(validation_alias=AliasPath("progress", "languages"))
    next_model: str | None = Field(validation_alias=AliasPath("progress", "next_model"))
    embedded: int | None = Field(validation_alias=AliasPath("progress", "embedded"))


class WorkspaceAnswer(EncoderProgressAnswer):
    """A workspace, its number of active memories, and its encoder; of one that cannot be read, the problem."""

    id: str
    memories: int | None
    problem: str | None


class WorkspacePage(PageAnswer[WorkspaceAnswer]):
    """The workspaces of the home."""


class MemoryCountsAnswer(Answer):
    """Memories by state, kind and source."""

    active: int
    archived: int
    sessions: int
    by_kind: dict[Kind, int]
    by_source: dict[Source, int]


class GraphCountsAnswer(Answer):
    """Entities and their links."""

    entities: int
    mentions: int


class IndexAnswer(EncoderProgressAnswer):
    """The derived indexes."""

    segment: str | None
    tail_rows: int
    passages: int
    encoder: EncoderState


class PredictionsAnswer(Answer):
    """How many questions of the last seven days had been foreseen; no rate where nobody asked."""

    asked: int
    foreseen: int
    hit_rate: Annotated[float | None, PlainSerializer(lambda rate: None if rate is None else round(rate, 4))]


class SizeAnswer(Answer):
    """The bytes that the parts of a workspace take."""

    events: int
    vectors: int
    lexical: int


class StatsAnswer(Answer):
    """What a workspace holds."""

    workspace: str
    generation: int
    memories: MemoryCountsAnswer
    graph: GraphCountsAnswer
    index: IndexAnswer
    predictions: PredictionsAnswer
    bytes: SizeAnswer


class SwitchesAnswer(Answer):
    """What the server does and does not do for a request like this one, by its settings and the request's headers."""

    workspace: str
    hooks: bool
    hook_recall: bool
    journal: bool
    capture: Literal["off", "suggest", "on"]
    personal: bool
    write_tools: bool
    read_only: bool
    incognito: bool
    trace: bool


class ErrorAnswer(Answer):
    """A background error."""

    id: int = Field(validation_alias="seq")
    at: SecondsText
    workspace: str | None
    component: str
    message: str
    repaired_at: SecondsText | None


class ErrorQuery(bodies.PageQuery):
    """A page of background errors, or of those alone that were not repaired since."""

    open: bool = False


class ErrorPage(PageAnswer[ErrorAnswer]):
    """A page of background errors."""


@api.route(Endpoint("GET", "/v1/workspaces", answer=WorkspacePage, needs=Access.ANYBODY))
def list_workspaces(call: Call) -> Page[WorkspaceSummary]:
    """List the workspaces of this home."""
    names = [name for name in call.container.databases.ids() if call.may_enter(name)]
    return Page([operations.summarize_workspace(call.enter(name)) for name in names])


@api.route(Endpoint("GET", "/v1/stats", answer=StatsAnswer, problems=(404,)))
def measure_workspace(call: Call) -> WorkspaceStatistics:
    """Count what a workspace holds and how large it is."""
    return operations.measure_workspace(call.workspace, call.container.encoders.state)


@api.route(Endpoint("GET", "/v1/switches", answer=SwitchesAnswer))
def read_switches(call: Call) -> SwitchesAnswer:
    """Return the switches in force in a workspace."""
    settings = call.workspace.settings
    return SwitchesAnswer(workspace=call.workspace_id, **{name: getattr(settings, name) for name in SWITCHES})


@api.route(Endpoint("GET", "/v1/errors", answer=ErrorPage, needs=Access.ADMIN))
def list_errors(call: Call, query: ErrorQuery) -> Page[LoggedError]:
    """List background errors, newest first."""
    return operations.list_errors(
        call.container.operations, call.workspace_id, query.limit, query.before, open_only=query.open
    )


@api.route(Endpoint("GET", "/metrics", media_type="text/plain", needs=Access.ADMIN))
def read_metrics(call: Call) -> Response:  # noqa: ARG001 - every handler takes a call
    """Measure requests and queues, as Prometheus text."""
    return Response(generate_latest(registry_of()), content_type=CONTENT_TYPE_LATEST)


class RetryBody(bodies.Body):
    """Which dead letters to retry; all without a stage."""

    stage: Annotated[Stage, Field(strict=False)] | None = None


class WorkerAnswer(Answer):
    """A living worker process."""

    owner: str
    started_at: SecondsText
    seen_at: SecondsText


class QueueAnswer(Answer):
    """What waits, what failed for good, who works."""

    pending: dict[Stage, int]
    dead: dict[Stage, int]
    oldest_pending_s: Annotated[
        float | None, PlainSerializer(lambda waited: None if waited is None else round(waited, 3))
    ]
    workers: list[WorkerAnswer]


class RetriedAnswer(Answer):
    """How many dead letters were given a fresh start."""

    retried: int


class RebuildAnswer(Answer):
    """How many memories were queued to be indexed again."""

    queued: int


@api.route(Endpoint("GET", "/v1/queue", answer=QueueAnswer, problems=(404,)))
def count_queue(call: Call) -> QueueCounts:
    """Count what waits and what failed; pending all 0 means that everything written is digested."""
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
    """Give dead letters a fresh start."""
    return RetriedAnswer(retried=operations.retry_dead_letters(call.workspace, body.stage))


@api.route(
    Endpoint("POST", "/v1/rebuild", answer=RebuildAnswer, problems=(404,), keeps_memories=True, needs=Role.OWNER)
)
def rebuild_indexes(call: Call) -> RebuildAnswer:
    """Compute every derived index of a workspace again from its memories; the queue tells how far it is."""
    return RebuildAnswer(queued=operations.rebuild_indexes(call.workspace))


class RunAnswer(Answer):
    """One run; `ok` is null until it ended, `done` of `total` pieces are finished."""

    id: str
    started_at: str
    ended_at: str | None
    ok: bool | None
    counts: dict[str, int]
    error: str | None
    done: int
    total: int
    took_s: float | None


class JobAnswer(Answer):
    """A job, its rhythm, its last run, and when it is due next."""

    name: str = Field(validation_alias=AliasPath("job", "name"))
    summary: str = Field(validation_alias=AliasPath("job", "summary"))
    schedule: Annotated[str, BeforeValidator(str)] = Field(validation_alias=AliasPath("job", "schedule"))
    last_run: RunAnswer | None = Field(validation_alias="last")
    next_run_at: Annotated[str, BeforeValidator(lambda at: at if isinstance(at, str) else utc_text(at))] = Field(
        validation_alias="next_at"
    )


class JobsAnswer(PageAnswer[JobAnswer]):
    """The jobs, in the order of a whole run."""


class RequestedRunAnswer(Answer):
    """The run that was asked for."""

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
