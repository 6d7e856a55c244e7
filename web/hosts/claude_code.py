"""Claude Code: its files and the entries that setup writes into them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from web.hosts.entries import CannotEdit
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hook_entries import CLAUDE_CODE, list_hooks
from web.hosts.host import NAME, TOKEN_VARIABLE, Host, Target, mcp_target, rules_target, server_of_project
from web.hosts.installed_files import read

# Claude Code ignores a settings file completely if it contains an unknown event.
EVENTS_SINCE = (2, 1, 63)


def claude_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.folder("CLAUDE_CONFIG_DIR", host_env.home / ".claude")


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    folder = claude_folder(host_env)
    if host_env.project is not None:
        settings, server = host_env.project / ".claude" / "settings.json", host_env.project / ".mcp.json"
        # A new CLAUDE.md would hide the project's AGENTS.md.
        rules = host_env.project / ".claude" / "rules" / "reverie.md"
    else:
        # The file is next to the default folder, but inside a folder that the variable names.
        server = host_env.folder("CLAUDE_CONFIG_DIR", host_env.home) / ".claude.json"
        settings, rules = folder / "settings.json", folder / "CLAUDE.md"
    hooks = _claude_hooks(host_env, reverie, settings)
    return [
        hooks,
        _claude_server(host_env, reverie, server, (settings, folder / "settings.json")),
        rules_target(reverie, rules),
    ]


def _claude_server(host_env: HostEnvironment, reverie: Installation, path: Path, settings: Sequence[Path]) -> Target:
    target = mcp_target(path, "mcpServers", describe_for_claude(host_env, reverie))
    if not any(has_plugin(file) for file in settings):
        return target
    # Claude Code recognizes two servers as the same only by an equal command; otherwise it lists every tool twice.
    remark = "Reverie's plugin brings the MCP server"
    return replace(target, entries=(), obsolete=target.all_entries, remarks=(remark,))


def describe_for_claude(host_env: HostEnvironment, reverie: Installation) -> dict[str, Any]:
    """Return the MCP entry for Claude Code."""
    team, local = {"type": "http"}, {"type": "stdio"}
    server = server_of_project(host_env, reverie, f"${{{TOKEN_VARIABLE}}}", team=team, local=local)
    # Otherwise the model has to search for the tools.
    return server | {"alwaysLoad": True}


def has_plugin(settings: Path) -> bool:
    """Return whether Claude Code's settings enable the plugin; unreadable settings are reported later."""
    try:
        enabled = json.loads(read(settings) or b"{}").get("enabledPlugins", {})
        return any(value is True and name.partition("@")[0] == NAME for name, value in enabled.items())
    except (CannotEdit, ValueError, RecursionError, AttributeError):
        return False


def _claude_hooks(host_env: HostEnvironment, reverie: Installation, settings: Path) -> Target:
    version = host_env.version("claude")
    if version is None or version >= EVENTS_SINCE:
        return Target(settings, "json", list_hooks(CLAUDE_CODE, host_env, reverie))
    installed, needed = (".".join(map(str, numbers)) for numbers in (version, EVENTS_SINCE))
    remark = f"Claude Code {installed} does not know every event; after an update to {needed} run the setup again"
    return Target(settings, "json", (), remarks=(remark,), obsolete=list_hooks(CLAUDE_CODE, host_env, reverie))


HOST = Host("claude-code", "Claude Code", ("claude",), claude_folder, list_targets, package="@anthropic-ai/claude-code")
