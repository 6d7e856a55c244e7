"""Workers: the queue, the jobs of the night, what was given up, what went wrong, and how long answers take."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from sqlite3 import Connection
from typing import Annotated, Any, Protocol

from flask import request, url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from config.owner import is_alive
from config.process import Role
from config.version import VERSION
from pipeline.jobs.registry import scheduled_jobs
from pipeline.jobs.status import JobState, JobStatus, job_statuses
from pipeline.records import Memory, Stage
from pipeline.store import memories, work
from pipeline.store.operations import Worker
from pipeline.store.runs import Run
from pipeline.store.work import DeadLetter
from pipeline.times import utc_text
from web.api.jobs import ask_for
from web.api.render import seconds_text
from web.dashboard.filters import ago, milliseconds, number, preview, words
from web.dashboard.view import Query, Section, View, back, show
from web.endpoint import json_response
from web.latency import latencies
from web.metrics import request_seconds

section = Section("workers")

# Two lists share the page.
LISTED = 20
SPANS = (("minute", timedelta(minutes=1)), ("hour", timedelta(hours=1)), ("day", timedelta(days=1)))
# What a job or a stage told when it failed, in a list; `GET /v1/errors` has the whole.
MOST_TOLD = 400
SCHEDULER = "scheduler"
# The front runs this job itself.
HERE = frozenset({"touches"})
STAGES: Mapping[Stage, str] = {
    Stage.EMBED: "so that it is found by meaning",
    Stage.ENTITIES: "finds what it names",
    Stage.DEDUP: "looks whether it was said before",
    Stage.PURGE: "takes out of every index what was purged",
}

Cursor = Annotated[int, Field(ge=0, lt=2**62)]


class WorkersQuery(Query):
    """Where the lists of errors and of dead letters go on."""

    before: Cursor | None = None
    dead_before: Cursor | None = None


class RetryForm(BaseModel):
    """Which stage's dead letters to try again; all without one."""

    stage: Stage | None = None


@dataclass(frozen=True, slots=True)
class Buried:
    """A memory, if it is still there, and what was given up of it."""

    seq: int
    memory: Memory | None
    letters: tuple[DeadLetter, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """How many memories were written in the last so long, and how many of those are digested."""

    span: str
    written: int
    digested: int


@dataclass(frozen=True, slots=True)
class Processes:
    """Who is at work: since when the server (seconds since the epoch), and how its encoder is."""

    server_since: float
    encoder: str
    workers: tuple[Worker, ...]
    scheduler: bool


class Listed(Protocol):
    """What a list is paged by."""

    @property
    def seq(self) -> int:
        """Return its row number."""


@section.page("/workers", WorkersQuery)
def state(view: View) -> str:
    """Show how the work behind the front fares."""
    with view.read() as db:
        jobs = _jobs(view, db)
        found = {
            "cells": _cells(db, jobs, view.now),
            "dead": work.dead(db),
            "written": _written(db, view.now),
        }
        buried = _buried(db, view.query.dead_before)
    errors = view.front.operations.errors(workspace=view.workspace_id, limit=LISTED + 1, before=view.query.before)
    return show(
        "workers.html",
        view,
        title="Workers",
        jobs=jobs,
        stages=STAGES,
        buried=buried[:LISTED],
        dead_url=_older(buried, "dead", "dead_before"),
        errors=[(seconds_text(error.at), error) for error in errors[:LISTED]],
        errors_url=_older(errors, "errors", "before"),
        latencies=latencies(request_seconds()),
        processes=_processes(view),
        version=VERSION,
        **found,
    )


@section.page("/workers/now")
def now(view: View) -> Response:
    """Return what changes while work goes on, in the words of the page."""
    with view.read() as db:
        jobs = _jobs(view, db)
        cells, pending = _cells(db, jobs, view.now), sum(work.pending(db).values())
    standings = {status.job.name: status.state for status in jobs}
    busy = pending > 0 or not {JobState.ASKED, JobState.RUNNING}.isdisjoint(standings.values())
    return json_response({"cells": cells, "standings": standings, "pending": pending, "busy": busy})


@section.action("/workers/retry", RetryForm)
def retry(view: View) -> Response:
    """Give dead letters a fresh start."""
    with view.database.write() as db:
        retried = work.retry(db, view.form.stage)
    return back(view, f"{number(retried)} piece{'' if retried == 1 else 's'} of work will be tried again.")


@section.action("/workers/jobs/<name>")
def run(view: View, name: str) -> Response:
    """Run a job now."""
    ask_for(view.front, view.workspace_id, name)
    told = "has run" if name in HERE else "is asked for; a worker runs it as soon as it can"
    return back(view, f"The job {name} {told}.", to=url_for("dashboard.workers_state", _anchor=f"job-{name}"))


def _jobs(view: View, db: Connection) -> list[JobStatus]:
    return job_statuses(db, scheduled_jobs(view.front.settings), view.now)


def _cells(db: Connection, jobs: Iterable[JobStatus], now: datetime) -> dict[str, str]:
    """Return everything on the page that changes by itself: texts by name."""
    pending, oldest = work.pending(db), work.oldest_by_stage(db)
    total = sum(pending.values())
    cells = {"pending": f"{number(total)} to do" if total else "everything is digested"}
    for stage in STAGES:
        cells[f"pending-{stage}"] = number(pending[stage])
        cells[f"oldest-{stage}"] = ago(oldest[stage], now) if stage in oldest else "–"
    for status in jobs:
        cells |= {f"{part}-{status.job.name}": text for part, text in _told(status, now).items()}
    return cells


def _told(status: JobStatus, now: datetime) -> dict[str, str]:
    last, standing = status.last, str(status.state)
    if status.state is JobState.RUNNING and last is not None and last.total:
        standing = f"running, {number(last.done)} of {number(last.total)}"
    told = {"standing": standing, "last": "", "did": "", "error": "", "next": f"next {_until(status.next_at, now)}"}
    if last is not None:
        took = "" if last.took_s is None else f", took {milliseconds(last.took_s)}"
        told["last"] = f"{ago(last.started_at, now)}{took}"
        told["did"] = _did(last)
        told["error"] = preview(last.error or "", MOST_TOLD)
    elif status.state is JobState.NEVER and status.job.elsewhere:
        # What it does by the clock leaves no run behind.
        told |= {"standing": "by itself", "next": ""}
    return told


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


def _written(db: Connection, now: datetime) -> list[Written]:
    return [Written(name, *work.digested_since(db, utc_text(now - length))) for name, length in SPANS]


def _buried(db: Connection, before: int | None) -> list[Buried]:
    letters: dict[int, list[DeadLetter]] = {}
    for letter in work.dead_letters(db, LISTED + 1, before):
        letters.setdefault(letter.memory_seq, []).append(letter)
    known = memories.by_seqs(db, letters)
    return [Buried(seq, known.get(seq), tuple(found)) for seq, found in letters.items()]


def _processes(view: View) -> Processes:
    front = view.front
    scheduler = Role(front.settings.paths.root, SCHEDULER)
    workers = [worker for worker in front.operations.workers() if is_alive(worker.owner)]
    started = view.now - timedelta(seconds=time.monotonic() - front.started)
    return Processes(started.timestamp(), front.encoder.state, tuple(workers), scheduler.is_held())


def _older(items: Sequence[Listed], anchor: str, cursor: str) -> str | None:
    if len(items) <= LISTED:
        return None
    values: dict[str, Any] = {**request.args.to_dict(), cursor: items[LISTED - 1].seq}
    return url_for("dashboard.workers_state", _anchor=anchor, **values)
