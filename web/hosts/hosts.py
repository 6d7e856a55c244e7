"""The hosts that `reverie setup` supports, in the order in which it shows them."""

from collections.abc import Mapping

from web.hosts import command_line_agents as agents, editors
from web.hosts.host import Host

HOSTS: tuple[Host, ...] = (
    *(
        agents.CLAUDE_CODE_HOST,
        agents.CODEX_HOST,
        editors.CURSOR_HOST,
        editors.VSCODE,
        editors.WINDSURF,
        agents.GEMINI_HOST,
    ),
    *(editors.ZED, agents.OPENCODE_HOST, agents.KILO_HOST, agents.QWEN_CODE_HOST, agents.COPILOT_HOST, agents.PI_HOST),
    *(agents.CLINE_HOST, editors.ANTIGRAVITY_HOST, agents.GOOSE, agents.AMP, editors.ROO_CODE, editors.KIRO),
)
BY_NAME: Mapping[str, Host] = {host.name: host for host in HOSTS}
