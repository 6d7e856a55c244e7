"""Messages of a host in a form that the SDK can read, or the errors to answer them with.

This module does not import the SDK, because messages over HTTP are read before the SDK is loaded.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from web.http.json_text import decode_json, read_object, read_text_object

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# The SDK reads at most 200 levels, and the JSON of tools is not that deep.
DEEPEST = 100
# Python reads no longer numbers, and no field accepts one.
LONGEST_NUMBER = 4000


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error that answers a message; the id is None if the message has no readable id."""

    id: str | int | None
    code: int
    message: str

    def render(self) -> dict[str, Any]:
        """Return it as a message of the protocol."""
        return render_error(self.id, self.code, self.message)


def render_error(request_id: str | int | None, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return the answer that refuses a request."""
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


class _Invalid(Exception):
    """Report why the SDK cannot read a message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_message(body: bytes) -> str | list[Refusal]:
    """Return a message as JSON that the SDK can read, else the errors to answer it with. Batches are rejected."""
    try:
        message = json.loads(
            decode_json(body),
            strict=False,
            parse_int=lambda digits: int(digits) if len(digits) <= LONGEST_NUMBER else math.inf,
        )
    except (ValueError, RecursionError):
        return [_refuse_unread(body)]
    if isinstance(message, list):
        return _refuse_batch(message)
    if not isinstance(message, dict):
        return [Refusal(None, INVALID_REQUEST, "a message must be a JSON object")]
    try:
        return json.dumps(_repair(message), ensure_ascii=False, separators=(",", ":"))
    except _Invalid as error:
        return [Refusal(_read_id(message), error.code, str(error))]


def _refuse_unread(body: bytes) -> Refusal:
    """Return the error for invalid JSON. The id of an object may still be readable."""
    try:
        read = read_object(body)
    except ValueError:
        read = None
    if read is None or not read.is_whole or "method" not in read.fields:
        return Refusal(None, PARSE_ERROR, "The message is not valid JSON.")
    return Refusal(
        _read_id(read.fields), INVALID_PARAMS, "Cannot read params: they are nested too deeply, or not JSON."
    )


def _refuse_batch(batch: list[Any]) -> list[Refusal]:
    why = "Batches are not supported. Send each message separately."
    requests = [request for request in batch if isinstance(request, dict) and "method" in request and "id" in request]
    return [Refusal(_read_id(request), INVALID_REQUEST, why) for request in requests] or [
        Refusal(None, INVALID_REQUEST, why)
    ]


def _read_id(message: dict[str, Any]) -> str | int | None:
    request_id = message.get("id")
    # Protobuf turns 3 into 3.0.
    if isinstance(request_id, float) and request_id.is_integer():
        return int(request_id)
    return request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None


def _repair(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its id and a tool's arguments in the form that the SDK accepts; raise _Invalid."""
    if message.get("jsonrpc") != "2.0":
        raise _Invalid(INVALID_REQUEST, 'jsonrpc must be "2.0"')
    if "method" not in message and not {"result", "error"}.isdisjoint(message):
        # An answer to a request of the server.
        return message
    if not isinstance(message.get("method"), str):
        raise _Invalid(INVALID_REQUEST, "method must be a string")
    repaired = dict(message)
    if "id" in message:
        repaired["id"] = _read_id(message)
        if repaired["id"] is None:
            raise _Invalid(INVALID_REQUEST, "id must be a string or an integer")
    params = message.get("params")
    if not isinstance(params, dict | None):
        raise _Invalid(INVALID_PARAMS, "params must be an object")
    if not _is_readable(params, DEEPEST):
        raise _Invalid(INVALID_PARAMS, f"params must have finite numbers and at most {DEEPEST} levels")
    if params is not None and isinstance(params.get("arguments"), str):
        repaired["params"] = params | {"arguments": read_text_object(params["arguments"])}
    return repaired


def _is_readable(value: Any, depth: int) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > 0 and all(_is_readable(part, depth - 1) for part in parts)
