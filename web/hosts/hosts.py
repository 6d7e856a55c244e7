"""The hosts that `reverie setup` supports, in the order in which it shows them."""

from collections.abc import Mapping

from web.hosts import (
    amp,
    antigravity,
    claude_code,
    cline,
    codex,
    copilot,
    cursor,
    gemini,
    goose,
    kiro,
    opencode,
    pi,
    qwen_code,
    roo_code,
    vscode,
    windsurf,
    zed,
)
from web.hosts.host import Host

_MODULES = (
    *(claude_code, codex, cursor, vscode, windsurf, gemini, zed, opencode, qwen_code, copilot, pi, cline),
    *(antigravity, goose, amp, roo_code, kiro),
)
HOSTS: tuple[Host, ...] = tuple(module.HOST for module in _MODULES)
BY_NAME: Mapping[str, Host] = {host.name: host for host in HOSTS}
