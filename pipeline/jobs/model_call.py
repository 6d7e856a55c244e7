"""One call of an OpenAI-compatible endpoint: bounded in time and size; no redirect, no proxy, no retry."""

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR
from typing import Any
from urllib.parse import SplitResult, urlsplit

MAX_ANSWER_BYTES = 256 * 1024
ROUTE = "/chat/completions"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model answers, and what it may cost. Without a url there is none.

    `timeout_s` bounds a whole call, `daily_tokens` what a workspace may spend in a day.
    """

    url: str
    model: str = ""
    api_key: str = field(default="", repr=False)
    timeout_s: float = 20.0
    daily_tokens: int = 50_000


class Failure(StrEnum):
    """Why there is no answer of use."""

    OFF = "off"
    CAPPED = "capped"
    GIVEN_UP = "given_up"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    BROKEN = "broken"
    REFUSED = "refused"
    JUNK = "junk"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the endpoint answered, whatever it is worth."""

    status: int
    body: bytes


def post(endpoint: Endpoint, body: Mapping[str, Any]) -> Reply | Failure:
    """Send a request and return the answer; UNREACHABLE means that nothing was sent."""
    deadline = time.monotonic() + endpoint.timeout_s
    try:
        address = urlsplit(endpoint.url)
        connect = HTTPSConnection if address.scheme == "https" else HTTPConnection
        connection = connect(address.hostname or "", address.port, timeout=endpoint.timeout_s)
        connection.connect()
    except TimeoutError:
        return Failure.TIMEOUT
    except (OSError, ValueError, HTTPException):
        return Failure.UNREACHABLE
    # Each read has a timeout of its own, which an endpoint that sends one byte at a time never meets.
    late = threading.Event()
    sock = connection.sock

    def cut_off() -> None:
        late.set()
        with suppress(OSError):
            sock.shutdown(SHUT_RDWR)

    watchdog = threading.Timer(max(0.0, deadline - time.monotonic()), cut_off)
    watchdog.daemon = True
    watchdog.start()
    try:
        reply = _exchange(connection, _path(address), endpoint, body)
    except (OSError, ValueError, HTTPException) as error:
        return Failure.TIMEOUT if late.is_set() or isinstance(error, TimeoutError) else Failure.BROKEN
    finally:
        watchdog.cancel()
        connection.close()
    return Failure.TIMEOUT if late.is_set() else reply


def _exchange(connection: HTTPConnection, path: str, endpoint: Endpoint, body: Mapping[str, Any]) -> Reply | Failure:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key.strip()}"
    connection.request("POST", path, json.dumps(body).encode(), headers)
    response: HTTPResponse = connection.getresponse()
    with response:
        read = response.read(MAX_ANSWER_BYTES + 1)
    return Failure.JUNK if len(read) > MAX_ANSWER_BYTES else Reply(response.status, read)


def _path(address: SplitResult) -> str:
    path = address.path.rstrip("/")
    if not path.endswith(ROUTE):
        path = f"{path or '/v1'}{ROUTE}"
    return f"{path}?{address.query}" if address.query else path
