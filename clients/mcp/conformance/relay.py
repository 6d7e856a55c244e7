"""Relay requests of the MCP conformance suite to Reverie.

The suite tests servers by URL, sends no token, and expects tools, resources and prompts with fixed names. The relay
adds the token, or speaks to `reverie mcp` over stdio, and replaces the names that Reverie has an equivalent of.
"""

import http.client
import json
import queue
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

SESSION = "Mcp-Session-Id"
DEADLINE_S = 60.0
CHUNK = 1 << 16
# Headers of one connection.
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "te", "trailer", "upgrade"}
NO_MEMORY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "test_simple_text": ("overview", {}),
    "test_error_handling": ("get", {"id": NO_MEMORY}),
}
PROMPTS = {"test_simple_prompt": "review"}


class Names:
    """The names that the suite uses, and those of Reverie. `memory_id` is a memory that contains the number 123."""

    def __init__(self, memory_id: str) -> None:
        self._uris = {
            "test://static-text": "reverie://brief",
            "test://watched-resource": "reverie://brief",
            "test://template/123/data": f"reverie://memory/{memory_id}",
        }

    def replace(self, body: bytes) -> bytes:
        """Return a message with the names of Reverie; a body that is no message is returned as it is."""
        try:
            message = json.loads(body)
        except ValueError:
            return body
        params = message.get("params") if isinstance(message, dict) else None
        if not isinstance(params, dict):
            return body
        if message.get("method") == "tools/call" and params.get("name") in TOOLS:
            params["name"], params["arguments"] = TOOLS[params["name"]]
        elif message.get("method") == "prompts/get":
            params["name"] = PROMPTS.get(params.get("name"), params.get("name"))
        elif str(message.get("method")).startswith("resources/") and params.get("uri") in self._uris:
            params["uri"] = self._uris[params["uri"]]
        else:
            return body
        return json.dumps(message).encode()


class Relay(BaseHTTPRequestHandler):
    """A handler that reads a request and has a subclass answer it."""

    protocol_version = "HTTP/1.1"
    names: Names

    def do_POST(self) -> None:
        """Relay a message."""
        self.relay(self.names.replace(self.rfile.read(int(self.headers.get("Content-Length", 0)))))

    def do_GET(self) -> None:
        """Relay a request for a stream."""
        self.relay(b"")

    def do_DELETE(self) -> None:
        """Relay the end of a session."""
        self.relay(b"")

    def relay(self, body: bytes) -> None:
        """Answer the request."""
        raise NotImplementedError

    def log_message(self, *_: object) -> None:
        """Log nothing: the suite reports what it received."""


def relay_to_url(url: str, token: str, names: Names) -> type[Relay]:
    """Return a handler that forwards requests to a server with its token."""
    address = urlsplit(url)

    class ToUrl(Relay):
        def relay(self, body: bytes) -> None:
            connection = http.client.HTTPConnection(address.netloc, timeout=DEADLINE_S)
            sent = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
            connection.request(self.command, address.path, body, sent | {"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while part := answer.read1(CHUNK):
                self.wfile.write(part)
                self.wfile.flush()
            connection.close()
            self.close_connection = True

    ToUrl.names = names
    return ToUrl


class StdioSession:
    """A running `reverie mcp` and the answers that it owes."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answers: dict[str, queue.Queue[bytes]] = {}
        self.notifications: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, message: dict[str, Any]) -> bytes:
        """Send a request and return the line that answers it."""
        waiting = self._answers[json.dumps(message["id"])] = queue.Queue()
        self.tell(message)
        return waiting.get(timeout=DEADLINE_S)

    def tell(self, message: Any) -> None:
        """Send a message that has no answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Close standard input and wait until the process ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(DEADLINE_S)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "method" in message:
                self.notifications.put(line)
            else:
                self._answers.pop(json.dumps(message["id"]), self.notifications).put(line)


def relay_to_stdio(command: list[str], names: Names) -> tuple[type[Relay], Callable[[], None]]:
    """Return a handler that starts a process for each session, and a function that ends all of them."""
    sessions: dict[str, StdioSession] = {}

    class ToStdio(Relay):
        def relay(self, body: bytes) -> None:
            if self.command != "POST":
                self._answer(405)
                return
            message = json.loads(body)
            session_id = self.headers.get(SESSION)
            if message.get("method") == "initialize":
                session_id = uuid.uuid4().hex
                sessions[session_id] = StdioSession(command)
            session = sessions.get(session_id or "")
            if session is None:
                self._answer(404)
            elif "id" in message and "method" in message:
                self._answer(200, session.ask(message), session_id)
            else:
                session.tell(message)
                self._answer(202)

        def _answer(self, status: int, content: bytes = b"", session_id: str | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if session_id is not None:
                self.send_header(SESSION, session_id)
            self.end_headers()
            self.wfile.write(content)

    def end() -> None:
        for session in sessions.values():
            session.end()

    ToStdio.names = names
    return ToStdio, end


class RelayServer(ThreadingHTTPServer):
    """A server that ignores connections which the suite closes in the middle of a stream."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report every other error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def serve(handler: type[Relay]) -> ThreadingHTTPServer:
    """Serve a relay on a free port in threads."""
    server = RelayServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
