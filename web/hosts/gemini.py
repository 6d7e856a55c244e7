"""Gemini CLI: its files and the entries that setup writes into them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from web.hosts.entries import HostEntry
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hook_entries import GEMINI, list_hooks
from web.hosts.host import Host, Target, project_server, rules_target, server_entries, stdio_server
from web.hosts.team_entries import TOKEN_VARIABLE, describe_with_headers


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    folder = host_env.home / ".gemini"
    return list_gemini_targets(host_env, reverie, GEMINI, folder, "GEMINI.md")


def list_gemini_targets(
    host_env: HostEnvironment,
    reverie: Installation,
    host: str,
    folder: Path,
    rules: str,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Sequence[Target]:
    """Return the files of Gemini CLI or of a fork; `folder` is the user's folder, `rules` the name of its rules.

    `options` are a fork's own options of an MCP server.
    """
    settings, text = folder / "settings.json", folder / rules
    if host_env.project is not None:
        settings, text = host_env.project / folder.name / "settings.json", host_env.project / rules
    team = project_server(host_env, reverie)
    described = stdio_server(host_env, reverie)
    if team is not None:
        # The host accepts a streamable HTTP address only under this name.
        described = describe_with_headers(team, f"${TOKEN_VARIABLE}")
        described = {"httpUrl": described.pop("url")} | described
    server, other = server_entries("mcpServers", {**described, **options})
    entries: tuple[HostEntry, ...] = (*list_hooks(host, host_env, reverie), server)
    return [Target(settings, "json", entries, obsolete=(other,)), rules_target(reverie, text)]


HOST = Host(
    "gemini",
    "Gemini CLI",
    ("gemini",),
    lambda host_env: host_env.home / ".gemini",
    list_targets,
    ("gemini-cli",),
    package="@google/gemini-cli",
)
