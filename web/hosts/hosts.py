"""The hosts that `reverie setup` supports, in the order in which it shows them."""

from collections.abc import Mapping

from web.hosts import claude_code, codex, copilot, cursor, gemini, opencode, pi, qwen_code, vscode, windsurf, zed
from web.hosts.host import Host

HOSTS: tuple[Host, ...] = tuple(
    module.HOST
    for module in (claude_code, codex, cursor, vscode, windsurf, gemini, zed, opencode, qwen_code, copilot, pi)
)
BY_NAME: Mapping[str, Host] = {host.name: host for host in HOSTS}
