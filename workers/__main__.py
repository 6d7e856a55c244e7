"""Run the worker: a Huey consumer whose processes digest memories."""

import argparse

from huey.consumer import Consumer

from config.logging import configure_logging
from config.process import stop_with_parent
from config.settings import Settings, load_settings
from pipeline.bootstrap import mask
from workers.queue import Queue

# An idle worker looks for messages this often (seconds); a doorbell waits no longer.
POLL_S = 0.05
LONGEST_POLL_S = 0.4
GRACE_S = 8


def main() -> None:
    """Consume messages until stopped."""
    parser = argparse.ArgumentParser(prog="python -m workers", description=__doc__)
    parser.add_argument("--stop-with-parent", action="store_true", help="end when the starting process ends")
    supervised = parser.parse_args().stop_with_parent
    settings = load_settings()
    configure_logging(settings.log_level, mask)
    if supervised:
        stop_with_parent()
    consumer(settings).run()


def consumer(settings: Settings) -> Consumer:
    """Build the consumer: one process a worker, each ending when the consumer does, however that ends."""
    huey = Queue(settings).huey
    huey.on_startup()(stop_with_parent)
    return huey.create_consumer(
        workers=settings.worker_processes,
        worker_type="process",
        periodic=False,
        initial_delay=POLL_S,
        max_delay=LONGEST_POLL_S,
        health_check_interval=1,
        graceful_signal="TERM",
        shutdown_timeout=GRACE_S,
    )


if __name__ == "__main__":
    main()
