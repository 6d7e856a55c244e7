"""Copilot CLI: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from pathlib import Path

from web.hosts.claude_code import describe_for_claude
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hook_entries import COPILOT, list_hooks
from web.hosts.host import Host, Target, mcp_target, rules_target, stdio_server
from web.hosts.vscode import INSTRUCTIONS, INSTRUCTIONS_HEAD


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.folder("COPILOT_HOME", host_env.home / ".copilot")


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    hooks = list_hooks(COPILOT, host_env, reverie)
    if host_env.project is None:
        folder = find_folder(host_env)
        # Without `tools` the host shows no tool of a server in this file.
        server = stdio_server(host_env, reverie, type="local") | {"tools": ["*"]}
        return [
            Target(folder / "settings.json", "json", hooks),
            mcp_target(folder / "mcp-config.json", "mcpServers", server),
            rules_target(reverie, folder / "copilot-instructions.md"),
        ]
    # A new copilot-instructions.md would hide AGENTS.md from Zed.
    rules = rules_target(reverie, host_env.project / INSTRUCTIONS, INSTRUCTIONS_HEAD)
    return [
        Target(host_env.project / ".github" / "hooks" / "reverie.json", "json", hooks),
        # The file of Claude Code, so the entry is the same.
        mcp_target(host_env.project / ".mcp.json", "mcpServers", describe_for_claude(host_env, reverie)),
        rules,
    ]


HOST = Host(
    "copilot", "Copilot CLI", ("copilot",), find_folder, list_targets, ("copilot-cli",), package="@github/copilot"
)
