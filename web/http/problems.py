"""Errors as RFC 9457 problem documents, and the id of each request. They contain no traceback and no sent value."""

import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from sqlite3 import OperationalError
from typing import Any, cast

from flask import Flask, Response, current_app, g, has_app_context, request
from ulid import ULID
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from pipeline.kernel.errors import FieldError, InvalidField, LimitReached, StoreUnavailable
from pipeline.kernel.http.problems import PROBLEM, STATUS_OF_ERROR
from web.http.listener import is_by_proxy

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Problem:
    """The content of a problem document, and after how many seconds to try again."""

    status: int
    detail: str
    errors: Iterable[FieldError] = ()
    retry_after_s: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the problem document."""
        kind = HTTPStatus(self.status)
        document = {
            "type": f"urn:reverie:problem:{kind.phrase.lower().replace(' ', '-')}",
            "title": kind.phrase,
            "status": self.status,
            "detail": self.detail,
            "errors": [{"loc": error.loc, "msg": error.msg} for error in self.errors],
        }
        if (named := request_id()) is not None:
            document["instance"] = f"urn:reverie:request:{named}"
        return document

    def response(self) -> Response:
        """Return the HTTP response."""
        response = Response(json.dumps(self.document()), self.status, content_type=PROBLEM)
        if self.retry_after_s is not None:
            response.headers["Retry-After"] = str(self.retry_after_s)
        return response


def problem(status: int, detail: str) -> Response:
    """Return the response of one problem."""
    return Problem(status, detail).response()


def describe_error(error: Exception) -> Problem:
    """Return the problem that an error of an endpoint results in; record an unexpected error."""
    if isinstance(error, HTTPException):
        return Problem(error.code or HTTPStatus.INTERNAL_SERVER_ERROR, error.description or "")
    status = next((status for kind, status in STATUS_OF_ERROR if isinstance(error, kind)), None)
    if status is not None:
        errors = error.errors if isinstance(error, InvalidField) else ()
        retry_after_s = error.retry_after_s if isinstance(error, StoreUnavailable | LimitReached) else None
        return Problem(status, str(error), errors, retry_after_s)
    log.error("unexpected error", exc_info=error)
    operations = current_app.extensions["container"].operations
    operations.record_error("web", f"{type(error).__name__}: {error}{_describe_request()}")
    if isinstance(error, OperationalError):
        return Problem(
            HTTPStatus.SERVICE_UNAVAILABLE, "The store cannot serve this now. Try again later.", retry_after_s=1
        )
    return Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "The server failed unexpectedly. `reverie logs errors` shows the error."
    )


def register_problems(app: Flask) -> None:
    """Answer every error of the app with a problem document."""

    @app.errorhandler(Exception)
    def answer_error(error: Exception) -> Response:
        response = describe_error(error).response()
        if isinstance(error, MethodNotAllowed) and error.valid_methods:
            response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
        return response


def _describe_request() -> str:
    named = request_id()
    return "" if named is None else f" (request {named})"


REQUEST_ID_HEADER = "X-Request-Id"
# Proxies create hexadecimal digits, UUIDs or ULIDs.
WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{8,64}")


def register_request_ids(app: Flask) -> None:
    """Give every request of the app an id before any other check: the trusted proxy's id, or a new one."""

    @app.before_request
    def name_request() -> None:
        proxy_id = request.headers.get(REQUEST_ID_HEADER, "") if is_by_proxy() else ""
        g.request_id = proxy_id if WELL_FORMED.fullmatch(proxy_id) else str(ULID())

    @app.after_request
    def send_id(response: Response) -> Response:
        response.headers[REQUEST_ID_HEADER] = g.request_id
        return response


def request_id() -> str | None:
    """Return the id of the request that is being answered, None outside of a request."""
    return cast(str | None, g.get("request_id") if has_app_context() else None)


class RequestIdFilter(logging.Filter):
    """Append the id of the request to each of its log records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the id; keep every record."""
        named = request_id()
        if named is not None:
            record.msg, record.args = f"{record.getMessage()} (request {named})", None
        return True
