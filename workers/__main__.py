"""Run the worker: a Huey consumer whose processes digest memories."""

import os
import signal

from huey.consumer import Consumer

from config.process import stop_forks_with_this
from config.program import start_program
from config.settings import Settings
from pipeline.bootstrap.parts import mask
from workers.queue import Queue

# An idle worker looks for messages this often (seconds); a wake-up message waits no longer.
POLL_S = 0.05
LONGEST_POLL_S = 0.4
GRACE_S = 8
# Digestion takes what the front leaves: a person waits for an answer, nobody for an embedding.
NICENESS = 10
# What a worker process gets to give its claims back when its consumer was killed.
ORPHAN_GRACE_S = 2


def main() -> None:
    """Consume messages until stopped."""
    settings = start_program("workers", __doc__, mask)
    os.nice(NICENESS)
    # SIGINT interrupts a task; SIGTERM, which asks the consumer to stop gracefully, is ignored by its processes.
    stop_forks_with_this(signal.SIGINT, ORPHAN_GRACE_S)
    consumer(settings).run()


def consumer(settings: Settings) -> Consumer:
    """Build the consumer: one process a worker."""
    return Queue(settings).huey.create_consumer(
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
