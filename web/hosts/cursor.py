"""Cursor: its files and the entries that setup writes into them."""

from collections.abc import Sequence

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import Host, Target, mcp_target, project_server, rules_target, stdio_server
from web.hosts.team_entries import TOKEN_VARIABLE, describe_with_headers


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    team = project_server(host_env, reverie)
    server = (
        stdio_server(host_env, reverie) if team is None else describe_with_headers(team, f"${{env:{TOKEN_VARIABLE}}}")
    )
    if host_env.project is None:
        # Cursor stores a user's rules inside the program.
        return [mcp_target(host_env.home / ".cursor" / "mcp.json", "mcpServers", server)]
    head = "---\ndescription: Memory of this project\nalwaysApply: true\n---\n"
    return [
        mcp_target(host_env.project / ".cursor" / "mcp.json", "mcpServers", server),
        rules_target(reverie, host_env.project / ".cursor" / "rules" / "reverie.mdc", head),
    ]


HOST = Host("cursor", "Cursor", ("cursor",), lambda host_env: host_env.home / ".cursor", list_targets)
