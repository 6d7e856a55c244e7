"""The process of the web server: start, serve and stop."""

import gc
import logging
import signal
import socket
import sys
from functools import partial
from types import FrameType
from typing import Any

from flask import Flask

from config.operating_system import raise_file_limit
from config.process import EXIT_IN_USE, limit_heaps, run_in_role, start_program
from config.settings import Settings
from config.toml_files import SettingsError
from pipeline.bootstrap import mask
from pipeline.bootstrap.web import WebContainer
from web.hooks.spool.delivery import SpoolDelivery
from web.http.connections import Wsgi, listen
from web.http.lazy_app import MAX_BODY_BYTES, LazyApp
from web.http.listener import ListenerRefused, check_listener
from web.http.local_connection import bind_socket
from web.http.metrics import Metrics
from web.http.problems import RequestIdFilter
from web.stack.claim import explain_port
from workers.notifier import Notifier, WakeUp

HEAPS = 2

log = logging.getLogger(__name__)


def run(description: str | None) -> int:
    """Serve until stopped."""
    return run_in_role("web", start_program("python -m reverie.run web", description, mask), serve)


def serve(settings: Settings) -> int:
    """Answer requests until a signal arrives; return EXIT_IN_USE if another program uses the address."""
    _prepare_process(settings)
    # Now, before the rest of the start: clients take a server without a socket for one that cannot have it.
    local = bind_socket(str(settings.paths.root))
    notifier = Notifier(
        _wake_workers,
        lambda problem: container.operations.record_error("notifier", problem),
    )
    container = WebContainer(settings, notifier.notify)
    app = LazyApp(container, partial(_create_hooks, container), partial(_create_whole, container))
    try:
        check_listener(settings, container.people)
        server = start_listening(app, settings, local)
    except (ListenerRefused, OSError) as error:
        reason = explain_port(settings, error) if isinstance(error, OSError) else error
        print(reason, file=sys.stderr)  # noqa: T201 - this is the command's answer
        return EXIT_IN_USE

    _stop_on_signals(container)

    def load_rest() -> None:
        app.load_rest()
        gc.freeze()

    delivery = SpoolDelivery(container, app)
    container.warm_up(app.load_hooks, afterwards=load_rest)
    delivery.start()
    # Objects of the start live as long as the process: keep the garbage collector from scanning them in requests.
    gc.freeze()
    gc.enable()
    try:
        server.run()
    finally:
        server.close()
        delivery.close()
        notifier.close()
        container.close()
    return 0


def _stop_on_signals(container: WebContainer) -> None:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        container.stopping.set()
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _prepare_process(settings: Settings) -> None:
    limit_heaps(HEAPS)
    for handler in logging.getLogger().handlers:
        handler.addFilter(RequestIdFilter())
    if others := settings.paths.close():
        log.warning("other users can still reach %s", ", ".join(map(str, others)))


def start_listening(app: Wsgi, settings: Settings, local: socket.socket | None) -> Any:
    """Return a server of the app that listens at the address and the socket; raise OSError when it cannot."""
    return listen(
        app,
        settings.host,
        settings.port,
        threads=settings.web_threads,
        files=raise_file_limit(),
        max_body_bytes=2 * MAX_BODY_BYTES,
        proxy=settings.behind_proxy or None,
        local=local,
    )


def _create_hooks(container: WebContainer, metrics: Metrics) -> Flask:
    # Takes a quarter of the time until the server listens.
    from web.http.hook_app import create_hook_app

    return create_hook_app(container, metrics)


def _create_whole(container: WebContainer, metrics: Metrics) -> Flask:
    # Takes as long to import as everything else.
    from web.http.app import create_app

    return create_app(container, metrics)


def _wake_workers(message: WakeUp) -> None:
    # Imported for the first message. Its queue belongs to the data directory of the environment.
    try:
        from workers.tasks import wake_workers
    except SystemExit as error:
        # The worker program exits if the settings are invalid; here they may still be corrected.
        raise SettingsError(str(error)) from error
    wake_workers(message)
