"""A web server with fake models, served over HTTP by a thread of the test."""

import contextlib
import threading
from collections.abc import Iterator

from werkzeug.serving import make_server

from config.settings import Settings
from tests.fakes.in_process import open_web
from web.app import create_app


@contextlib.contextmanager
def serve_home(settings: Settings) -> Iterator[int]:
    """Serve the settings' home on a free port during a block; yields the port."""
    container = open_web(settings)
    server = make_server("127.0.0.1", 0, create_app(container), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        container.close()
