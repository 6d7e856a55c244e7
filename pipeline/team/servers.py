"""The team servers that a home knows: a file each, with the address and this person's token, its owner's alone."""

import json
import os
import re
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.errors import FieldError, InvalidField, NotFound, ReverieError
from pipeline.text.addresses import check_server_url

# What this machine's own memory is called beside a team's.
LOCAL = "local"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
PRIVATE = 0o600
MAX_TOKEN_CHARS = 4096
# How long hooks leave a server alone that did not answer in time.
REST_S = 30.0


@dataclass(frozen=True, slots=True)
class TeamServer:
    """A server of a team: how it is called here, its address, and the token by which it knows this person."""

    name: str
    url: str
    token: str = field(repr=False)


def name_of(url: str) -> str:
    """Return how a server is called where nobody named it: as its host is."""
    return (urlsplit(url).hostname or "").replace(":", "-")


def check_server(name: str, url: str, token: str) -> TeamServer:
    """Return a server as it is kept; raise InvalidField for what none can be."""
    if NAME.fullmatch(name) is None or name == LOCAL:
        raise InvalidField(FieldError("name", f"must match {NAME.pattern} and not be {LOCAL}"))
    address = check_server_url(url)
    if not token or len(token) > MAX_TOKEN_CHARS or not (token.isascii() and token.isprintable()) or " " in token:
        raise InvalidField(FieldError("token", "is no token: one line without spaces"))
    return TeamServer(name, address, token)


def list_servers(folder: Path, on_problem: Callable[[ReverieError], None]) -> list[TeamServer]:
    """Return the servers that stand in a folder, by name; a file that is none is told of and left out."""
    found = []
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        if NAME.fullmatch(file.name):
            try:
                found.append(read_server(file))
            except ReverieError as error:
                on_problem(error)
    return found


def read_server(file: Path) -> TeamServer:
    """Read one server; raise NotFound where there is none, InvalidField for a file that is none."""
    try:
        stored = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotFound(f"no team is called {file.name}") from error
    except (ValueError, OSError) as error:
        raise InvalidField(FieldError(f"servers/{file.name}", "cannot be read")) from error
    return check_server(file.name, str(stored.get("url", "")), str(stored.get("token", "")))


def write_server(folder: Path, server: TeamServer) -> None:
    """Keep a server, in one step, in the place of an earlier one of that name."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Names begin with a letter or digit: a draft is no server.
    draft = folder / f".{server.name}-{os.getpid()}-{os.urandom(4).hex()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(_lines(("url", server.url), ("token", server.token)))
            file.flush()
            os.fsync(descriptor)
        draft.replace(folder / server.name)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def delete_server(folder: Path, name: str) -> None:
    """Forget a server; raise NotFound where there is none of that name."""
    try:
        (folder / name).unlink()
    except (FileNotFoundError, ValueError) as error:
        raise NotFound(f"no team is called {name}") from error
    _rest_file(folder, name).unlink(missing_ok=True)


def let_rest(folder: Path, name: str) -> None:
    """Note that a server did not answer in time."""
    _rest_file(folder, name).touch(mode=PRIVATE)


def is_resting(folder: Path, name: str) -> bool:
    """Tell whether a server did not answer in time a moment ago, and is the same since."""
    try:
        noted = _rest_file(folder, name).stat().st_mtime
        return abs(time.time() - noted) < REST_S and noted > (folder / name).stat().st_mtime
    except FileNotFoundError:
        return False


def _rest_file(folder: Path, name: str) -> Path:
    return folder / f".{name}-rests"


def _lines(*stored: tuple[str, str]) -> Sequence[str]:
    # A basic string of TOML takes the escapes of JSON.
    return [f"{name} = {json.dumps(value)}\n" for name, value in stored]
