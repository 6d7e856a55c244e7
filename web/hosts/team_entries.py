"""MCP entries for a team server.

A header in a user's file is the same in every project, and a token in a header would be stored in a file of the host.
Therefore a user's files start `reverie mcp`, which reads the token and finds the workspace of its folder. A project's
files contain the workspace and the name of a variable for the token.
"""

import re
from collections.abc import Mapping
from typing import Any

from config.paths import WORKSPACE_HEADER
from web.hooks.client import HEADERS, HOOK_CLIENT
from web.hosts.environment import RemoteServer

PATH = "/mcp"
# Each user of a project's files has another token.
TOKEN_VARIABLE = "TEAM_MEMORY_TOKEN"  # noqa: S105 - a variable's name
# An earlier setup wrote an entry with this program for the headers.
_HELPER = re.compile(rf"(?:^|[\\/\s'\"]){re.escape(HOOK_CLIENT)}(?:\.exe)?['\"]?\s+{HEADERS}\s")


def describe_with_headers(server: RemoteServer, reference: str, **options: str) -> dict[str, Any]:
    """Return an entry for a project; `reference` is the host's syntax for the value of a variable."""
    return {
        **options,
        "url": server.url + PATH,
        "headers": {"Authorization": f"Bearer {reference}"} | _workspace(server),
    }


def describe_for_codex(server: RemoteServer) -> dict[str, Any]:
    """Return the entry for Codex, which takes the variable's name."""
    return {
        "url": server.url + PATH,
        "bearer_token_env_var": TOKEN_VARIABLE,
        "http_headers": _workspace(server),
    }


def is_remote(value: Any) -> bool:
    """Return whether an MCP entry is Reverie's entry for a team server, by its address and headers."""
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
