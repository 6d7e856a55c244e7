"""Codex: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from web.hosts.entries import HostEntry, TomlKey, TomlTable
from web.hosts.environment import CODEX_NOTIFY_CLIENT, HostEnvironment, Installation
from web.hosts.hook_entries import CODEX, list_hooks
from web.hosts.host import (
    NAME,
    Host,
    Target,
    describe_for_codex,
    is_our_server,
    is_program,
    is_remote,
    list_agents_rules,
    project_server,
    stdio_server,
)

CODEX_TRUST_REMARK = (
    "Codex runs hooks only once you trust them: at its next start it says “Hooks need review”; choose “Trust all and"
    " continue”, or look at each with /hooks. It asks again whenever their command changes"
)
# Codex reads the first of them in a folder.
_RULES = ("AGENTS.override.md", "AGENTS.md")


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.folder("CODEX_HOME", host_env.home / ".codex")


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    path, team = ("mcp_servers", NAME), project_server(host_env, reverie)
    server = TomlTable(path, stdio_server(host_env, reverie), is_our_server)
    other = TomlTable(path, {}, is_remote)
    if team is not None:
        server, other = TomlTable(path, describe_for_codex(team), is_remote), TomlTable(path, {}, is_our_server)
    root = find_folder(host_env) if host_env.project is None else host_env.project / ".codex"
    folder = root if host_env.project is None else host_env.project
    rules, remarks = list_agents_rules(host_env, reverie, folder, _RULES)
    hooks = Target(
        root / "hooks.json", "json", list_hooks(CODEX, host_env, reverie), remarks=(CODEX_TRUST_REMARK, *remarks)
    )
    # Codex appends its notification to these words.
    program = [reverie.program(host_env, CODEX_NOTIFY_CLIENT), *reverie.options(host_env)]
    notify = TomlKey("notify", program, is_our_notify)
    # Codex reads no notify program from a project.
    entries: tuple[HostEntry, ...] = (server,) if host_env.project is not None else (notify, server)
    return [hooks, Target(root / "config.toml", "toml", entries, obsolete=(other,)), *rules]


def is_our_notify(value: Any) -> bool:
    """Return whether Codex's notify program is Reverie's."""
    return isinstance(value, list) and bool(value) and is_program(value[0], CODEX_NOTIFY_CLIENT)


HOST = Host("codex", "Codex", ("codex",), find_folder, list_targets, package="@openai/codex")
