"""Zed: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import Host, Target, list_agents_rules, mcp_target, rules_target, stdio_server


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.application_data / "Zed" if host_env.platform == "win32" else host_env.configuration / "zed"


# Zed reads only the first of these files that a project has; a new file must not hide it.
ZED_RULES = (
    ".rules",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".github/copilot-instructions.md",
    "AGENT.md",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
)


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    # Older versions mark a server of the user with `source`.
    server = stdio_server(host_env, reverie, source="custom")
    if host_env.project is None:
        folder = find_folder(host_env)
        return [
            mcp_target(folder / "settings.json", "context_servers", server),
            rules_target(reverie, folder / "AGENTS.md"),
        ]
    servers = mcp_target(host_env.project / ".zed" / "settings.json", "context_servers", server)
    rules, remarks = list_agents_rules(host_env, reverie, host_env.project, ZED_RULES)
    return [replace(servers, remarks=remarks), *rules]


HOST = Host("zed", "Zed", ("zed", "zeditor"), find_folder, list_targets)
