"""MCP entries of a team's server: its address, where a host can say with each request whose project it is about.

A header that stands in a user's file is the same in every project, and a token in it is a token in a file of the
host's. So a user's own files name a program that finds both: Claude Code runs one for the headers, every other host
starts the bridge. A project's files hold the project's workspace and the name of a variable for the token.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from config.paths import WORKSPACE_HEADER
from web.hooks.client import HEADERS, HOOK_CLIENT
from web.hosts.environment import HostEnvironment, Installation, RemoteServer

PATH = "/mcp"
# Whoever shares a project's files has a token of their own.
TOKEN_VARIABLE = "TEAM_MEMORY_TOKEN"  # noqa: S105 - a variable's name
_HELPER = re.compile(rf"(?:^|[\\/\s'\"]){re.escape(HOOK_CLIENT)}(?:\.exe)?['\"]?\s+{HEADERS}\s")


def describe_with_helper(host_env: HostEnvironment, reverie: Installation, server: RemoteServer) -> dict[str, Any]:
    """Return an entry whose headers a program of Reverie's prints, each time that the host connects."""
    words = [reverie.program(host_env, HOOK_CLIENT), HEADERS, *reverie.options(host_env)]
    return {"type": "http", "url": server.url + PATH, "headersHelper": shlex.join(words)}


def describe_with_headers(server: RemoteServer, reference: str, kind: str | None = None) -> dict[str, Any]:
    """Return an entry of a project; `reference` is how the host writes the value of a variable."""
    return ({} if kind is None else {"type": kind}) | {
        "url": server.url + PATH,
        "headers": {"Authorization": f"Bearer {reference}"} | _workspace(server),
    }


def describe_for_codex(server: RemoteServer) -> dict[str, Any]:
    """Return the same as Codex has it: it is told the variable's name."""
    return {
        "url": server.url + PATH,
        "bearer_token_env_var": TOKEN_VARIABLE,
        "http_headers": _workspace(server),
    }


def is_remote(value: Any) -> bool:
    """Tell whether an MCP entry is Reverie's own of a team's server, by its address and what goes with it."""
    if not isinstance(value, Mapping):
        return False
    url = value.get("url") or value.get("httpUrl")
    if not (isinstance(url, str) and url.endswith(PATH)):
        return False
    headers = value.get("headers") or value.get("http_headers") or {}
    if isinstance(headers, Mapping) and WORKSPACE_HEADER in headers:
        return True
    return _HELPER.search(str(value.get("headersHelper", ""))) is not None


def _workspace(server: RemoteServer) -> dict[str, str]:
    return {} if server.workspace is None else {WORKSPACE_HEADER: server.workspace}
