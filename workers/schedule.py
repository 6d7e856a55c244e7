"""The clock: each tick only puts a message on the queue. One instance a home."""

import signal
import sys
from collections.abc import Callable
from types import FrameType

from apscheduler.schedulers.blocking import BlockingScheduler

from config.program import run_in_role, start_program
from config.settings import Settings
from pipeline.bootstrap import mask
from workers.queue import Queue


def main() -> int:
    """Tick until stopped."""
    return run_in_role("scheduler", start_program("workers.schedule", __doc__, mask), tick)


def tick(settings: Settings) -> int:
    """Put a message on the queue at every tick until a signal comes."""
    clock = build_clock(settings, Queue(settings))

    def stop(_signal: int, _frame: FrameType | None) -> None:
        clock.shutdown(wait=False)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    clock.start()
    return 0


def build_clock(settings: Settings, queue: Queue) -> BlockingScheduler:
    """Schedule every job of every workspace; missed ticks are made up for once."""
    clock = BlockingScheduler(job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None})

    def everywhere(send: Callable[[str], object]) -> Callable[[], None]:
        def send_to_all() -> None:
            for workspace_id in settings.paths.workspace_ids():
                send(workspace_id)

        return send_to_all

    clock.add_job(everywhere(queue.sweep), "interval", id="sweep", seconds=settings.sweep_interval_s)
    for name, seconds in (("segment", settings.segment_interval_s), ("vectors", settings.vectors_interval_s)):
        send = everywhere(lambda workspace_id, name=name: queue.run_job(name, workspace_id, tidy=True))  # type: ignore[misc]
        clock.add_job(send, "interval", id=name, seconds=seconds)
    return clock


if __name__ == "__main__":
    sys.exit(main())
