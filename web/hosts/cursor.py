"""Cursor: its files and the entries that setup writes into them."""

from collections.abc import Sequence

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hook_entries import CURSOR, list_hooks
from web.hosts.host import Host, Target, mcp_target, project_server, rules_target, stdio_server
from web.hosts.team_entries import TOKEN_VARIABLE, describe_with_headers


def list_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    team = project_server(host_env, reverie)
    server = (
        stdio_server(host_env, reverie) if team is None else describe_with_headers(team, f"${{env:{TOKEN_VARIABLE}}}")
    )
    folder = (host_env.home if host_env.project is None else host_env.project) / ".cursor"
    targets = [
        Target(folder / "hooks.json", "json", list_hooks(CURSOR, host_env, reverie)),
        mcp_target(folder / "mcp.json", "mcpServers", server),
    ]
    if host_env.project is not None:
        # Cursor stores a user's rules inside the program.
        head = "---\ndescription: Memory of this project\nalwaysApply: true\n---\n"
        targets.append(rules_target(reverie, folder / "rules" / "reverie.mdc", head))
    return targets


HOST = Host(CURSOR, "Cursor", ("cursor", "cursor-agent"), lambda host_env: host_env.home / ".cursor", list_targets)
