"""Errors as RFC 9457 problem documents; never a traceback, never a quoted value."""

import json
import logging
from collections.abc import Iterable
from http import HTTPStatus
from sqlite3 import OperationalError

from flask import Flask, Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from pipeline.errors import (
    FieldError,
    InvalidField,
    LimitReached,
    ReverieError,
    StoreUnavailable,
)
from pipeline.http.problems import STATUS_OF_ERROR
from web.request_ids import request_id

log = logging.getLogger(__name__)


def problem(status: int, detail: str, errors: Iterable[FieldError] = (), retry_after_s: int | None = None) -> Response:
    """Render one problem document."""
    kind = HTTPStatus(status)
    document = {
        "type": f"urn:reverie:problem:{kind.phrase.lower().replace(' ', '-')}",
        "title": kind.phrase,
        "status": status,
        "detail": detail,
        "errors": [{"loc": error.loc, "msg": error.msg} for error in errors],
    }
    if (named := request_id()) is not None:
        document["instance"] = f"urn:reverie:request:{named}"
    response = Response(json.dumps(document), status, content_type="application/problem+json")
    if retry_after_s is not None:
        response.headers["Retry-After"] = str(retry_after_s)
    return response


def register_problems(app: Flask) -> None:
    """Answer every error of the app with a problem document."""

    @app.errorhandler(ReverieError)
    def answer_error(error: ReverieError) -> Response:
        status = next((code for kind, code in STATUS_OF_ERROR if isinstance(error, kind)), None)
        if status is None:
            return answer_unexpected(error)
        errors = error.errors if isinstance(error, InvalidField) else ()
        retry = error.retry_after_s if isinstance(error, StoreUnavailable | LimitReached) else None
        return problem(status, str(error), errors, retry)

    @app.errorhandler(HTTPException)
    def answer_http_error(error: HTTPException) -> Response:
        response = problem(error.code or 500, error.description or "")
        if isinstance(error, MethodNotAllowed) and error.valid_methods:
            response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
        return response

    @app.errorhandler(Exception)
    def answer_unexpected(error: Exception) -> Response:
        log.error("unexpected error", exc_info=error)
        app.extensions["container"].operations.record_error("web", f"{type(error).__name__}: {error}{_of_request()}")
        if isinstance(error, OperationalError):
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, "the store cannot serve this now", retry_after_s=1)
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "the error log says more")


def _of_request() -> str:
    named = request_id()
    return "" if named is None else f" (request {named})"
