"""pi: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hook_entries import PI
from web.hosts.host import Host, Target, list_agents_rules, mcp_target, project_server, stdio_server
from web.hosts.plugin_file import plugin_target
from web.hosts.team_entries import TOKEN_VARIABLE, describe_with_headers

# pi reads the first of them.
_RULES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.folder("PI_CODING_AGENT_DIR", host_env.home / ".pi" / "agent")


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    folder = rules = find_folder(host_env)
    if host_env.project is not None:
        folder, rules = host_env.project / ".pi", host_env.project
    team = project_server(host_env, reverie)
    server = stdio_server(host_env, reverie)
    if team is not None:
        server = describe_with_headers(team, f"${{{TOKEN_VARIABLE}}}")
    # Otherwise the model has to search for the tools.
    server |= {"exposure": "direct"}
    texts, remarks = list_agents_rules(host_env, reverie, rules, _RULES)
    plugin = plugin_target(PI, host_env, reverie, folder / "extensions" / "reverie.js")
    return [
        replace(plugin, remarks=remarks),
        mcp_target(folder / "mcp.json", "mcpServers", server),
        *texts,
    ]


HOST = Host(PI, "pi", ("pi",), find_folder, list_targets, package="@earendil-works/pi-coding-agent")
