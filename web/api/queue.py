"""The queue of a workspace: what waits, what failed for good, who works."""

from typing import Annotated

from pydantic import Field, PlainSerializer

from pipeline.records import Stage
from pipeline.services import operations
from pipeline.services.operations import QueueCounts
from web.api import bodies
from web.api.answers import Answer, SecondsText
from web.endpoint import Api, Call, Endpoint

api = Api("queue")


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
