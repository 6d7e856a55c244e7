"""opencode: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from web.hosts.claude_code import claude_folder
from web.hosts.environment import MAIN, HostEnvironment, Installation
from web.hosts.hook_entries import OPENCODE
from web.hosts.host import Host, Target, find_existing, list_agents_rules, mcp_target, project_server, rules_target
from web.hosts.plugin_file import plugin_target
from web.hosts.team_entries import TOKEN_VARIABLE, describe_with_headers

# opencode reads the first of them.
_RULES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.configuration / "opencode"


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    folder = find_folder(host_env) if host_env.project is None else host_env.project
    variables = reverie.variables_for(host_env)
    server = {
        "type": "local",
        "command": [reverie.program(host_env, MAIN), "mcp", *reverie.server_arguments],
        "enabled": True,
    } | ({"environment": variables} if variables else {})
    team = project_server(host_env, reverie)
    if team is not None:
        server = describe_with_headers(team, f"{{env:{TOKEN_VARIABLE}}}", "remote") | {"enabled": True}
    rules, remarks = list_agents_rules(host_env, reverie, folder, _RULES)
    claude = claude_folder(host_env) / "CLAUDE.md"
    if host_env.project is None and not rules[0].path.is_file() and claude.is_file():
        # The host reads Claude Code's rules if it has no rules file.
        rules = [rules_target(reverie, claude)]
    settings = find_existing(folder, ("opencode.jsonc", "opencode.json"), "opencode.json")
    plugins = folder if host_env.project is None else folder / ".opencode"
    plugin = plugin_target(OPENCODE, host_env, reverie, plugins / "plugin" / "reverie.js")
    return [replace(plugin, remarks=remarks), mcp_target(settings, "mcp", server), *rules]


HOST = Host(OPENCODE, "opencode", ("opencode",), find_folder, list_targets, package="opencode-ai")
