"""What `huey_consumer` does before it consumes: our logging, signals and niceness in its process and its workers."""

import logging
import os
import signal
import sys

from config.process import stop_forks_with_this
from config.program import start_program

# Digestion takes what the front leaves: a person waits for an answer, nobody for an embedding.
NICENESS = 10
# What a worker process gets to release its claims when its consumer was killed.
ORPHAN_GRACE_S = 2


def prepare_consumer() -> None:
    """Make this process a worker of the home; options of ours stand after `--` on huey's command line."""
    from pipeline.bootstrap.parts import mask

    ours = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    start_program("huey_consumer … --", "Digest memories and run jobs.", mask, ours)
    # Huey's own handler would say everything twice, once without redaction.
    huey_log = logging.getLogger("huey")
    huey_log.handlers.clear()
    huey_log.setLevel(logging.NOTSET)
    os.nice(NICENESS)
    # SIGINT interrupts a task; SIGTERM, which asks the consumer to stop gracefully, is ignored by its processes.
    stop_forks_with_this(signal.SIGINT, ORPHAN_GRACE_S)
