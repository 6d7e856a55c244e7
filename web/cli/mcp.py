"""Serve agents over the Model Context Protocol."""

import functools
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from web.cli.command import Command, State, choose_for_folder, pass_state

if TYPE_CHECKING:
    from web.mcp.bridge import Bridge, Choose, RefusingBridge, TeamBridge
    from web.mcp.opening import OpeningLine


@click.command("mcp", cls=Command)
@click.option(
    "--profile",
    type=click.Choice(["core", "full"]),
    default="core",
    show_default=True,
    help="Which tools to offer: the ten that every agent needs, or all.",
)
@click.option("--server", metavar="NAME", help="Ask this team's server instead of this machine's own.")
@pass_state
def mcp(state: State, *, profile: str, server: str | None) -> None:
    """Serve an agent over MCP; starts the stack when it is down."""
    # The protocol is in UTF-8, also where the terminal is not.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    # The host waits for these answers: they are given before anything heavy is imported.
    from web.mcp.opening import HostInput, Loading, answer_opening

    loading = Loading(lambda: _load_server(state, profile, server))
    host = HostInput(sys.stdin.fileno())
    heard = answer_opening(host, sys.stdout, profile, loading)
    if not heard:
        return
    serve, bridge = loading.result()
    serve(heard)
    bridge.close()


def _load_server(
    state: State, profile: str, team: str | None
) -> "tuple[Callable[[Sequence[OpeningLine]], None], Bridge | TeamBridge | RefusingBridge]":
    """Return how to serve a host on the SDK, and the way to the web server."""
    from config.settings import SettingsError
    from web.mcp.bridge import RefusingBridge

    bridge: Bridge | TeamBridge | RefusingBridge
    try:
        bridge = _bridge(state) if team is None else _team_bridge(state, team)
    except SettingsError as error:
        bridge = RefusingBridge(str(error))
    from config.settings import environment_session
    from web.mcp.full_tools import PROFILES
    from web.mcp.server import always, build_server
    from web.mcp.stdio import serve_stdio

    server = build_server(always(bridge), PROFILES[profile], str(_folder() or ""), environment_session())
    return functools.partial(serve_stdio, server), bridge


def _folder() -> Path | None:
    """Return the folder that the host works in, None where it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _team_bridge(state: State, name: str) -> "TeamBridge":
    from pipeline.services.team_servers import find_team
    from web.mcp.bridge import TeamBridge

    team = find_team(state.settings.paths.servers, name)
    return TeamBridge(team.url, team.token, _chooser(state))


def _chooser(state: State) -> "Choose":
    # As for hooks: a `.reverie.toml` that cannot be taken is left out, an agent could do nothing about it.
    def workspace(*, to_write: bool = False) -> str:
        return choose_for_folder(_folder(), state.settings, state.named_workspace, to_write=to_write).workspace

    return workspace


def _bridge(state: State) -> "Bridge":
    """Return the way to the web server, on which the stack is being started when it is down."""
    from web.cli.lifecycle import launch
    from web.mcp.bridge import Bridge

    settings = state.settings

    def project() -> str | None:
        # Of no use where no team is asked.
        if not settings.paths.servers.is_dir():
            return None
        return choose_for_folder(_folder(), settings, state.named_workspace).project

    bridge = Bridge(settings, _chooser(state), lambda: launch(settings), project)
    bridge.start_in_background()
    return bridge
