"""A host's messages as the SDK can read them, or the errors to answer with: no message goes unanswered.

Nothing of the SDK is imported here: over HTTP a message is read before the SDK is loaded.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from web.json_text import decode_json, read_object, read_text_object

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
# The SDK reads no more levels than 200, and a tool's own JSON is not as deep.
DEEPEST = 100
# Python reads no longer number; no field takes one.
LONGEST_NUMBER = 4000


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error in answer to a message; the id is None where the message has none that can be read."""

    id: str | int | None
    code: int
    message: str

    def render(self) -> dict[str, Any]:
        """Return it as the protocol has it."""
        return {"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.message}}


class _Invalid(Exception):
    """Say why the SDK could not read a message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_message(body: bytes) -> str | list[Refusal]:
    """Return a message as JSON that the SDK can read, else the errors to answer it with; a batch is refused."""
    try:
        said = json.loads(decode_json(body), strict=False, parse_int=_read_integer)
    except (ValueError, RecursionError):
        return [_refuse_unread(body)]
    if isinstance(said, list):
        return _refuse_batch(said)
    if not isinstance(said, dict):
        return [Refusal(None, INVALID_REQUEST, "a message must be a JSON object")]
    try:
        return json.dumps(_repair(said), ensure_ascii=False, separators=(",", ":"))
    except _Invalid as error:
        return [Refusal(_read_id(said), error.code, str(error))]


def _read_integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_NUMBER else math.inf


def _refuse_unread(body: bytes) -> Refusal:
    """Return the answer to what Python cannot read: if it is an object, its id may still be readable."""
    try:
        read = read_object(body)
    except ValueError:
        read = None
    if read is None or not read.is_whole or "method" not in read.fields:
        return Refusal(None, PARSE_ERROR, "the message is not valid JSON")
    return Refusal(
        _read_id(read.fields), INVALID_PARAMS, "params cannot be read: they are nested too deeply or no JSON"
    )


def _refuse_batch(batch: list[Any]) -> list[Refusal]:
    why = "batches are not supported: send each message alone"
    requests = [one for one in batch if isinstance(one, dict) and "method" in one and "id" in one]
    return [Refusal(_read_id(one), INVALID_REQUEST, why) for one in requests] or [Refusal(None, INVALID_REQUEST, why)]


def _read_id(message: dict[str, Any]) -> str | int | None:
    given = message.get("id")
    # What goes through protobuf comes back as 3.0.
    if isinstance(given, float) and given.is_integer():
        return int(given)
    return given if isinstance(given, str | int) and not isinstance(given, bool) else None


def _repair(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its id and a tool's arguments in the form that the SDK takes; raise _Invalid."""
    if message.get("jsonrpc") != "2.0":
        raise _Invalid(INVALID_REQUEST, 'jsonrpc must be "2.0"')
    if "method" not in message and not {"result", "error"}.isdisjoint(message):
        # The answer to a request of the server.
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
