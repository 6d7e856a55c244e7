"""Workers: the queue, the nightly jobs, dead letters, what went wrong, and how long answers take."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from flask import url_for
from pydantic import BaseModel
from werkzeug.wrappers import Response

from config.process import Role
from pipeline.records import Stage
from pipeline.services import maintenance, operations
from pipeline.services.maintenance import JobState, JobStatus, Run
from pipeline.services.operations import QueueCounts, Worker
from pipeline.times import utc_text
from web.access import Access
from web.dashboard.filters import ago, milliseconds, number, preview, words
from web.dashboard.view import Cursor, Query, Section, View, back, next_page, show
from web.endpoint import json_response
from web.metrics import latencies, request_seconds
from web.version import VERSION

section = Section("workers", Access.ADMIN)

# Two lists share the page.
LISTED = 20
# What a job or a stage reported when it failed, in a list; `GET /v1/errors` has the whole.
ERROR_CHARS = 400
SCHEDULER = "scheduler"
# The web server runs this job itself.
HERE = frozenset({"touches"})
STAGES: Mapping[Stage, str] = {
    Stage.EMBED: "computes embeddings for search by meaning",
    Stage.ENTITIES: "extracts entities",
    Stage.DEDUP: "detects duplicates",
    Stage.SCREEN: "flags text that instructs the agent",
    Stage.CAPTURE: "extracts memories from messages",
    Stage.PURGE: "removes purged memories from every index",
}


class WorkersQuery(Query):
    """Where the lists of errors and of dead letters go on."""

    before: Cursor | None = None
    dead_before: Cursor | None = None


class RetryForm(BaseModel):
    """Which stage's dead letters to try again; all without one."""

    stage: Stage | None = None


@dataclass(frozen=True, slots=True)
class Processes:
    """Who is at work: since when the server (seconds since the epoch), and how its encoder is."""

    server_since: float
    encoder: str
    workers: tuple[Worker, ...]
    scheduler: bool


@section.page("/workers", WorkersQuery)
def state(view: View) -> str:
    """Show how the work behind the web server fares."""
    found, jobs = _read(view)
    dead = operations.list_dead_letters(view.workspace, LISTED, view.query.dead_before)
    errors = operations.list_errors(view.container.operations, view.workspace_id, LISTED, view.query.before)
    return show(
        "workers.html",
        view,
        title="Workers",
        jobs=jobs,
        stages=STAGES,
        cells=_cells(found, jobs, view.now),
        dead=found.dead,
        written=operations.count_digested(view.workspace, view.now),
        dead_letters=dead.items,
        dead_url=next_page(dead.next_cursor, name="dead_before", anchor="dead"),
        errors=[(utc_text(datetime.fromtimestamp(error.at, UTC)), error) for error in errors.items],
        errors_url=next_page(errors.next_cursor, anchor="errors"),
        latencies=latencies(request_seconds()),
        processes=_processes(view, found.workers),
        version=VERSION,
    )


@section.page("/workers/now")
def now(view: View) -> Response:
    """Return what changes while work goes on, in the words of the page."""
    found, jobs = _read(view)
    job_states = {status.job.name: status.state for status in jobs}
    busy = found.total > 0 or not {JobState.ASKED, JobState.RUNNING}.isdisjoint(job_states.values())
    cells = _cells(found, jobs, view.now)
    return json_response({"cells": cells, "job_states": job_states, "pending": found.total, "busy": busy})


@section.action("/workers/retry", RetryForm)
def retry(view: View) -> Response:
    """Give dead letters a fresh start."""
    retried = operations.retry_dead_letters(view.workspace, view.form.stage)
    return back(view, f"{number(retried)} queue entr{'y' if retried == 1 else 'ies'} will be retried.")


@section.action("/workers/jobs/<name>")
def run(view: View, name: str) -> Response:
    """Run a job now."""
    maintenance.request_job(view.workspace, view.container.feedback, name)
    outcome = "has run" if name in HERE else "is queued. A worker runs it as soon as possible"
    return back(view, f"The job {name} {outcome}.", to=url_for("dashboard.workers_state", _anchor=f"job-{name}"))


def _read(view: View) -> tuple[QueueCounts, list[JobStatus]]:
    found = operations.count_queue(view.workspace, view.container.operations)
    return found, maintenance.list_jobs(view.workspace, view.container.settings, view.now)


def _cells(found: QueueCounts, jobs: Iterable[JobStatus], now: datetime) -> dict[str, str]:
    """Return everything on the page that changes by itself: texts by name."""
    pending, oldest, total = found.pending, found.oldest_by_stage, found.total
    cells = {"pending": f"{number(total)} pending" if total else "empty"}
    for stage in STAGES:
        cells[f"pending-{stage}"] = number(pending[stage])
        cells[f"oldest-{stage}"] = ago(oldest[stage], now) if stage in oldest else "–"
    for status in jobs:
        cells |= {f"{part}-{status.job.name}": text for part, text in _describe(status, now).items()}
    return cells


def _describe(status: JobStatus, now: datetime) -> dict[str, str]:
    last, state = status.last, str(status.state)
    if status.state is JobState.ASKED:
        state = "queued"
    elif status.state is JobState.RUNNING and last is not None and last.total:
        state = f"running, {number(last.done)} of {number(last.total)}"
    cells = {"state": state, "last": "", "did": "", "error": "", "next": f"next {_until(status.next_at, now)}"}
    if last is not None:
        took = "" if last.took_s is None else f", took {milliseconds(last.took_s)}"
        cells["last"] = f"{ago(last.started_at, now)}{took}"
        cells["did"] = _did(last)
        cells["error"] = preview(last.error or "", ERROR_CHARS)
    elif status.state is JobState.NEVER and status.job.elsewhere:
        # What it does by the clock leaves no run behind.
        cells |= {"state": "automatic", "next": ""}
    return cells


def _did(run: Run) -> str:
    if run.ended_at is None or run.error is not None:
        return ""
    done = [
        f"{number(count)} {'memory' if (name, count) == ('memories', 1) else words(name)}"
        for name, count in run.counts.items()
        if count
    ]
    return ", ".join(done) or "nothing to do"


def _until(due: datetime, now: datetime) -> str:
    seconds = (due - now).total_seconds()
    if seconds <= 0:
        return "due"
    return f"in {seconds:.0f} s" if seconds < 60 else ago(due.timestamp(), now)


def _processes(view: View, workers: tuple[Worker, ...]) -> Processes:
    container = view.container
    scheduler = Role(container.settings.paths.root, SCHEDULER)
    started = view.now - timedelta(seconds=time.monotonic() - container.started)
    return Processes(started.timestamp(), container.encoders.state, workers, scheduler.is_held())
