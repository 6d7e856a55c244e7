"""Antigravity, the editor and the command line program: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from pathlib import Path

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hook_entries import ANTIGRAVITY, describe_named_hooks
from web.hosts.host import Host, Target, mcp_target, rules_target, stdio_server


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of the program that is installed."""
    command_line, editor = (host_env.home / ".gemini" / name for name in ("antigravity-cli", "antigravity"))
    return command_line if command_line.is_dir() else editor


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    gemini = host_env.home / ".gemini"
    folder = gemini / "config" if host_env.project is None else host_env.project / ".agents"
    hooks = describe_named_hooks(ANTIGRAVITY, host_env, reverie)
    # The prompt is in a file of this machine, which a team's server cannot read.
    is_local = reverie.server is None
    rules = rules_target(reverie, gemini / "GEMINI.md")
    if host_env.project is not None:
        rules = rules_target(reverie, folder / "rules" / "reverie.md", "---\ntrigger: always_on\n---\n")
    return [
        Target(folder / "hooks.json", "json", (hooks,) if is_local else (), obsolete=() if is_local else (hooks,)),
        mcp_target(folder / "mcp_config.json", "mcpServers", stdio_server(host_env, reverie)),
        rules,
    ]


HOST = Host(ANTIGRAVITY, "Antigravity", ("agy", "antigravity"), find_folder, list_targets)
