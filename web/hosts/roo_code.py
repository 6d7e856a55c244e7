"""Roo Code, an extension of VS Code: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from pathlib import Path

from web.hosts import vscode
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import Host, Target, mcp_target, rules_target, stdio_server


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its data in VS Code."""
    return vscode.find_folder(host_env) / "globalStorage" / "rooveterinaryinc.roo-cline"


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    folder = (host_env.home if host_env.project is None else host_env.project) / ".roo"
    servers = folder / "mcp.json"
    if host_env.project is None:
        servers = find_folder(host_env) / "settings" / "mcp_settings.json"
    return [
        mcp_target(servers, "mcpServers", stdio_server(host_env, reverie)),
        rules_target(reverie, folder / "rules" / "reverie.md"),
    ]


HOST = Host("roo-code", "Roo Code", (), find_folder, list_targets)
