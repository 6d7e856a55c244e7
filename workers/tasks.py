"""The tasks: load, call, acknowledge; nothing else. What they do is in the pipeline."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from config.settings import load_settings
from pipeline.bootstrap.back import Back
from pipeline.digest.digest import digest as digest_stage
from pipeline.digest.stages import FOLLOWING
from pipeline.errors import NotFound
from pipeline.records import Stage
from workers.queue import Queue

log = logging.getLogger(__name__)

# A worker turns to other workspaces after this long; what is left is asked for again.
TURN_S = 10.0
# A job's turn; one that steps back for written memories comes again after a while.
JOB_TURN_S = 60.0
JOB_PAUSE_S = 5
# A job that failed is tried again, later each time, before its next appointment.
JOB_TRIES = 3
JOB_BACKOFF_S = 30
# These keep recall whole and fast: they wait for nobody.
URGENT = frozenset({"sweep", "segment", "vectors"})


@cache
def back() -> Back:
    """Return this process's services; made after the fork, so that no two processes share a connection."""
    return Back(load_settings(), lambda workspace_id, stage: queue().digest(workspace_id, stage))


@cache
def queue() -> Queue:
    """Return this process's queue."""
    return Queue(load_settings())


def digest(workspace_id: str, stage: str) -> None:
    """Work off one stage of a workspace for a turn."""
    services = back()
    with _logged(f"digest.{stage}", workspace_id):
        report = digest_stage(
            services.databases.get(workspace_id),
            Stage(stage),
            services.stages(workspace_id)[Stage(stage)],
            services.owner,
            services.policy,
            lambda message: services.operations.record_error(f"digest.{stage}", message, workspace=workspace_id),
            until=time.monotonic() + TURN_S,
        )
        if report.more:
            queue().digest(workspace_id, stage)
        elif report.retry_in_s is not None:
            queue().digest.schedule((workspace_id, stage), delay=report.retry_in_s)
        following = FOLLOWING.get(Stage(stage))
        if report.claimed and following is not None and following in services.due_stages(workspace_id):
            queue().digest(workspace_id, following)
        if report.claimed and not report.more:
            for job in services.needed_jobs(workspace_id):
                queue().run_job(job, workspace_id)


def run_job(name: str, workspace_id: str, *, tries: int = 1, again: bool = False) -> None:
    """Run one job on a workspace for a turn if it is due; one that goes on or is tried again comes in any case."""
    services = back()
    with _logged(f"job.{name}", workspace_id):
        # Ticks and turns ask for a job until somebody begins it: later messages must find it done, not do it again.
        if not again and not services.is_due(workspace_id, name):
            return
        end = time.monotonic() + JOB_TURN_S
        outcome = services.run_job(
            workspace_id,
            name,
            lambda: time.monotonic() >= end or (name not in URGENT and services.foreground_waits(workspace_id)),
        )
        if outcome is None:
            return
        if outcome.report.more:
            queue().run_job.schedule((name, workspace_id), {"again": True}, delay=JOB_PAUSE_S)
        elif outcome.error is not None and tries < JOB_TRIES:
            delay = JOB_BACKOFF_S * 2 ** (tries - 1)
            queue().run_job.schedule((name, workspace_id), {"tries": tries + 1, "again": True}, delay=delay)


def sweep(workspace_id: str) -> None:
    """Ring for everything in a workspace that waits and that nobody works on."""
    services = back()
    with _logged("sweep", workspace_id):
        # What needs no model goes first: a lost message must not wait for one.
        for job in services.asked_jobs(workspace_id):
            queue().run_job(job, workspace_id)
        services.ring_due(workspace_id)
        services.heal(workspace_id)
        for job in services.needed_jobs(workspace_id):
            queue().run_job(job, workspace_id)


@contextmanager
def _logged(component: str, workspace_id: str) -> Iterator[None]:
    services = back()
    try:
        services.operations.report_worker(services.owner)
        yield
    except NotFound:
        # The workspace was deleted after the bell rang: there is nothing left to do.
        log.info("%s: workspace %s is gone", component, workspace_id)
    except Exception as error:
        services.operations.record_error(component, f"{type(error).__name__}: {error}", workspace=workspace_id)
        log.exception("%s failed in workspace %s", component, workspace_id)
