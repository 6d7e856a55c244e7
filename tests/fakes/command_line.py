"""The command line against a real web server with fake models, in one process."""

import json
from contextlib import AbstractContextManager
from typing import Any

from click.testing import CliRunner, Result

from pipeline.bootstrap.web import WebContainer
from tests.support.sockets import serving
from web.cli import cli
from web.http.app import create_app
from web.http.lazy_app import MAX_BODY_BYTES


def serve_app(container: WebContainer) -> AbstractContextManager[int]:
    """Serve a web server on a free port and at its socket, and return the port."""
    root = container.settings.paths.root
    return serving(create_app(container), threads=4, files=1024, max_body_bytes=2 * MAX_BODY_BYTES, home=root)


def run(*arguments: str, code: int = 0, stdin: str | bytes | None = None) -> Result:
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
