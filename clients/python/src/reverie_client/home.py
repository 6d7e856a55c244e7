"""The address of the server and the token, from the data directory and the environment."""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .errors import NotConfigured

# A wildcard address can be bound but not called.
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, never bound
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address, the workspace, and a function that returns the current token."""

    url: str
    workspace: str
    token: Callable[[], str]
    local: bool
    incognito: str = ""
    """The headers that the environment adds to every request."""


def find_server(
    url: str | None = None,
    token: str | None = None,
    workspace: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Server:
    """Return the given server, else the environment's, else the data directory's."""
    home = _find_home(environment)
    stored = _read_settings(home / "config.toml")

    def setting(name: str, default: str) -> str:
        return environment.get(f"REVERIE_{name.upper()}") or _as_text(name, stored.get(name, default), home)

    host = setting("host", "127.0.0.1")
    own_url = _build_url(_ANY_ADDRESS.get(host, host), _check_port(setting("port", "7077")))
    url = (url or own_url).rstrip("/")
    local = urlsplit(url).hostname in _LOOPBACK
    # The token gives access to the full data directory: send it only to the address in its settings.
    if token is None and not local and url != own_url:
        raise NotConfigured(f"Pass a token for {url}: the token in the data directory is only for its own server.")
    read_token = _constant(token) if token is not None else _token_reader(home / "token")
    incognito = environment.get("REVERIE_INCOGNITO", "")
    return Server(url, workspace or setting("workspace", "default"), read_token, local, incognito)


def _find_home(environment: Mapping[str, str]) -> Path:
    """Return the data directory by the same rules as the server."""
    named = environment.get("REVERIE_HOME") or "~/.reverie"
    path = Path(_expand_user(named, environment))
    if path.is_absolute():
        return path
    if environment.get("REVERIE_HOME"):
        raise NotConfigured(f"REVERIE_HOME must be an absolute path, not {named!r}.")
    raise NotConfigured(
        "neither REVERIE_HOME nor HOME says where the data directory is; set REVERIE_HOME to an absolute path"
    )


def _expand_user(path: str, environment: Mapping[str, str]) -> str:
    if "HOME" in environment and (path == "~" or path.startswith("~/")):
        return environment["HOME"] + path[1:] if environment["HOME"] else path
    # Path.expanduser raises an error if the user's home folder is unknown.
    return os.path.expanduser(path)  # noqa: PTH111


def _as_text(name: str, value: object, home: Path) -> str:
    """Return a setting of config.toml as a text, like an environment variable."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str if name != "port" else (str, int)):
        raise NotConfigured(f"The value {value!r} of {name} in {home / 'config.toml'} is not valid. Correct it there.")
    return str(value).strip() if name == "port" else str(value)


def _check_port(port: str) -> str:
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise NotConfigured(f"The port must be an integer from 1 to 65535, not {port!r}.")
    return str(int(port))


def _build_url(host: str, port: str) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _read_settings(file: Path) -> dict[str, Any]:
    try:
        # Windows editors may write a byte order mark before the first line.
        return tomllib.loads(file.read_bytes().decode("utf-8").removeprefix("\ufeff"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise NotConfigured(f"Cannot read {file}: {error}. Correct the file.") from error


def _constant(token: str) -> Callable[[], str]:
    return lambda: token


def _token_reader(file: Path) -> Callable[[], str]:
    def read_token() -> str:
        # Read before every request, because the token may be renewed.
        try:
            return file.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise NotConfigured(f"There is no token in {file}. Start the server with `reverie up`.") from error

    return read_token
