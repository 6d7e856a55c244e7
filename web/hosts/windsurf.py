"""Windsurf: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from pathlib import Path

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import Host, Target, mcp_target, rules_target, stdio_server


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.home / ".codeium" / "windsurf"


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    if host_env.project is not None:
        # The host has no MCP servers per project.
        return [
            rules_target(
                reverie, host_env.project / ".windsurf" / "rules" / "reverie.md", "---\ntrigger: always_on\n---\n"
            ),
        ]
    folder = find_folder(host_env)
    return [
        mcp_target(folder / "mcp_config.json", "mcpServers", stdio_server(host_env, reverie)),
        rules_target(reverie, folder / "memories" / "global_rules.md"),
    ]


HOST = Host("windsurf", "Windsurf", ("windsurf",), find_folder, list_targets)
