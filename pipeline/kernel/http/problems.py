"""The answers of a Reverie server: the table of errors and HTTP statuses, and the JSON or the error of an answer."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from pipeline.kernel.errors import (
    Conflict,
    ExtraMissing,
    FieldError,
    Forbidden,
    InvalidField,
    LimitReached,
    MalformedRequest,
    NotFound,
    PeerRefused,
    PreconditionFailed,
    RemoteUnreachable,
    ReverieError,
    StoreUnavailable,
)
from pipeline.kernel.http.connections import HttpAnswer

STATUS_OF_ERROR: tuple[tuple[type[ReverieError], HTTPStatus], ...] = (
    (MalformedRequest, HTTPStatus.BAD_REQUEST),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Conflict, HTTPStatus.CONFLICT),
    (PreconditionFailed, HTTPStatus.PRECONDITION_FAILED),
    (InvalidField, HTTPStatus.UNPROCESSABLE_ENTITY),
    (PeerRefused, HTTPStatus.FORBIDDEN),
    (LimitReached, HTTPStatus.TOO_MANY_REQUESTS),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (RemoteUnreachable, HTTPStatus.BAD_GATEWAY),
    (ExtraMissing, HTTPStatus.NOT_IMPLEMENTED),
)
# InvalidField is created from the rejected fields instead of a text.
_ERROR_OF_STATUS: Mapping[int, Callable[[str], ReverieError]] = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: MalformedRequest
} | {status: error for error, status in STATUS_OF_ERROR if error is not InvalidField}

HOW_TO_RESTART = "Restart the server: `reverie down`, then `reverie up`."
PROBLEM = "application/problem+json"
MAX_RETRY_S = 3600


class ServerProblem(ReverieError):
    """Report a failure of the server that has no error type; `status` is the HTTP status."""

    def __init__(self, detail: str, status: int = 500) -> None:
        super().__init__(detail)
        self.status = status


class NotReverie(ServerProblem):
    """Report an answer that no Reverie server sends."""

    def __init__(self, url: str, status: int = HTTPStatus.OK) -> None:
        super().__init__(f"The program at {url} is not a Reverie server (HTTP {status}). Check the address.", status)


class JsonObject(dict[str, Any]):
    """A JSON object of an answer. A missing field raises ServerProblem, because the server failed to send it."""

    def __missing__(self, name: str) -> Any:
        raise ServerProblem(
            f"The server's answer lacks the field {name!r}; the server may run another version of Reverie. "
            f"{HOW_TO_RESTART}"
        )


def read_answer(answer: HttpAnswer, url: str) -> Any:
    """Return the JSON of a successful answer; raise ReverieError for any other answer."""
    try:
        content = json.loads(answer.body, object_hook=JsonObject) if answer.body else None
    except ValueError as error:
        raise NotReverie(url, answer.status) from error
    if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        return content
    if not answer.media_type.startswith(PROBLEM) or not isinstance(content, dict):
        raise NotReverie(url, answer.status)
    raise error_of_problem(answer.status, content, answer.retry_after)


def error_of_problem(status: int, problem: Mapping[str, Any], retry_after: str = "") -> ReverieError:
    """Return the error that a problem document describes; `retry_after` is the header of that name."""
    detail = str(problem.get("detail") or problem.get("title") or f"HTTP {status}")
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        return InvalidField(*_read_fields(problem) or [FieldError("body", detail)])
    error_type = _ERROR_OF_STATUS.get(status)
    error = ServerProblem(detail, status) if error_type is None else error_type(detail)
    if isinstance(error, LimitReached | StoreUnavailable) and retry_after.isascii() and retry_after.isdigit():
        error.retry_after_s = min(MAX_RETRY_S, int(retry_after))
    return error


def _read_fields(problem: Mapping[str, Any]) -> list[FieldError]:
    errors = problem.get("errors")
    fields = [field for field in errors if isinstance(field, Mapping)] if isinstance(errors, list) else []
    return [FieldError(str(field.get("loc", "")), str(field.get("msg", ""))) for field in fields]
