"""The tasks of the workers: parse the message, call one use case, and queue the remaining work.

huey_consumer workers.tasks.huey
"""

import logging
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING

from config.process import trim_heap
from config.settings import load_settings
from config.toml_files import SettingsError
from pipeline.kernel.errors import EncoderPending, NotFound
from pipeline.kernel.records import Stage
from workers.notifier import WakeUp, WakeUps
from workers.queue import QUEUE_NAME, WorkerQueue

if TYPE_CHECKING:
    from pipeline.bootstrap.worker import WorkerContainer

log = logging.getLogger(__name__)

try:
    huey = WorkerQueue(load_settings())
    huey.purges = purges = WorkerQueue(load_settings(), f"{QUEUE_NAME}-purges")
except SettingsError as error:
    sys.exit(str(error))

# Priority: jobs that keep recall complete and the screening of embedded memories, then other digestion, then
# maintenance. Screening uses the vectors of short memories again, which are kept for a while only (`DocumentVectors`).
BEFORE_DIGESTION = 3

# Components whose errors are solved when a task succeeds: a sweep opens the store and repairs the indexes of recall.
SHOWN_SOUND_BY = {
    "sweep": ("scheduler", "warm-up", "vectors", "recall.lexical", "recall.dense"),
    "job.health": ("maintenance",),
    "job.snapshot": ("snapshot",),
}

# Wake-ups queued by running tasks; the first task that ends sends all.
_woken = WakeUps()

_making = threading.Lock()


def worker() -> "WorkerContainer":
    """Return the container of this process, created after the fork so that processes share no connection."""
    with _making:
        return _make_worker()


@cache
def _make_worker() -> "WorkerContainer":
    # Imported here because processes that only send messages do not need it.
    from pipeline.bootstrap.worker import WorkerContainer

    container = WorkerContainer(load_settings(), _woken.collect)
    with suppress(EncoderPending):
        container.encoders.prepare_reranker(partial(container.operations.record_error, "reranker"))
    return container


@huey.task(name="digest", priority=2)  # type: ignore[untyped-decorator]  # huey ships no types
def digest(workspace_id: str, stage: str) -> None:
    """Process one stage of a workspace for a turn."""
    from pipeline.features.maintenance import usecases as maintenance

    services = worker()
    with _report_failures(f"digest.{stage}", workspace_id):
        # After many writes, build the lexical segment before the vectors, so that word search works early.
        _send_jobs(workspace_id, maintenance.list_overdue_indexes(services.context(workspace_id)))
        runner = services.stages(workspace_id)[Stage(stage)]
        # Two threads may encode in parallel. Each message sends at most one more, so their number does not grow.
        again = partial(wake_workers, WakeUp(workspace_id, stage))
        turn = maintenance.digest_stage(
            services.context(workspace_id), Stage(stage), runner, services.owner, services.policy, again
        )
        if turn.more:
            again()
        elif turn.retry_in_s is not None:
            digest.schedule((workspace_id, stage), delay=turn.retry_in_s)
        _send_jobs(workspace_id, turn.jobs)


@purges.task(name="purge")  # type: ignore[untyped-decorator]
def purge(workspace_id: str) -> None:
    """Process the purges of a workspace for a turn; the scheduler finds unfinished ones again."""
    digest.call_local(workspace_id, Stage.PURGE)


@huey.task(name="sweep", priority=1)  # type: ignore[untyped-decorator]
def sweep(workspace_id: str) -> None:
    """Check a workspace: wake workers for pending work, and repair its indexes."""
    from pipeline.features.maintenance import usecases as maintenance
    from pipeline.features.personal.usecases import settle_stores

    services = worker()
    with _report_failures("sweep", workspace_id):
        context = services.context(workspace_id)
        # Send work without models first, so that a lost message does not wait for a model.
        _send_jobs(workspace_id, maintenance.reap_processes(context, services.operations))
        settle_stores(services.workspace(workspace_id))
        _woken.send(wake_workers)
        _send_jobs(workspace_id, maintenance.repair_indexes(context))


