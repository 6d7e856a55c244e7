"""Gemini CLI: its files and the entries that setup writes into them."""

from collections.abc import Sequence

from web.hosts.entries import HostEntry
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hook_entries import GEMINI, list_hooks
from web.hosts.host import Host, Target, project_server, rules_target, server_entries, stdio_server
from web.hosts.team_entries import TOKEN_VARIABLE, describe_with_headers


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    root = host_env.home if host_env.project is None else host_env.project
    rules = root / ".gemini" / "GEMINI.md" if host_env.project is None else root / "GEMINI.md"
    team = project_server(host_env, reverie)
    described = stdio_server(host_env, reverie)
    if team is not None:
        # The host accepts a streamable HTTP address only under this name.
        described = describe_with_headers(team, f"${TOKEN_VARIABLE}")
        described = {"httpUrl": described.pop("url")} | described
    server, other = server_entries("mcpServers", described)
    entries: tuple[HostEntry, ...] = (*list_hooks(GEMINI, host_env, reverie), server)
    return [
        Target(root / ".gemini" / "settings.json", "json", entries, obsolete=(other,)),
        rules_target(reverie, rules),
    ]


HOST = Host(
    "gemini", "Gemini CLI", ("gemini",), lambda host_env: host_env.home / ".gemini", list_targets, ("gemini-cli",)
)
