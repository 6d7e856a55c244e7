"""The command line against a real web server with fake models, in one process."""

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

from click.testing import CliRunner, Result
from werkzeug.serving import WSGIRequestHandler, make_server

from pipeline.bootstrap.web import WebContainer
from web.app import create_app
from web.cli import cli


class _Quiet(WSGIRequestHandler):
    """Log nothing: what a command prints is looked at."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's signature
        """Say nothing."""


@contextlib.contextmanager
def serve_app(container: WebContainer) -> Iterator[int]:
    """Serve a web server on a free port, and return the port."""
    server = make_server("127.0.0.1", 0, create_app(container), threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
    """Run a command and hold it to an exit code."""
    result = CliRunner().invoke(cli, arguments, input=stdin)
    assert result.exit_code == code, result.output + repr(result.exception)
    assert "\x1b" not in result.output
    return result


def run_json(*arguments: str, code: int = 0) -> Any:
    """Run a command and return its answer."""
    return json.loads(run("--json", *arguments, code=code).stdout)


def remember(text: str, *options: str) -> str:
    """Store a memory and return its id."""
    return str(run_json("remember", text, *options)["id"])
