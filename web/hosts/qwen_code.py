"""Qwen Code, a fork of Gemini CLI: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from pathlib import Path

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.gemini import list_gemini_targets
from web.hosts.hook_entries import QWEN_CODE
from web.hosts.host import Host, Target


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.folder("QWEN_HOME", host_env.home / ".qwen")


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    folder = find_folder(host_env) if host_env.project is None else Path(".qwen")
    # Otherwise the model has to search for the tools.
    return list_gemini_targets(host_env, reverie, QWEN_CODE, folder, "QWEN.md", {"alwaysLoadTools": True})


HOST = Host(QWEN_CODE, "Qwen Code", ("qwen",), find_folder, list_targets, package="@qwen-code/qwen-code")
