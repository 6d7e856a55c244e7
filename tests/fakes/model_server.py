"""A small OpenAI-compatible endpoint that answers, hangs, lies, or returns junk, and keeps what it was sent."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pipeline.features.model.extractor import ModelEndpoint


class ModelServer(ThreadingHTTPServer):
    """Serves on a free port; `behave` is what it does with each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behave: Callable[[_Handler], None] = says("fine")
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.closing = threading.Event()

    def endpoint(self, **fields: Any) -> ModelEndpoint:
        return ModelEndpoint(**{"url": f"http://127.0.0.1:{self.server_port}/v1", "timeout_s": 5.0, **fields})

    @property
    def prompts(self) -> str:
        """Everything that was said to the model."""
        return json.dumps(self.requests, ensure_ascii=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        read = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(json.loads(read))
        self.server.headers.append(dict(self.headers))
        self.server.paths.append(self.path)
        self.server.behave(self)

    def do_GET(self) -> None:
        """Note that somebody followed a redirect."""
        self.server.paths.append(self.path)
        self.answer(200, b"{}")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
        """Say nothing."""

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


Behaviour = Callable[[_Handler], None]


def says(content: Any, usage: Any = None) -> Behaviour:
    """Answer with a text as the format asks for, or with whatever stands in its place."""
    body = {"choices": [{"message": {"role": "assistant", "content": content}}]}
    return sends(json.dumps(body if usage is None else body | {"usage": usage}).encode())


def sends(body: bytes, status: int = 200, **headers: str) -> Behaviour:
    return lambda handler: handler.answer(status, body, **headers)


def hangs(handler: _Handler) -> None:
    """Answer never."""
    handler.server.closing.wait()


def drips(handler: _Handler) -> None:
    """Answer one byte at a time, for ever."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.closing.wait(0.01):
        handler.wfile.write(b" ")


def hangs_up(handler: _Handler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


def breaks_off(handler: _Handler) -> None:
    """Promise more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices":')
    handler.close_connection = True


@contextlib.contextmanager
def model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
