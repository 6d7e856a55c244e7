"""Command that serves an agent over the Model Context Protocol (MCP)."""

import functools
import io
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from web.cli.command import Command, pass_state
from web.cli.state import State, choose_for_folder, find_working_folder

if TYPE_CHECKING:
    from web.mcp.bridge import Bridge, Choose, RefusingBridge, TeamBridge
    from web.mcp.offered_tools import FindSwitches, Switches
    from web.mcp.opening import OpeningLine
    from web.mcp.standalone import StandaloneServer

    Opened = Bridge | TeamBridge | RefusingBridge | StandaloneServer


@click.command("mcp", cls=Command)
@click.option(
    "--profile",
    type=click.Choice(["core", "full", "none"]),
    default="core",
    show_default=True,
    help="Tools to offer: core for the ten most useful, full for all, none for a chat without memory tools.",
)
@click.option("--server", metavar="NAME", help="Use the server of this team instead of the one on this machine.")
@click.option("--read-only", is_flag=True, help="Offer only tools that read; store nothing from this session.")
@click.option("--standalone", is_flag=True, help="Use the files directly, without a server or port.")
@pass_state
def mcp(state: State, *, profile: str, server: str | None, read_only: bool, standalone: bool) -> None:
    """Serve an agent over MCP on standard input and output; start Reverie if it is not running."""
    if standalone and server is not None:
        raise click.UsageError("--standalone excludes --server: the memory of a team is on its server.")
    # MCP requires UTF-8, whatever the encoding of the terminal is.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    # The host waits for these answers: send them before anything heavy is imported.
    from web.mcp.opening import HostInput, Loading, answer_opening

    find_switches = _switches_finder(state, server, is_read_only=read_only)
    open_server = functools.partial(_open_server, state, server, is_read_only=read_only, is_standalone=standalone)
    loading = Loading(lambda: _load_server(profile, open_server, find_switches))
    host = HostInput(sys.stdin.fileno())
    opening = answer_opening(host, sys.stdout, profile, loading, find_switches)
    if not opening:
        return
    serve, bridge = loading.result()
    serve(opening)
    bridge.close()


def _switches_finder(state: State, team: str | None, *, is_read_only: bool) -> "FindSwitches":
    """Return the function that reads the switches of the session's workspace."""

    def find(_request: object) -> "Switches":
        from web.mcp.local_switches import read_switches, session_switches

        if team is not None:
            # The settings of its workspace are on the team's server, which checks each call.
            return session_switches(is_read_only=is_read_only)
        choose = _workspace_chooser(state)
        return read_switches(lambda: state.settings, choose, is_read_only=is_read_only)

    return find


def _load_server(
    profile: str, open_server: "Callable[[], Opened]", find_switches: "FindSwitches"
) -> "tuple[Callable[[Sequence[OpeningLine]], None], Opened]":
    """Return the function that serves a host with the SDK, and the server of its tools."""
    bridge = open_server()
    from config.settings import environment_session
    from web.mcp.full_tools import PROFILES, REVEALED
    from web.mcp.server import always, build_server
    from web.mcp.session_notifier import SessionNotifier
    from web.mcp.stdio import serve_stdio

    folder, session = str(find_working_folder() or ""), environment_session()
    more = REVEALED if profile == "core" else ()
    notifier = SessionNotifier(bridge.events)
    server = build_server(always(bridge), PROFILES[profile], folder, session, find_switches, more, notifier)
    return functools.partial(serve_stdio, server), bridge


def _open_server(state: State, team: str | None, *, is_read_only: bool, is_standalone: bool) -> "Opened":
    """Return the server of the tools: a bridge to a web server, or this process."""
    from config.toml_files import SettingsError
    from web.mcp.bridge import RefusingBridge

    try:
        if is_standalone:
            return _open_standalone(state, is_read_only=is_read_only)
        if team is not None:
            return _open_team_bridge(state, team, is_read_only=is_read_only)
        return _open_bridge(state, is_read_only=is_read_only)
    except SettingsError as error:
        return RefusingBridge(str(error))


def _open_team_bridge(state: State, name: str, *, is_read_only: bool) -> "TeamBridge":
    from pipeline.services.team_servers import find_team
    from web.mcp.bridge import TeamBridge

    team = find_team(state.settings.paths.servers, name)
    return TeamBridge(team.url, team.token, _workspace_chooser(state), read_only=is_read_only)


def _workspace_chooser(state: State) -> "Choose":
    # As for hooks, an invalid `.reverie.toml` is ignored: an agent could not correct it.
    def choose(*, to_write: bool = False) -> str:
        return choose_for_folder(
            find_working_folder(), state.settings, state.named_workspace, to_write=to_write
        ).workspace

    return choose


def _open_standalone(state: State, *, is_read_only: bool) -> "StandaloneServer | RefusingBridge":
    """Return the server in this process, or one that tells the host why the data directory cannot be used."""
    from pipeline.errors import ReverieError
    from web.mcp.bridge import RefusingBridge
    from web.mcp.standalone import open_standalone, prepare_process

    settings = state.settings
    prepare_process(settings)
    try:
        return open_standalone(settings, _workspace_chooser(state), read_only=is_read_only)
    except (ReverieError, OSError) as error:
        return RefusingBridge(f"Cannot open {settings.paths.root}: {error}")


def _open_bridge(state: State, *, is_read_only: bool) -> "Bridge":
    """Return the bridge to the web server; it starts the stack in the background if it is not running."""
    from web.cli.background import launch
    from web.mcp.bridge import Bridge

    settings, folder = state.settings, str(find_working_folder() or "")
    bridge = Bridge(
        settings, _workspace_chooser(state), lambda: launch(settings), read_only=is_read_only, folder=folder
    )
    bridge.start_in_background()
    return bridge
