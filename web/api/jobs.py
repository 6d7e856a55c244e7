"""The jobs: when each runs, how it fared last, and running one now."""

from typing import Any

from pipeline.bootstrap.front import Front
from pipeline.jobs.status import JobStatus
from pipeline.services import maintenance
from pipeline.store.runs import Run
from pipeline.times import utc_text
from web.api.answers import Answer
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

    name: str
    summary: str
    schedule: str
    last_run: RunAnswer | None
    next_run_at: str


class JobsAnswer(Answer):
    """The jobs, in the order of a whole night."""

    items: list[JobAnswer]
    next_cursor: str | None


class AskedAnswer(Answer):
    """The run that was asked for."""

    run_id: str


@api.route(
    Endpoint("GET", "/v1/jobs", "List the jobs with schedule, last run and next", answer=JobsAnswer, problems=(404,))
)
def list_jobs(call: Call) -> dict[str, Any]:
    """List the jobs of a workspace."""
    found = maintenance.list_jobs(call.front.databases.get(call.workspace_id), call.front.settings)
    return {"items": [_job_json(status) for status in found], "next_cursor": None}


@api.route(
    Endpoint(
        "POST",
        "/v1/jobs/{name}",
        "Run a job now",
        answer=AskedAnswer,
        status=202,
        problems=(404, 503),
    )
)
def run_job(call: Call, name: str) -> dict[str, Any]:
    """Ask for a run."""
    return {"run_id": ask_for(call.front, call.workspace_id, name)}


def ask_for(front: Front, workspace: str, name: str) -> str:
    """Ask for a run of a job and return its id; raise NotFound for a job or workspace that there is none of."""
    maintenance.check_job_name(name)
    database = front.databases.get(workspace)
    if name == "touches":
        return front.feedback.write_usage(front.workspace(workspace))
    return maintenance.request_job(database, name)


def _job_json(status: JobStatus) -> dict[str, Any]:
    return {
        "name": status.job.name,
        "summary": status.job.summary,
        "schedule": str(status.job.schedule),
        "last_run": None if status.last is None else _run_json(status.last),
        "next_run_at": utc_text(status.next_at),
    }


def _run_json(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "ok": run.ok,
        "counts": dict(run.counts),
        "error": run.error,
        "done": run.done,
        "total": run.total,
        "took_s": run.took_s,
    }
