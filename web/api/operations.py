"""What there is and how it fares: health, workspaces, statistics, errors, metrics, and the queue of a workspace."""

import time
from enum import StrEnum
from typing import Annotated, Literal

from flask import Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic import Field, PlainSerializer

from config.version import VERSION
from pipeline.records import Kind, Page, Source, Stage
from pipeline.services import operations
from pipeline.services.operations import LoggedError, QueueCounts, WorkspaceStatistics
from web.api import bodies
from web.api.answers import Answer, PageAnswer, SecondsText
from web.endpoint import Api, Call, Endpoint
from web.metrics import registry_of

api = Api("operations")


class EncoderState(StrEnum):
    """Whether questions can be encoded yet."""

    READY = "ready"
    LOADING = "loading"


Milliseconds = Annotated[float, PlainSerializer(lambda seconds: round(seconds, 3))]


class HealthAnswer(Answer):
    """That the server answers, whether it can encode queries yet, and how long nobody has asked it for anything."""

    status: Literal["ok"] = "ok"
    version: str = VERSION
    encoder: EncoderState
    uptime_s: Milliseconds
    idle_s: Milliseconds


class WorkspaceAnswer(Answer):
    """A workspace and its number of active memories."""

    id: str
    memories: int


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
    co_mentions: int


class IndexAnswer(Answer):
    """The derived indexes."""

    segment: str | None
    tail_rows: int
    passages: int
    model: str
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


class ErrorAnswer(Answer):
    """A background error."""

    id: int = Field(validation_alias="seq")
    at: SecondsText
    workspace: str | None
    component: str
    message: str


class ErrorPage(PageAnswer[ErrorAnswer]):
    """A page of background errors."""


@api.route(Endpoint("GET", "/healthz", "Tell that the server answers; open without a token", answer=HealthAnswer))
def check_health(call: Call) -> HealthAnswer:
    """Answer that the web server lives."""
    now = time.monotonic()
    container = call.container
    state = EncoderState(container.encoder.state)
    return HealthAnswer(encoder=state, uptime_s=now - container.started, idle_s=now - container.requested)


@api.route(Endpoint("GET", "/v1/workspaces", "List the workspaces of this home", answer=WorkspacePage))
def list_workspaces(call: Call) -> Page[WorkspaceAnswer]:
    """List workspaces with their number of active memories."""
    names = call.container.settings.paths.workspace_ids()
    counted = {name: operations.count_active_memories(call.container.workspace(name)) for name in names}
    return Page([WorkspaceAnswer(id=name, memories=count) for name, count in counted.items()])


@api.route(
    Endpoint(
        "GET",
        "/v1/stats",
        "Count what a workspace holds and how large it is",
        answer=StatsAnswer,
        problems=(404,),
    )
)
def measure_workspace(call: Call) -> WorkspaceStatistics:
    """Count memories, entities, index rows and bytes."""
    return operations.measure_workspace(call.workspace, call.container.encoder.state)


@api.route(
    Endpoint("GET", "/v1/errors", "List background errors, newest first", query=bodies.PageQuery, answer=ErrorPage)
)
def list_errors(call: Call) -> Page[LoggedError]:
    """List the error log of a workspace and of the server itself."""
    query: bodies.PageQuery = call.query
    return operations.list_errors(call.container.operations, call.workspace_id, query.limit, query.before)


@api.route(Endpoint("GET", "/metrics", "Measure requests and queues, as Prometheus text", media_type="text/plain"))
def read_metrics(call: Call) -> Response:  # noqa: ARG001 - every handler takes a call
    """Expose the metrics."""
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


@api.route(
    Endpoint(
        "GET",
        "/v1/queue",
        "Count what waits and what failed; pending all 0 means that everything written is digested",
        answer=QueueAnswer,
        problems=(404,),
    )
)
def count_queue(call: Call) -> QueueCounts:
    """Count the work of a workspace."""
    return operations.count_queue(call.workspace, call.container.operations)


@api.route(
    Endpoint(
        "POST",
        "/v1/queue/retry",
        "Give dead letters a fresh start",
        body=RetryBody,
        body_required=False,
        answer=RetriedAnswer,
        problems=(404, 503),
    )
)
def retry_dead_letters(call: Call) -> RetriedAnswer:
    """Retry the dead letters of one stage or of all."""
    return RetriedAnswer(retried=operations.retry_dead_letters(call.workspace, call.body.stage))


@api.route(
    Endpoint(
        "POST",
        "/v1/rebuild",
        "Compute every derived index of a workspace again from its memories; the queue tells how far it is",
        answer=RebuildAnswer,
        problems=(404, 503),
    )
)
def rebuild_indexes(call: Call) -> RebuildAnswer:
    """Queue every memory of a workspace for its indexes."""
    return RebuildAnswer(queued=operations.rebuild_indexes(call.workspace))
