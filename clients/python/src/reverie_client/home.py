"""Where the server is and what lets a caller in, as the home and the environment say it."""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .errors import NotConfigured

# What a server binds to is not always what a client can ask.
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, never bound
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address, the workspace to speak of, and how to get the token of the moment."""

    url: str
    workspace: str
    token: Callable[[], str]
    local: bool


def find_server(
    url: str | None = None,
    token: str | None = None,
    workspace: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Server:
    """Return the named server, else the environment's, else the home's."""
    home = Path(environment.get("REVERIE_HOME") or "~/.reverie").expanduser()
    stored = _read_settings(home / "config.toml")

    def setting(name: str, default: str) -> str:
        return environment.get(f"REVERIE_{name.upper()}") or str(stored.get(name, default))

    host = setting("host", "127.0.0.1")
    own_url = _build_url(_ANY_ADDRESS.get(host, host), setting("port", "7077"))
    url = (url or own_url).rstrip("/")
    local = urlsplit(url).hostname in _LOOPBACK
    # Whoever has the home's token has the whole home: it goes to no machine that the home does not name.
    if token is None and not local and url != own_url:
        raise NotConfigured(f"name a token for {url}: the home's own is for the home's server only")
    read_token = _constant(token) if token is not None else _token_reader(home / "token")
    return Server(url, workspace or setting("workspace", "default"), read_token, local)


def _build_url(host: str, port: str) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _read_settings(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise NotConfigured(f"{file} cannot be read: {error}") from error


def _constant(token: str) -> Callable[[], str]:
    return lambda: token


def _token_reader(file: Path) -> Callable[[], str]:
    def read_token() -> str:
        # Before every request: a renewed token counts at once.
        try:
            return file.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise NotConfigured(f"there is no token in {file}; start the server once with `reverie up`") from error

    return read_token
