"""Amp: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import Host, Target, find_existing, list_agents_rules, mcp_target, stdio_server

APPROVAL_REMARK = "Amp starts the server of a project only after `amp mcp approve reverie`"


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings, which is the same on each platform."""
    return host_env.home / ".config" / "amp"


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    folder = rules_folder = find_folder(host_env)
    if host_env.project is not None:
        folder, rules_folder = host_env.project / ".amp", host_env.project
    settings = find_existing(folder, ("settings.jsonc", "settings.json"), "settings.json")
    # Amp reads the others only if there is no AGENTS.md.
    rules, remarks = list_agents_rules(host_env, reverie, rules_folder, ("AGENTS.md", "AGENT.md", "CLAUDE.md"))
    # The dot is a part of the key.
    servers = mcp_target(settings, "amp.mcpServers", stdio_server(host_env, reverie))
    if host_env.project is not None:
        servers = replace(servers, remarks=(APPROVAL_REMARK, *remarks))
    return [servers, *rules]


HOST = Host("amp", "Amp", ("amp",), find_folder, list_targets)
