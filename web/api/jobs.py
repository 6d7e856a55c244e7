"""The jobs: when each runs, how it fared last, and running one now."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AliasPath, BeforeValidator, Field

from pipeline.records import Page
from pipeline.services import maintenance
from pipeline.services.maintenance import JobStatus
from pipeline.times import utc_text
from web.api.answers import Answer, PageAnswer
from web.endpoint import Api, Call, Endpoint

api = Api("jobs")


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


@api.route(
    Endpoint("GET", "/v1/jobs", "List the jobs with schedule, last run and next", answer=JobsAnswer, problems=(404,))
)
def list_jobs(call: Call) -> Page[JobStatus]:
    """List the jobs of a workspace."""
    return Page(maintenance.list_jobs(call.workspace, call.container.settings, datetime.now(UTC)))


@api.route(
    Endpoint(
        "POST",
        "/v1/jobs/{name}",
        "Run a job now",
        answer=RequestedRunAnswer,
        status=202,
        problems=(404, 503),
    )
)
def request_job(call: Call, name: str) -> RequestedRunAnswer:
    """Ask for a run."""
    return RequestedRunAnswer(run_id=maintenance.request_job(call.workspace, call.container.feedback, name))
