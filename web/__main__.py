"""Run the web server under waitress."""

import gc
import logging
import os
import signal
import sys
from types import FrameType
from typing import Any

from config.process import EXIT_TAKEN, limit_heaps, raise_file_limit, run_in_role, start_program
from config.settings import Settings
from pipeline.bootstrap import mask
from pipeline.bootstrap.web import WebContainer
from web.app import MAX_BODY_BYTES, create_app
from web.connections import listen
from workers.queue import Notifier, WakeUp

HEAPS = 2

log = logging.getLogger(__name__)


def main() -> int:
    """Serve until stopped."""
    return run_in_role("web", start_program("python -m web", __doc__, mask), serve)


def serve(settings: Settings) -> int:
    """Answer requests until a signal comes; return EXIT_TAKEN at once when the address is another program's."""
    limit_heaps(HEAPS)
    if others := settings.paths.close():
        log.warning("other users can still reach %s", ", ".join(map(str, others)))
    # Its queue is that of the environment's home.
    from workers.tasks import wake_workers

    notifier = Notifier(
        wake_workers,
        lambda problem: container.operations.record_error("notifier", problem),
    )
    container = WebContainer(settings, lambda workspace_id, stage: notifier.notify(WakeUp(workspace_id, stage or "")))
    try:
        server = start_listening(container)
    except OSError as error:
        print(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}", file=sys.stderr)  # noqa: T201 - ditto
        return EXIT_TAKEN

    def stop(_signal: int, _frame: FrameType | None) -> None:
        container.stopping.set()
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    container.warm_up()
    # What start-up made lives as long as the process: the collector need not walk it during requests.
    gc.freeze()
    try:
        server.run()
    finally:
        server.close()
        notifier.close()
        container.close()
    return 0


def start_listening(container: WebContainer) -> Any:
    """Return a server of the app that listens; raise OSError when it cannot."""
    settings = container.settings
    return listen(
        create_app(container),
        settings.host,
        settings.port,
        threads=settings.web_threads,
        files=raise_file_limit(),
        max_body_bytes=2 * MAX_BODY_BYTES,
    )


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # Threads of native libraries may still run; everything that must be kept is kept by now.
    os._exit(code)
