"""The clock: each tick only puts a message on the queue. One instance a home."""

import argparse
import signal
import sys
from collections.abc import Callable
from types import FrameType

from apscheduler.schedulers.blocking import BlockingScheduler

from config.logging import configure_logging
from config.process import EXIT_TAKEN, Role, RoleTaken, add_parent_option, stop_with_parent
from config.settings import Settings, load_settings
from pipeline.bootstrap import mask
from workers.queue import Queue


def main() -> int:
    """Tick until stopped."""
    parser = argparse.ArgumentParser(prog="python -m workers.schedule", description=__doc__)
    add_parent_option(parser)
    parent = parser.parse_args().stop_with_parent
    if parent is not None:
        stop_with_parent(parent)
    settings = load_settings()
    configure_logging(settings.log_level, mask)
    settings.paths.ensure()
    role = Role(settings.paths.root, "scheduler")
    try:
        role.take()
    except RoleTaken as error:
        print(error, file=sys.stderr)  # noqa: T201 - this is the command's answer
        return EXIT_TAKEN
    clock = build_clock(settings, Queue(settings))

    def stop(_signal: int, _frame: FrameType | None) -> None:
        clock.shutdown(wait=False)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    clock.start()
    role.release()
    return 0


def build_clock(settings: Settings, queue: Queue) -> BlockingScheduler:
    """Schedule every job of every workspace; missed ticks are made up for once."""
    clock = BlockingScheduler(job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None})

    def everywhere(send: Callable[[str], object]) -> Callable[[], None]:
        def tick() -> None:
            for workspace_id in settings.paths.workspace_ids():
                send(workspace_id)

        return tick

    clock.add_job(everywhere(queue.sweep), "interval", id="sweep", seconds=settings.sweep_interval_s)
    for name, seconds in (("segment", settings.segment_interval_s), ("vectors", settings.vectors_interval_s)):
        send = everywhere(lambda workspace_id, name=name: queue.run_job(name, workspace_id, tidy=True))  # type: ignore[misc]
        clock.add_job(send, "interval", id=name, seconds=seconds)
    return clock


if __name__ == "__main__":
    sys.exit(main())
