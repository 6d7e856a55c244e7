"""The clock: each tick only puts a message on the queue. One instance a home."""

import signal
import sys
from datetime import UTC, datetime
from types import FrameType

from apscheduler.schedulers.blocking import BlockingScheduler

from config.program import run_in_role, start_program
from config.settings import Settings
from pipeline.bootstrap.clockwork import Clockwork
from pipeline.bootstrap.parts import mask
from workers.queue import Queue


def main() -> int:
    """Tick until stopped."""
    return run_in_role("scheduler", start_program("workers.schedule", __doc__, mask), tick)


def tick(settings: Settings) -> int:
    """Look what is due at every tick, and put it on the queue, until a signal comes."""
    clockwork = Clockwork(settings)
    clock = build_clock(clockwork, Queue(settings))

    def stop(_signal: int, _frame: FrameType | None) -> None:
        clock.shutdown(wait=False)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    clock.start()
    clockwork.close()
    return 0


def build_clock(clockwork: Clockwork, queue: Queue) -> BlockingScheduler:
    """Schedule the tick; what came due while nobody ticked is made up for once, by what the stores say."""
    clock = BlockingScheduler(job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None})
    seen: set[str] = set()

    def send_due() -> None:
        for workspace_id in clockwork.settings.paths.workspace_ids():
            jobs, waits = clockwork.due(workspace_id)
            for name in jobs:
                queue.run_job(name, workspace_id)
            # The first time its indexes are looked at as well: they may have been lost while nothing ran.
            if waits or workspace_id not in seen:
                queue.sweep(workspace_id)
            seen.add(workspace_id)

    seconds = clockwork.settings.sweep_interval_s
    clock.add_job(send_due, "interval", id="tick", seconds=seconds, next_run_time=datetime.now(UTC))
    return clock


if __name__ == "__main__":
    sys.exit(main())
