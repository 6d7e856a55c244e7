"""Command that serves an agent over the Model Context Protocol (MCP)."""

import functools
import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from web.cli.command import Command, pass_state
from web.cli.state import State, choose_for_folder, find_working_folder

if TYPE_CHECKING:
    from web.mcp.connection import Choose, Connection
    from web.mcp.offered_tools import Switches


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
@click.option("--standalone", is_flag=True, help="Stop Reverie at the end of the session if the session started it.")
@pass_state
def mcp(state: State, *, profile: str, server: str | None, read_only: bool, standalone: bool) -> None:
    """Serve an agent over MCP on standard input and output; start Reverie if it is not running."""
    if standalone and server is not None:
        raise click.UsageError("--standalone excludes --server: the memory of a team is on its server.")
    # The host waits for the answer to its handshake: nothing heavy is imported before.
    from web.mcp.relay import HostLines, Relay
    from web.mcp.session import Session

    find_switches = functools.partial(_find_switches, state, server, is_read_only=read_only)
    connect = functools.partial(_connect, state, server, is_read_only=read_only, is_standalone=standalone)
    Relay(HostLines.take_standard_streams(), Session(profile, find_switches), connect).run()
    # The host waits for the end of this process. The end of the interpreter takes a tenth of a second, more under load.
    os._exit(0)


def _find_switches(state: State, team: str | None, *, is_read_only: bool) -> "Switches":
    """Return the switches of the session's workspace; with invalid settings, those of the session alone."""
    from config.settings import environment_read_only, load_settings
    from config.toml_files import SettingsError
    from config.workspace_configs import ConfigFiles
    from pipeline.kernel.errors import ReverieError
    from web.mcp.offered_tools import Switches

    with suppress(SettingsError):
        is_read_only = is_read_only or environment_read_only()
    session = Switches(may_write=not is_read_only, is_read_only_session=is_read_only)
    if team is not None:
        # The settings of its workspace are on the team's server, which checks each call.
        return session
    try:
        # The settings of a workspace in PostgreSQL are not in a file; the server checks them at each call.
        files = None if state.settings.store_place else ConfigFiles(state.settings.paths)
        settings = load_settings(own=None if files is None else files.read(_workspace_chooser(state)()))
    except (SettingsError, ReverieError, OSError):
        return session
    may_write = session.may_write and settings.write_tools and not settings.read_only
    return replace(session, is_enabled=settings.enabled, may_write=may_write)


def _workspace_chooser(state: State) -> "Choose":
    # As for hooks, an invalid `.reverie.toml` is ignored: an agent could not correct it.
    def choose(*, to_write: bool = False) -> str:
        return choose_for_folder(
            find_working_folder(), state.settings, state.named_workspace, to_write=to_write
        ).workspace

    return choose


def _connect(state: State, team: str | None, *, is_read_only: bool, is_standalone: bool) -> "Connection":
    """Return the connection to the server of a team, or to the one on this machine, which is started if it is down."""
    from config.settings import environment_incognito, environment_read_only, environment_session
    from web.http.contract import MCP
    from web.mcp.connection import Connection, MessageClient

    settings, choose = state.settings, _workspace_chooser(state)
    folder, session = str(find_working_folder() or ""), environment_session()
    if team is not None:
        from pipeline.features.team.connections import find_team

        found = find_team(settings.paths.servers, team)
        client = MessageClient(
            found.url,
            found.token,
            caller=MCP,
            incognito=environment_incognito(),
            read_only=is_read_only or environment_read_only(),
        )
        return Connection(client, choose, folder=folder, session=session, read_only=is_read_only)
    from web.stack.stack import Stack

    client = MessageClient.from_settings(settings, caller=MCP, read_only=is_read_only, folder=folder)
    return Connection(
        client,
        choose,
        Stack(settings, ends_with_process=is_standalone),
        folder=folder,
        session=session,
        read_only=is_read_only,
    )
