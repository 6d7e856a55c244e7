"""A host whose lines are known before, and which keeps what it is sent."""

import json

from pipeline.kernel.errors import ServerUnreachable
from web.mcp.offered_tools import Switches
from web.mcp.relay import Relay
from web.mcp.session import Session

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def hello(version="2025-06-18", request_id=0, **changes):
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": params | changes}


def bare(method, request_id=0, **rest):
    return {"jsonrpc": "2.0", "id": request_id, "method": method} | rest


class PlayedHost:
    def __init__(self, lines):
        self._lines = lines
        self.sent = []

    def __iter__(self):
        for line in self._lines:
            yield line if isinstance(line, bytes) else json.dumps(line).encode()

    def send(self, message):
        self.sent.append(json.loads(json.dumps(message)))


class NoServer:
    """A connection over which no server answers."""

    folder, session = "", None

    def post(self, *_, **__):
        raise ServerUnreachable("No server answers.")

    def spool(self, *_):
        return None

    def close(self):
        pass


class PlayedServer(NoServer):
    """A connection to a server that answers each message by a function, and keeps the messages and their headers."""

    def __init__(self, answer=lambda _message: {"result": {}}):
        self._answer = answer
        self.got = []

    def post(self, target, message, headers, **asked):
        message = json.loads(message)
        if message["method"] == "ping":
            return {"jsonrpc": "2.0", "id": 1, "result": {}}
        self.got.append((target, message, headers, asked))
        return {"jsonrpc": "2.0", "id": message["id"], **self._answer(message)}


def converse(lines, connection=None, profile="core", find_switches=Switches, last_answers_s=60):
    """Return what a host is sent that says these lines and then closes its end."""
    host = PlayedHost(lines)
    session = Session(profile, find_switches)
    Relay(host, session, lambda: connection or NoServer()).run(last_answers_s)
    return host.sent
