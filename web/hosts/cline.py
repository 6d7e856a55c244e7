"""Cline's command line: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from pathlib import Path

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hook_entries import CLINE
from web.hosts.host import Host, Target, mcp_target, rules_target, stdio_server
from web.hosts.plugin_file import plugin_target

_PLUGIN = Path("plugins", "reverie.js")


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.folder("CLINE_DIR", host_env.home / ".cline")


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    if host_env.project is not None:
        # The host has no MCP servers per project.
        return [
            plugin_target(CLINE, host_env, reverie, host_env.project / ".cline" / _PLUGIN),
            # A new AGENTS.md would hide the rules of other agents.
            rules_target(reverie, host_env.project / ".cline" / "rules" / "reverie.md"),
        ]
    folder = find_folder(host_env)
    servers = host_env.folder("CLINE_DATA_DIR", folder / "data") / "settings" / "cline_mcp_settings.json"
    return [
        plugin_target(CLINE, host_env, reverie, folder / _PLUGIN),
        mcp_target(servers, "mcpServers", stdio_server(host_env, reverie)),
        rules_target(reverie, folder / "rules" / "reverie.md"),
    ]


HOST = Host(CLINE, "Cline", ("cline",), find_folder, list_targets, package="cline")
