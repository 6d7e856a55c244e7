"""The team servers of a data directory: one file per server, readable only by its owner, with address and token."""

import json
import re
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from config.operating_system import make_folder
from pipeline.kernel.errors import FieldError, InvalidField, NotFound, ReverieError
from pipeline.kernel.store.atomic_files import replace_file
from pipeline.text.addresses import check_server_url

# The name of this machine's memory among the teams.
LOCAL = "local"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
PRIVATE = 0o600
MAX_TOKEN_CHARS = 4096
# How long hooks skip a server that did not answer in time.
REST_S = 30.0


@dataclass(frozen=True, slots=True)
class TeamServer:
    """A team's server: its name here, its address, and the token of this person."""

    name: str
    url: str
    token: str = field(repr=False)


def name_of(url: str) -> str:
    """Return the default name of a server: the name of its host."""
    return (urlsplit(url).hostname or "").replace(":", "-")


def check_server(name: str, url: str, token: str) -> TeamServer:
    """Return a server from valid values; raise InvalidField for invalid ones."""
    if NAME.fullmatch(name) is None or name == LOCAL:
        raise InvalidField(FieldError("name", f"must match {NAME.pattern} and not be {LOCAL}"))
    address = check_server_url(url)
    if not token or len(token) > MAX_TOKEN_CHARS or not (token.isascii() and token.isprintable()) or " " in token:
        raise InvalidField(FieldError("token", "is not a token: it must be one line without spaces"))
    return TeamServer(name, address, token)


def list_servers(folder: Path, on_problem: Callable[[ReverieError], None]) -> list[TeamServer]:
    """Return the servers in a folder by name. An invalid file is reported and skipped."""
    servers = []
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        if NAME.fullmatch(file.name):
            try:
                servers.append(read_server(file))
            except ReverieError as error:
                on_problem(error)
    return servers


def read_server(file: Path) -> TeamServer:
    """Read one server; raise NotFound if there is none, InvalidField for an invalid file."""
    try:
        stored = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotFound(f"There is no team {file.name}. `reverie team list` shows the teams.") from error
    except (ValueError, OSError) as error:
        raise InvalidField(FieldError(f"servers/{file.name}", "cannot be read")) from error
    return check_server(file.name, str(stored.get("url", "")), str(stored.get("token", "")))


def write_server(folder: Path, server: TeamServer) -> None:
    """Store a server atomically; replace an earlier one of the same name."""
    make_folder(folder)
    # Names of servers start with a letter or a digit, so a draft is not read as a server.
    # A basic string of TOML has the same escapes as JSON.
    replace_file(folder / server.name, f"url = {json.dumps(server.url)}\ntoken = {json.dumps(server.token)}\n")


def delete_server(folder: Path, name: str) -> None:
    """Delete a server; raise NotFound if there is none of that name."""
    try:
        (folder / name).unlink()
    except (FileNotFoundError, ValueError) as error:
        raise NotFound(f"There is no team {name}. `reverie team list` shows the teams.") from error
    _rest_file(folder, name).unlink(missing_ok=True)


def let_rest(folder: Path, name: str) -> None:
    """Record that a server did not answer in time."""
    _rest_file(folder, name).touch(mode=PRIVATE)


def is_unresponsive(folder: Path, name: str) -> bool:
    """Return whether a server recently did not answer in time, and was not changed since."""
    try:
        noted = _rest_file(folder, name).stat().st_mtime
        return abs(time.time() - noted) < REST_S and noted > (folder / name).stat().st_mtime
    except FileNotFoundError:
        return False


def _rest_file(folder: Path, name: str) -> Path:
    return folder / f".{name}-rests"
