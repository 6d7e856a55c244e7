"""One API call: its request, and how to read its answer. Independent of sync and async."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from .errors import UnexpectedAnswer
from .reading import read_value

T = TypeVar("T")

# The maximum number of items in a page of a list.
LARGEST_PAGE = 200


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A request whose answer is a T; `safe` if sending it twice has the same effect as sending it once."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Any = None
    query: Mapping[str, str] | None = None
    safe: bool = False

    def read_answer(self, answer: Any) -> T:
        """Return the answer as a T; raise UnexpectedAnswer if it has another form."""
        try:
            return self.read(answer)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise UnexpectedAnswer(
                f"The answer to {self.method} {self.path} has another form; the server may run another version: {error}"
            ) from error


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list."""

    items: tuple[T, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that is read page by page, up to `limit` items or to its end."""

    request: Request[Page[T]]
    limit: int | None
    paged: bool = True

    def next_request(self, cursor: str | None, count: int) -> Request[Page[T]]:
        """Return the request of the page after `count` items."""
        if not self.paged:
            return self.request
        size = LARGEST_PAGE if self.limit is None else min(self.limit - count, LARGEST_PAGE)
        query = dict(self.request.query or {}) | {"limit": str(size)}
        return replace(self.request, query=query if cursor is None else query | {"cursor": cursor})

    def is_complete(self, cursor: str | None, count: int) -> bool:
        """Return whether a page is the last one to read."""
        return cursor is None or (self.limit is not None and count >= self.limit)


def build_request(
    method: str,
    path: str,
    kind: type[T],
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
    *,
    safe: bool | None = None,
) -> Request[T]:
    """Describe a call. None values are omitted; a GET is safe by default."""

    def read(answer: Any) -> T:
        value: T = read_value(kind, answer)
        if not isinstance(value, kind):
            raise TypeError("not an object")
        return value

    sent = None if body is None else encode_body(body)
    return Request(method, path, read, sent, encode_query(query), method == "GET" if safe is None else safe)


def build_listing(
    path: str, kind: type[T], limit: int | None, query: Mapping[str, Any], *, safe: bool = True, paged: bool = True
) -> Listing[T]:
    """Describe a list of items."""

    def read(answer: Any) -> Page[T]:
        return Page(tuple(read_value(kind, item) for item in answer["items"]), answer["next_cursor"])

    return Listing(Request("GET", path, read, query=encode_query(query), safe=safe), limit, paged)


def build_path(*parts: str) -> str:
    """Return the path of a record. No part of it can change the other parts."""
    # A part of dots alone would be resolved as a step to another folder.
    return "/v1/" + "/".join(quote(part, safe="").replace(".", "%2E") for part in parts)


def encode_body(value: Any) -> Any:
    """Return a value in JSON types, without None values in objects."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return encode_body(asdict(value))
    if isinstance(value, Mapping):
        # Keep null values in metadata and details, which the caller defines.
        return {
            name: item if name in {"metadata", "details"} else encode_body(item)
            for name, item in value.items()
            if item is not None
        }
    if isinstance(value, (list, tuple)):
        return [encode_body(item) for item in value]
    return value


def encode_query(query: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the query parameters without None values."""
    encoded = {name: _encode_parameter(value) for name, value in (query or {}).items() if value is not None}
    return {name: value for name, value in encoded.items() if value}


def _encode_parameter(value: Any) -> str:
    if isinstance(value, datetime):
        return str(encode_body(value))
    return str(value).lower() if isinstance(value, bool) else str(value)
