"""Kiro, the editor and the command line program: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from pathlib import Path

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import Host, Target, mcp_target, rules_target, stdio_server


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.home / ".kiro"


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    folder = find_folder(host_env) if host_env.project is None else host_env.project / ".kiro"
    return [
        mcp_target(folder / "settings" / "mcp.json", "mcpServers", stdio_server(host_env, reverie)),
        rules_target(reverie, folder / "steering" / "reverie.md", "---\ninclusion: always\n---\n"),
    ]


HOST = Host("kiro", "Kiro", ("kiro-cli", "kiro"), find_folder, list_targets)
