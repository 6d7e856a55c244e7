"""Pages for the owner: workspace requests of projects, other machines, access log, workers, queue and jobs."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from flask import url_for
from pydantic import StringConstraints
from werkzeug.wrappers import Response

from config.process import Role as ProcessRole
from pipeline.features.maintenance import operations, usecases as maintenance
from pipeline.features.maintenance.registry import JobState, JobStatus
from pipeline.features.workspaces.usecases import agree_to_claim, list_claims, withdraw_claim
from pipeline.kernel.errors import NotFound
from pipeline.kernel.records import Stage
from pipeline.kernel.records.people import Role
from pipeline.kernel.store.operations import Worker
from pipeline.kernel.store.people import AccessQuery
from pipeline.kernel.store.runs import Run
from pipeline.kernel.times import utc_text
from web.dashboard.filters import ago, milliseconds, number, preview, words
from web.dashboard.view import PAGE_SIZE, Cursor, Link, Paged, Section, View, back, next_page, show
from web.http.access import Right
from web.http.endpoint import json_response
from web.http.metrics import measure_endpoints, measure_tools
from web.version import VERSION

claims_section = Section("claims", Right.HOME)
sync_section = Section("sync", Right.HOME, Link("Other machines", "sync_overview", "Maintenance"))
access_section = Section("access", Role.OWNER, Link("Access log", "access_log", "Maintenance", with_people=True))

Name = Annotated[str, StringConstraints(max_length=64)]
# Length of each list of the page about other machines.
SHOWN = 30


@claims_section.page("/claims", empty_too=True)
def list_all(view: View) -> str:
    """List all workspace requests."""
    return show("claims.html", view, title="Workspace requests", claims=list_claims(view.container.settings))


@claims_section.action("/claims/agree")
def agree(view: View, *, file: str, claimed: str) -> Response:
    """Allow a project to use the workspace that it requests."""
    _check_known(view, file, claimed)
    agree_to_claim(view.container.settings, Path(file), claimed)
    message = f"Projects in {Path(file).parent} now use the workspace {claimed}."
    return back(view, message, undo=_undo("withdraw", file, claimed))


@claims_section.action("/claims/withdraw")
def withdraw(view: View, *, file: str, claimed: str) -> Response:
    """Make a project use its separate workspace again."""
    _check_known(view, file, claimed)
    withdraw_claim(view.container.settings, Path(file))
    message = f"Projects in {Path(file).parent} no longer use the workspace {claimed}."
    return back(view, message, undo=_undo("agree", file, claimed))


def _check_known(view: View, file: str, claimed: str) -> None:
    known = {(claim.file, claim.workspace) for claim in list_claims(view.container.settings)}
    if (file, claimed) not in known:
        raise NotFound("There is no such workspace request. Reload the page.")


def _undo(action: str, file: str, claimed: str) -> tuple[str, dict[str, str]]:
    return url_for(f"dashboard.claims_{action}"), {"file": file, "claimed": claimed}


@sync_section.page("/sync", empty_too=True)
def overview(view: View) -> str:
    """Show the remotes, the devices, and what needs attention."""
    sync = view.container.sync
    return show(
        "sync.html",
        view,
        title="Other machines",
        remotes=sync.status(),
        devices=sync.devices(),
        events=sync.events(SHOWN),
        put_aside=sync.put_aside()[:SHOWN],
        conflicts=sync.conflicts(view.workspace.id)[:SHOWN] if view.workspace.exists else [],
    )


@sync_section.action("/sync/restore")
def restore(view: View, *, memory_id: Name, field: Name, operation: Name) -> Response:
    """Restore a value that lost a conflict."""
    view.container.sync.restore_lost(view.workspace.id, memory_id, field, operation)
    return back(view, "Value restored. The previous value is in the history.")


@access_section.page("/access", Paged, empty_too=True)
def log(view: View) -> str:
    """List the requests to the workspace, newest first."""
    page = view.container.access_log.page(AccessQuery(workspace=view.workspace_id), PAGE_SIZE, view.query.before)
    return show("access_log.html", view, title="Access log", entries=page.items, next_url=next_page(page.next_cursor))


workers_section = Section("workers", Right.ADMIN, Link("Workers", "workers_state", "Maintenance"))

# Length of the two lists on the page.
LISTED = 20
# Errors are shortened in lists; `GET /v1/errors` returns the full text.
ERROR_CHARS = 400
SCHEDULER = "scheduler"
# Jobs that the web server runs.
HERE = frozenset({"touches"})
STAGES: Mapping[Stage, str] = {
    Stage.EMBED: "computes embeddings for search by meaning",
    Stage.ENTITIES: "extracts entities",
    Stage.DEDUP: "detects duplicates",
    Stage.SCREEN: "flags text that instructs the agent",
    Stage.CAPTURE: "extracts memories from messages",
    Stage.CONCLUDE: "extracts decisions from sessions",
    Stage.EMBED_TURNS: "makes messages findable by meaning",
    Stage.PURGE: "removes purged memories from every index",
}


@dataclass(frozen=True, slots=True)
class Processes:
    """Running processes: start of the server (seconds since the epoch), encoder state, workers, scheduler."""

    server_since: float
    encoder: str
    workers: tuple[Worker, ...]
    scheduler: bool


@workers_section.page("/workers", Paged)
def state(view: View, *, dead_before: Cursor | None = None) -> str:
    """Show the state of workers, queue and jobs."""
    queue, jobs = _read(view)
    dead = operations.list_dead_letters(view.workspace, LISTED, dead_before)
    errors = operations.list_errors(view.container.operations, view.workspace_id, LISTED, view.query.before)
    return show(
        "workers.html",
        view,
        title="Workers",
        jobs=jobs,
        stages=STAGES,
        cells=_cells(queue, jobs, view.now),
        dead=queue.dead,
        written=operations.count_digested(view.workspace, view.now),
        dead_letters=dead.items,
        dead_url=next_page(dead.next_cursor, name="dead_before", anchor="dead"),
        errors=[(utc_text(datetime.fromtimestamp(error.at, UTC)), error) for error in errors.items],
        errors_url=next_page(errors.next_cursor, anchor="errors"),
        latencies=measure_endpoints(),
        tools=measure_tools(),
        processes=_processes(view, queue.workers),
        version=VERSION,
    )


@workers_section.page("/workers/now")
def now(view: View) -> Response:
    """Return the changing texts of the page."""
    queue, jobs = _read(view)
    job_states = {status.job.name: status.state for status in jobs}
    busy = queue.total > 0 or not {JobState.ASKED, JobState.RUNNING}.isdisjoint(job_states.values())
    cells = _cells(queue, jobs, view.now)
    return json_response({"cells": cells, "job_states": job_states, "pending": queue.total, "busy": busy})


@workers_section.action("/workers/retry")
def retry(view: View, *, stage: Stage | None = None) -> Response:
    """Retry the dead letters of a stage, or all."""
    retried = operations.retry_dead_letters(view.workspace, stage)
    return back(view, f"{number(retried)} queue entr{'y' if retried == 1 else 'ies'} will be retried.")


@workers_section.action("/workers/jobs/<name>")
def run(view: View, name: str) -> Response:
    """Run a job now."""
    maintenance.request_job(view.workspace, view.container.feedback, name)
    outcome = "has run" if name in HERE else "is queued. A worker runs it as soon as possible"
    return back(view, f"The job {name} {outcome}.", to=url_for("dashboard.workers_state", _anchor=f"job-{name}"))


def _read(view: View) -> tuple[operations.QueueCounts, list[JobStatus]]:
    queue = operations.count_queue(view.workspace, view.container.operations)
    return queue, maintenance.list_jobs(view.workspace, view.container.settings, view.now)


def _cells(queue: operations.QueueCounts, jobs: Iterable[JobStatus], now: datetime) -> dict[str, str]:
    """Return the texts of the page that change while it is open, by name."""
    pending, oldest, total = queue.pending, queue.oldest_by_stage, queue.total
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
        # The scheduled runs of this job are not recorded.
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
    scheduler = ProcessRole(container.settings.paths.root, SCHEDULER)
    started = view.now - timedelta(seconds=time.monotonic() - container.started)
    return Processes(started.timestamp(), container.encoders.state, workers, scheduler.is_held())
