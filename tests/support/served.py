"""A web server with fake models, served over HTTP by a thread of the test."""

import contextlib
import threading
from collections.abc import Iterator

from flask import Flask
from werkzeug.serving import make_server

from config.settings import Settings
from tests.fakes.in_process import open_web
from tests.support.sockets import serving
from web.http.app import create_app
from web.http.lazy_app import MAX_BODY_BYTES


@contextlib.contextmanager
def serve_home(settings: Settings) -> Iterator[int]:
    """Serve the settings' home on a free port and at its socket during a block; yields the port."""
    container = open_web(settings)
    try:
        app, limit, root = create_app(container), 2 * MAX_BODY_BYTES, settings.paths.root
        with serving(app, threads=4, files=1024, max_body_bytes=limit, home=root) as port:
            yield port
            # Streams that are still open would delay the end.
            container.stopping.set()
    finally:
        container.close()


@contextlib.contextmanager
def serve_app(app: Flask) -> Iterator[int]:
    """Serve an app on a free port during a block; yields the port."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    # Its end is noticed at once.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
