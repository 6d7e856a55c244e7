"""The scheduler: each tick only puts messages on the queue. One instance per data directory.

If machines share a store, each may run a scheduler: one leads, and another takes over when it stops.
"""

import signal
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import FrameType

from apscheduler.events import EVENT_SCHEDULER_STARTED
from apscheduler.schedulers.blocking import BlockingScheduler

from config.process import run_in_role, start_program
from config.settings import Settings
from pipeline.bootstrap import mask
from pipeline.bootstrap.scheduler import SchedulerContainer
from pipeline.features.sync.clock import SEND_S
from pipeline.kernel.leadership import Leadership
from pipeline.sessions.watch import WATCH_S, SessionWatch
from workers import tasks

SWEEP = "sweep"
SYNC = "sync"
SESSIONS = "sessions of agents"
LEAD = "lead"


def main() -> int:
    """Run the scheduler until it is stopped."""
    return run_in_role("scheduler", start_program("python -m reverie.run workers.schedule", __doc__, mask), tick)


def tick(settings: Settings) -> int:
    """Send due work at each trigger, until a signal arrives."""
    container = SchedulerContainer(settings)
    clock = build_clock(container)
    asked = threading.Event()

    def end() -> None:
        if asked.is_set() and clock.running:
            clock.shutdown(wait=False)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        asked.set()
        end()

    # A signal that arrives before the clock runs takes effect when it starts.
    clock.add_listener(lambda _event: end(), EVENT_SCHEDULER_STARTED)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    clock.start()
    container.close()
    return 0


def build_clock(container: SchedulerContainer) -> BlockingScheduler:
    """Schedule every job by its trigger, and the sweep, which once also sends work that was due before the start."""
    clock = BlockingScheduler(
        timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
    )
    jobs, finder = container.jobs, container.due
    seen: set[str] = set()

    def send_due(name: str) -> None:
        for due in finder.find([name]):
            _send(due.workspace_id, due.jobs)

    def sweep() -> None:
        nonlocal seen
        before, seen = seen, set()
        for due in finder.find(list(jobs)):
            # The first sweep finds work that became due while no scheduler ran, and lost indexes.
            first = due.workspace_id not in before
            seen.add(due.workspace_id)
            _send(due.workspace_id, due.jobs if first else due.unfinished)
            if (first and not due.is_known) or due.work_waits:
                tasks.sweep(due.workspace_id)

    for name, job in jobs.items():
        clock.add_job(_if_leading(container, send_due), job.schedule.trigger(), [name], id=name)

    def send_sync() -> None:
        if container.sync_clock.is_due():
            tasks.sync_home()

    # The files of agents are on this machine, so another machine's scheduler cannot look at them.
    clock.add_job(_send_changed_sessions, "interval", [container.session_watch], id=SESSIONS, seconds=WATCH_S)
    now, sweep_s = datetime.now(UTC), container.settings.sweep_interval_s
    clock.add_job(_if_leading(container, send_sync), "interval", id=SYNC, seconds=SEND_S, next_run_time=now)
    clock.add_job(_if_leading(container, sweep), "interval", id=SWEEP, seconds=sweep_s, next_run_time=now)
    if container.leadership.interval_s is not None:
        _ask_to_lead(clock, container.leadership)
    return clock


def _send_changed_sessions(watch: SessionWatch) -> None:
    if agents := watch.find_changed():
        tasks.import_sessions(agents)


def _if_leading(container: SchedulerContainer, send: Callable[..., None]) -> Callable[..., None]:
    def send_if_leading(*names: str) -> None:
        if container.leadership.is_held:
            send(*names)

    return send_if_leading


def _ask_to_lead(clock: BlockingScheduler, leadership: Leadership) -> None:
    def ask() -> None:
        if leadership.ask():
            # Send the work that became due since the last leader stopped.
            clock.modify_job(SWEEP, next_run_time=datetime.now(UTC))

    clock.add_job(ask, "interval", id=LEAD, seconds=leadership.interval_s, next_run_time=datetime.now(UTC))


def _send(workspace_id: str, names: list[str]) -> None:
    for name in names:
        tasks.run_job(name, workspace_id)


if __name__ == "__main__":
    sys.exit(main())
