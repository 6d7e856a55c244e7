"""VS Code: its files and the entries that setup writes into them."""

from collections.abc import Sequence
from pathlib import Path

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import Host, Target, mcp_target, project_server, rules_target, stdio_server
from web.hosts.team_entries import TOKEN_VARIABLE, describe_with_headers

# Copilot CLI reads this file too.
INSTRUCTIONS = ".github/instructions/reverie.instructions.md"
INSTRUCTIONS_HEAD = '---\ndescription: Memory of this project\napplyTo: "**"\n---\n'


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    team = project_server(host_env, reverie)
    server = stdio_server(host_env, reverie, type="stdio")
    if team is not None:
        server = describe_with_headers(team, f"${{env:{TOKEN_VARIABLE}}}", "http")
    if host_env.project is None:
        folder = find_folder(host_env)
        return [
            mcp_target(folder / "mcp.json", "servers", server),
            rules_target(reverie, folder / "prompts" / "reverie.instructions.md", INSTRUCTIONS_HEAD),
        ]
    return [
        mcp_target(host_env.project / ".vscode" / "mcp.json", "servers", server),
        rules_target(reverie, host_env.project / INSTRUCTIONS, INSTRUCTIONS_HEAD),
    ]


def find_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.application_data / "Code" / "User"


HOST = Host("vscode", "VS Code", ("code",), find_folder, list_targets, ("vscode-copilot",))
