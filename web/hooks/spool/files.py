"""The files of the spool: one request each, named by its time.

The hook client imports this module while an agent waits: standard library only.
"""
# ruff: noqa: PTH103, PTH105, PTH108, PTH110, PTH112, PTH118, PTH123 - pathlib alone takes longer than the hook client

import errno
import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from config.operating_system import read_regular
from config.paths import SPOOL_BEGUN, SPOOL_ENDING, SPOOL_HELD, SPOOL_REFUSED

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "spool"
# The path of a fact also names its subject and its attribute.
FACTS = "/v1/facts/"
_NAME = re.compile(rf"[0-9]{{20}}.*{re.escape(SPOOL_ENDING)}\Z", re.DOTALL)
MOST_FILES = 1000
MOST_BYTES = 16 * 1024 * 1024
# Refused requests are kept for a person to read, the newest of them.
MOST_REFUSED = 100


class SpoolFull(Exception):
    """Report that a request does not fit into the spool."""


@dataclass(frozen=True, slots=True)
class SpooledRequest:
    """A request in the spool: a method, a path, headers and a body without secrets."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class SpoolState:
    """The number of waiting requests, their size, when the oldest was sent, and the number of refused requests."""

    files: int
    bytes: int
    oldest_ns: int | None
    refused: int


def add_request(home: str, request: SpooledRequest) -> str:
    """Write a request durably into the spool and return its name; raise SpoolFull or OSError."""
    return _add(home, request, SPOOL_ENDING)


def hold_request(home: str, request: SpooledRequest) -> str:
    """Write a request that the server carries out, and return its name; raise SpoolFull or OSError.

    If the server ends before it releases the request, the next one delivers it.
    """
    return _add(home, request, SPOOL_HELD)


def release_request(home: str, name: str) -> None:
    """Delete a request that was carried out."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(home, FOLDER, f"{name}{SPOOL_HELD}"))


def deliver_held(folder: "Path") -> None:
    """Have the requests delivered that an earlier server held; a part of each may have been carried out."""
    for file in folder.glob(f"*{SPOOL_HELD}"):
        file.rename(folder / f"{file.name.removesuffix(SPOOL_HELD)}{SPOOL_BEGUN}")


def _add(home: str, request: SpooledRequest, ending: str) -> str:
    folder = os.path.join(home, FOLDER)
    if not os.path.isdir(folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        sync_folder(home)
    content = {"method": request.method, "path": request.path, "headers": dict(request.headers), "body": request.body}
    data = json.dumps(content, ensure_ascii=False).encode()
    state = describe_spool(home)
    if state.files >= MOST_FILES or state.bytes + len(data) > MOST_BYTES:
        raise SpoolFull(
            f"The spool in {folder} is full ({state.files} requests, {state.bytes} bytes). "
            "Start the server with `reverie up`; it delivers them."
        )
    name = f"{time.time_ns():020d}-{os.urandom(5).hex()}"
    _write(folder, f"{name}{ending}", data)
    return name


def _write(folder: str, file: str, data: bytes) -> None:
    draft = os.path.join(folder, f".{file}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        os.replace(draft, os.path.join(folder, file))
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        # Windows opens no folders.
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def list_files(home: str) -> list[str]:
    """List the file names of waiting requests, the oldest first."""
    return sorted(name for name, _ in _scan(os.path.join(home, FOLDER)))


def describe_spool(home: str) -> SpoolState:
    """Return the state of the spool; it may not exist."""
    folder = os.path.join(home, FOLDER)
    files = _scan(folder)
    oldest = min((time_of(name) for name, _ in files), default=None)
    refused = len(_scan(os.path.join(folder, SPOOL_REFUSED)))
    return SpoolState(len(files), sum(size for _, size in files), oldest, refused)


def _scan(folder: str) -> list[tuple[str, int]]:
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _NAME.match(entry.name):
                    # A file that was delivered during the scan has no size.
                    with suppress(FileNotFoundError):
                        found.append((entry.name, entry.stat(follow_symlinks=False).st_size))
    except FileNotFoundError:
        return []
    return found


def time_of(name: str) -> int:
    """Return the time of a file name, in nanoseconds."""
    return int(name[:20])


def read_request(home: str, file: str) -> SpooledRequest:
    """Read a waiting request; raise ValueError if it is damaged."""
    try:
        content = json.loads(read_regular(os.path.join(home, FOLDER, file), MOST_BYTES, follow=False))
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            # The process has no file left to open; the request is sound.
            raise
        raise ValueError(error.strerror) from error
    if not isinstance(content, dict):
        raise ValueError("it is no request")  # noqa: TRY004 - what a file contains
    method, path, headers = (content.get(name) for name in ("method", "path", "headers"))
    if not isinstance(headers, dict):
        raise ValueError("it is no request")  # noqa: TRY004
    if not all(isinstance(text, str) and text.isprintable() for text in [method, path, *headers, *headers.values()]):
        raise ValueError("it is no request")
    return SpooledRequest(str(method), str(path), headers, content.get("body"))
