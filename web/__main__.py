"""Run the web front under waitress."""

import argparse
import gc
import os
import signal
import sys
from types import FrameType

import waitress

from config.logging import configure_logging
from config.process import Role, RoleTaken, stop_with_parent
from config.settings import load_settings
from pipeline.bootstrap import Front, mask
from pipeline.records import Stage
from web import MAX_BODY_BYTES, create_app
from workers.queue import Doorbell, Queue, Ring, ring


def main() -> int:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(prog="python -m web", description=__doc__)
    parser.add_argument("--stop-with-parent", action="store_true", help="end when the starting process ends")
    supervised = parser.parse_args().stop_with_parent
    settings = load_settings()
    configure_logging(settings.log_level, mask)
    settings.paths.ensure()
    role = Role(settings.paths.root, "web")
    try:
        role.take()
    except RoleTaken as error:
        print(error, file=sys.stderr)  # noqa: T201 - this is the command's answer
        return 1
    if supervised:
        stop_with_parent()
    queue = Queue(settings)
    doorbell: list[Doorbell] = []

    def ring_later(workspace_id: str, stage: Stage | None) -> None:
        doorbell[0].ring(Ring(workspace_id, stage or ""))

    front = Front(settings, ring_later)
    doorbell.append(
        Doorbell(lambda what: ring(queue, what), lambda message: front.operations.record_error("doorbell", message))
    )
    server = waitress.create_server(
        create_app(front),
        host=settings.host,
        port=settings.port,
        threads=settings.web_threads,
        ident=None,
        max_request_body_size=2 * MAX_BODY_BYTES,
        clear_untrusted_proxy_headers=True,
    )

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    front.encoder.load_in_background()
    # What start-up made lives as long as the process: the collector need not walk it during requests.
    gc.freeze()
    try:
        server.run()
    finally:
        server.close()
        doorbell[0].close()
        front.close()
        role.release()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # Threads of native libraries may still run; everything that must be kept is kept by now.
    os._exit(code)
