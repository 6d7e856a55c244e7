"""The server of the tools that run in the web server: it runs endpoints without a second HTTP request.

Each tool call has the sender of the MCP request as its caller. Every check of an endpoint applies, and each endpoint
that a tool runs is in the metrics and in the access log. The limits count the MCP request alone.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from flask import Flask, g
from pydantic import BaseModel
from werkzeug.datastructures import Headers
from werkzeug.routing import Map, MapAdapter, Rule

from config.paths import WORKSPACE_HEADER
from pipeline.kernel.http.problems import error_of_problem
from pipeline.kernel.records import MAX_SESSION_ID_CHARS
from pipeline.kernel.records.people import Caller
from web.http.access_log import note_request
from web.http.call import EndpointRequest
from web.http.contract import CALLER_HEADER, FOLDER_HEADER, MCP, SESSION_HEADER
from web.http.endpoint import Api, container
from web.http.metrics import count_request
from web.http.problems import describe_error


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of an MCP request, or of a command: the caller, the headers and the id of the request."""

    caller: Caller
    headers: Headers
    request_id: str
    is_agent: bool = True

    @property
    def folder(self) -> str:
        """Return the folder of the sender, "" for a person: their folder is on their own machine."""
        return "" if self.caller.person is not None else unquote(self.headers.get(FOLDER_HEADER, ""))

    @property
    def session(self) -> str | None:
        """Return the session of the agent, None if the request names none."""
        return unquote(self.headers.get(SESSION_HEADER, ""))[:MAX_SESSION_ID_CHARS] or None

    def endpoint_headers(self) -> Headers:
        """Return the headers of the endpoints that the sender's tools run."""
        headers = Headers(self.headers)
        if self.is_agent:
            headers[CALLER_HEADER] = MCP
        return headers


def route_operations(apis: Iterable[Api]) -> MapAdapter:
    """Return the operations of the HTTP API, which `match` finds by path and method."""
    rules = [
        Rule(operation.endpoint.rule, methods=[operation.endpoint.method], endpoint=operation)
        for api in apis
        for operation in api.operations
    ]
    return Map(rules).bind("")


class InProcessServer:
    """Runs the endpoints of an app for one sender."""

    def __init__(self, app: Flask, operations: MapAdapter, sender: Sender) -> None:
        self._app = app
        self._operations = operations
        self._sender = sender
        self._headers = sender.endpoint_headers()

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Run one endpoint and return its answer as JSON; raise ReverieError for anything but success."""
        content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        texts = {name: str(value) for name, value in (query or {}).items()}
        request = EndpointRequest(method, unquote(path), self._headers, texts, lambda: content, self._sender.caller)
        # Each endpoint notes its workspace and its memories in a context of its own.
        with self._app.app_context():
            g.caller, g.request_id = self._sender.caller, self._sender.request_id
            return self._run(request)

    def _run(self, request: EndpointRequest) -> Any:
        started, rule, status = time.perf_counter(), "unknown", int(HTTPStatus.INTERNAL_SERVER_ERROR)
        try:
            operation, parameters = self._operations.match(request.path, request.method)
            rule, status = operation.endpoint.rule, operation.endpoint.status
            answer = operation.run(container(), request, parameters)
        except Exception as error:
            problem = describe_error(error)
            status = problem.status
            # The same error that a client of the HTTP API gets.
            raise error_of_problem(status, problem.document(), str(problem.retry_after_s or "")) from error
        finally:
            services = container()
            count_request(services, rule, request.method, status, time.perf_counter() - started)
            note_request(services.access_log, request.method, rule, status, request.headers.get(WORKSPACE_HEADER, ""))
        return answer.model_dump(mode="json", by_alias=True) if isinstance(answer, BaseModel) else answer