@huey.task(name="run_job", priority=0)  # type: ignore[untyped-decorator]
def run_job(name: str, workspace_id: str, *, tries: int = 1, again: bool = False) -> None:
    """Run one job on a workspace for a turn."""
    from pipeline.features.maintenance import usecases as maintenance

    services = worker()
    with _report_failures(f"job.{name}", workspace_id):
        following = maintenance.take_job_turn(
            services.context(workspace_id), name, services.owner, tries=tries, again=again
        )
        if following is not None:
            options = {"tries": following.tries, "again": following.again}
            run_job.schedule((name, workspace_id), options, delay=following.in_s)
        elif name != "predict":
            _send_jobs(workspace_id, maintenance.list_outdated_answers(services.context(workspace_id)))
    # Some jobs load everything at once, and the process may be idle afterwards.
    trim_heap()


@huey.task(name="sync_home", priority=0)  # type: ignore[untyped-decorator]
def sync_home() -> None:
    """Exchange operations with other machines."""
    from pipeline.features.sync.usecases import SyncService
    from pipeline.kernel.errors import ReverieError

    services = worker()
    began = time.time()
    sync = SyncService(services.stores, services.workspace_settings)
    try:
        failed = {name: error for name, error in sync.now().items() if isinstance(error, ReverieError)}
        for name, error in failed.items():
            services.operations.record_error(f"sync.{name}", str(error))
        in_sync = [f"sync.{remote.name}" for remote in sync.status() if remote.name not in failed]
        services.operations.mark_repaired(in_sync, workspace=None, before=began)
    except Exception as error:
        services.operations.record_error("sync", f"{type(error).__name__}: {error}")
        log.exception("sync failed")
    finally:
        _woken.send(wake_workers)


@huey.task(name="import_sessions", priority=0)  # type: ignore[untyped-decorator]
def import_sessions(agents: list[str]) -> None:
    """Import what agents without hooks have written since the last import."""
    from pipeline.kernel.errors import Conflict
    from pipeline.sessions import import_usecases as session_import

    services = worker()
    options = session_import.ImportOptions(agents=tuple(agents), is_update=True)
    try:
        summary = session_import.import_sessions(
            services.settings, services.stores.transcripts, services.workspace, options
        )
        for problem in (each for agent in summary.agents.values() for each in agent.set_aside):
            services.operations.record_error("sessions", problem)
    except Conflict:
        log.info("an import is running; it also reads the sessions of %s", ", ".join(agents))
    except Exception as error:
        services.operations.record_error("sessions", f"{type(error).__name__}: {error}")
        log.exception("the import of sessions failed")
    finally:
        _woken.send(wake_workers)
    trim_heap()


@huey.on_shutdown()  # type: ignore[untyped-decorator]
def close_stores() -> None:
    """Close the stores when a worker process exits, so that no log is left in front of their files."""
    if _make_worker.cache_info().currsize:
        worker().close()


def wake_workers(message: WakeUp) -> None:
    """Notify the workers that a workspace has work."""
    if message.stage == Stage.PURGE:
        purge(message.workspace_id)
    elif message.stage:
        priority = BEFORE_DIGESTION if message.stage == Stage.SCREEN else None
        digest(message.workspace_id, message.stage, priority=priority)
    else:
        sweep(message.workspace_id)


def _send_jobs(workspace_id: str, names: Iterable[str]) -> None:
    from pipeline.features.maintenance.usecases import URGENT

    for name in names:
        run_job(name, workspace_id, priority=BEFORE_DIGESTION if name in URGENT else None)


@contextmanager
def _report_failures(component: str, workspace_id: str) -> Iterator[None]:
    services = worker()
    began = time.time()
    try:
        services.operations.report_worker(services.process)
        yield
        shown = (component, *SHOWN_SOUND_BY.get(component, ()))
        services.operations.mark_repaired(shown, workspace=workspace_id, before=began)
    except NotFound:
        # The workspace was deleted after the message was sent: there is nothing left to do.
        log.info("%s: workspace %s is gone", component, workspace_id)
    except Exception as error:
        services.operations.record_error(component, f"{type(error).__name__}: {error}", workspace=workspace_id)
        log.exception("%s failed in workspace %s", component, workspace_id)
    finally:
        _woken.send(wake_workers)
