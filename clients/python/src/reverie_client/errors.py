"""The errors of calls, by the possible reaction of the caller."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class ReverieError(Exception):
    """Any failure of a call."""


class NotConfigured(ReverieError):
    """The address of the server or the token is missing or invalid."""


class ServerUnreachable(ReverieError):
    """There was no answer: no server listens, the connection broke, or the timeout passed."""


class UnexpectedAnswer(ReverieError):
    """The answer is not the answer of a Reverie server."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A rejected field and the reason."""

    loc: str
    msg: str


class Problem(ReverieError):
    """A request that the server rejected, with the content of its problem document."""

    def __init__(self, status: int, document: Mapping[str, Any], retry_after_s: float | None = None) -> None:
        self.status = status
        self.type = str(document.get("type", "about:blank"))
        self.title = str(document.get("title", ""))
        self.detail = str(document.get("detail", ""))
        self.errors = tuple(
            FieldProblem(str(error.get("loc", "")), str(error.get("msg", ""))) for error in document.get("errors") or ()
        )
        self.retry_after_s = retry_after_s
        super().__init__(self.detail or self.title or f"HTTP {status}")


class Unauthorized(Problem):
    """The token is missing, wrong or revoked (401)."""


class Forbidden(Problem):
    """The Host header names another server, or the role does not permit this (403)."""


class NotFound(Problem):
    """There is no such memory, workspace or path (404)."""


class Conflict(Problem):
    """The request contradicts stored data (409)."""


class InvalidField(Problem):
    """The request or a field is invalid; `errors` names the fields (400, 413, 422)."""


class Unavailable(Problem):
    """The store is busy or full, or a limit is reached; retry after `retry_after_s` (429, 503)."""


PROBLEM_OF_STATUS: Mapping[int, type[Problem]] = {
    400: InvalidField,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: InvalidField,
    422: InvalidField,
    429: Unavailable,
    503: Unavailable,
}
