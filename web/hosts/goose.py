"""Goose: its files and the entries that setup writes into them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from web.hosts.entries import JsonMember
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import NAME, Host, Target, is_our_server, rules_target, stdio_server

# The seconds that a call of a tool may take, as in the host's own entries.
TIMEOUT_S = 300


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    if host_env.platform == "win32":
        return host_env.application_data / "Block" / "goose" / "config"
    return host_env.configuration / "goose"


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    if host_env.project is not None:
        # The host has no extensions per project. A new AGENTS.md would hide the rules of other agents.
        return [rules_target(reverie, host_env.project / ".goosehints")]
    folder, server = find_folder(host_env), stdio_server(host_env, reverie)
    extension = {
        "enabled": True,
        "type": "stdio",
        "name": NAME,
        "cmd": server["command"],
        "args": server["args"],
        "envs": server.get("env", {}),
        "timeout": TIMEOUT_S,
    }
    return [
        Target(folder / "config.yaml", "yaml", (JsonMember(("extensions",), NAME, extension, is_our_extension),)),
        rules_target(reverie, folder / ".goosehints"),
    ]


def is_our_extension(value: Any) -> bool:
    """Return whether an extension starts Reverie."""
    if not isinstance(value, Mapping):
        return False
    return is_our_server({"command": value.get("cmd"), "args": value.get("args")})


HOST = Host("goose", "Goose", ("goose",), find_folder, list_targets)
