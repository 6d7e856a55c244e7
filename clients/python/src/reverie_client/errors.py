"""What a call can raise: one tree, by what the caller can do about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class ReverieError(Exception):
    """Any failure of a call."""


class NotConfigured(ReverieError):
    """Say what is missing to find the server, or to be let in."""


class ServerUnreachable(ReverieError):
    """Say that no answer came: nothing listens, the connection broke, or the time was up."""


class UnexpectedAnswer(ReverieError):
    """Say that what answered does not speak Reverie's contract."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A rejected field and the reason."""

    loc: str
    msg: str


class Problem(ReverieError):
    """A request that the server refused, as its problem document tells it."""

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
    """The address is not the server's own, or the role may not do this (403)."""


class NotFound(Problem):
    """No such memory, workspace or path (404)."""


class Conflict(Problem):
    """Something else already is what this asks for (409)."""


class InvalidField(Problem):
    """A field cannot be taken; `errors` names it (400, 413, 422)."""


class Unavailable(Problem):
    """The store is busy or full; `retry_after_s` says when to try again (429, 503)."""


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
