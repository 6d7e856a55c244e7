"""Command that connects coding agents to Reverie after showing the changes, or disconnects them."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import click

from config.program_variables import list_moving_variables
from pipeline.features.team.connections import add_team, list_teams, remove_team
from pipeline.features.team.servers import name_of
from pipeline.text.addresses import check_server_url
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import show_waiting
from web.cli.state import State, find_user_home, find_working_folder
from web.features.configuration.commands import fill_encoder_cache
from web.features.diagnostics.checks import check_torch
from web.features.hosts.report import (
    ImportOffer,
    describe,
    find_offer,
    list_connections,
    list_titles,
    show_agents,
    show_diffs,
    show_kept,
    show_next_steps,
    show_plan,
    start_import,
    suggest_questions,
)
from web.hosts.environment import HOST_VARIABLES, HostEnvironment, Installation, RemoteServer, programs_folder
from web.hosts.host import Host
from web.hosts.hosts import BY_NAME, HOSTS as KNOWN
from web.hosts.installed_files import read_state
from web.hosts.setup_plan import FileChange, apply, plan_removal, plan_setup
from web.stack.stack import Stack

HOSTS = (
    *(
        "claude-code",
        "codex",
        "cursor",
        "vscode",
        "windsurf",
        "gemini",
        "zed",
        "opencode",
        "kilo",
        "qwen-code",
        "copilot",
        "pi",
        "cline",
    ),
    *("antigravity", "goose", "amp", "roo-code", "kiro"),
)
VERSION_TIMEOUT_S = 5


class HostName(click.Choice[str]):
    """The name of a host; the start of a name is enough if it is unique."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the complete name."""
        matches = [name for name in HOSTS if name.startswith(str(value).lower())]
        return super().convert(matches[0] if len(matches) == 1 else value, param, ctx)


class _SetupCommand(Command):
    """The command with the hosts' environment variables as hidden parameters: commands do not read the environment."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in HOST_VARIABLES:
            self.params.append(click.Option([f"--{name.lower()}"], envvar=name, hidden=True))


@click.command(cls=_SetupCommand)
@click.argument("hosts", nargs=-1, metavar="[HOST]...", type=HostName(HOSTS))
@options.yes
@click.option("--diff", is_flag=True, help="Show each line that changes before you are asked.")
@click.option("--dry-run", is_flag=True, help="Show what would change without writing it.")
@click.option("--project", is_flag=True, help="Change files of the current project instead of your user settings.")
@click.option("--remove", is_flag=True, help="Remove everything that setup has written.")
@click.option("--no-import", is_flag=True, help="Do not import the sessions that agents have stored on this machine.")
@click.option(
    "--server", metavar="URL", help="Connect the agents to the team server at URL instead of the one on this machine."
)
@options.token_file
@pass_state
def setup(
    state: State,
    /,
    *,
    hosts: tuple[str, ...],
    yes: bool,
    diff: bool,
    dry_run: bool,
    project: bool,
    remove: bool,
    no_import: bool,
    server: str | None,
    token_file: Path | None,
    **moved: str | None,
) -> int:
    """Connect coding agents: write hooks, MCP entry and rules into the settings of each HOST; import its sessions.

    Then start the server. Without a HOST, connect all agents that are installed, and import the sessions of all
    agents. HOST is one of claude-code, codex, cursor, vscode, windsurf, gemini, zed, opencode, kilo, qwen-code,
    copilot, pi, cline, antigravity, goose, amp, roo-code, kiro.
    """
    if state.json and not (yes or dry_run):
        raise click.UsageError("Cannot ask for confirmation with --json. Add --yes or --dry-run.")
    root, host_env = state.settings.paths.root, _host_environment(moved, project=project)
    team = _find_server(state, server, token_file, host_env)
    # Files of a project, and of a team's server, do not concern the sessions of this machine.
    imports = not (no_import or remove or project or server)
    planned = _plan(state, hosts, host_env, team, remove=remove, imports=imports)
    if not state.json:
        _show(planned, diff=diff)
    if not (dry_run or yes) and planned.question and not click.confirm(planned.question, err=True):
        click.echo("nothing was written", err=True)
        return 0
    if not dry_run:
        _save_or_forget(state, team, token_file, forget=remove)
        planned = replace(planned, changes=apply(planned.changes, root))
    _report(state, planned, dry_run=dry_run)
    if not dry_run:
        _finish(state, planned, hosts)
    return 1 if any(change.error is not None for change in planned.changes) else 0


@dataclass(frozen=True, slots=True)
class _Planned:
    """A planned setup: the hosts and how to connect them, the changes of files, and the sessions to import."""

    hosts: Sequence[Host]
    host_env: HostEnvironment
    reverie: Installation
    changes: Sequence[FileChange]
    offer: ImportOffer
    removes: bool

    @property
    def question(self) -> str | None:
        """Return the question before the start; None if there is nothing to do."""
        pending = any(change.is_pending for change in self.changes)
        return self.offer.ask(pending=pending) if pending or self.offer.waiting else None


def _plan(
    state: State,
    names: Sequence[str],
    host_env: HostEnvironment,
    team: RemoteServer | None,
    *,
    remove: bool,
    imports: bool,
) -> _Planned:
    # Entries may remain after a host was uninstalled.
    found = [host for host in KNOWN if remove or host.is_found(host_env)]
    hosts = [BY_NAME[name] for name in dict.fromkeys(names)] if names else found
    records = read_state(state.settings.paths.root)
    reverie = Installation(programs_folder(), list_moving_variables(state.settings), team)
    changes = (plan_removal if remove else plan_setup)(hosts, host_env, reverie, records)
    offer = find_offer(state, host_env, hosts if names else None) if imports else ImportOffer()
    return _Planned(hosts, host_env, reverie, changes, offer, remove)


def _finish(state: State, planned: _Planned, names: Sequence[str]) -> None:
    """Start the import and the server, and print what was done and what undoes it."""
    titles = list_titles(planned.hosts, planned.changes)
    if not titles and not planned.offer.waiting:
        return
    team = planned.reverie.server
    project = ["--project"] if planned.host_env.project else []
    command = shlex.join(["reverie", "setup", *names, *project, *(["--server", team.url] if team else [])])
    if titles and not state.json:
        show_agents(titles, planned.changes, removed=planned.removes)
    if planned.removes:
        if not state.json:
            show_kept(state.settings, command, planned.host_env.home)
        return
    if team is None:
        fill_encoder_cache(state)
    start_import(state, planned.offer)
    url = _start_server(state) if team is None else team.url
    if state.json:
        return
    show_next_steps(url, f"{command} --remove" if titles else None)
    if team is None:
        suggest_questions(state, planned.offer if url else None)


def _start_server(state: State) -> str | None:
    """Start the server of this machine unless it runs; return its address, None if it did not start."""
    with show_waiting("starting Reverie", quiet=state.json):
        failure = Stack(state.settings).start_if_stopped()
    if failure is None:
        return state.settings.url
    click.echo(f"Reverie did not start: {failure}. Start it with `reverie up --daemon`.", err=True)
    return None


def _host_environment(moved: Mapping[str, str | None], *, project: bool) -> HostEnvironment:
    home = find_user_home()
    folder = find_working_folder() if project else None
    if project and folder in (None, home):
        problem = "this folder was deleted" if folder is None else "this is your home folder"
        raise click.UsageError(f"--project needs a project folder, but {problem}. Change to a project.")
    folders = {name.upper(): value for name, value in moved.items() if value}
    return HostEnvironment(home, sys.platform, shutil.which, cache(_find_version), folders, folder)


def _find_server(
    state: State, url: str | None, token_file: Path | None, host_env: HostEnvironment
) -> RemoteServer | None:
    """Return the team server at an address with its known or a new name; None without an address."""
    if url is None and token_file is not None:
        raise click.UsageError("--token-file requires --server.")
    if url is None:
        return None
    url = check_server_url(url)
    known = list_teams(state.settings.paths.servers, state.warn_skipped)
    name = next((team.name for team in known if team.url == url), name_of(url))
    workspace = None if host_env.project is None else state.choice(host_env.project, to_write=True).workspace
    return RemoteServer(name, url, workspace)


def _save_or_forget(state: State, server: RemoteServer | None, token_file: Path | None, *, forget: bool) -> None:
    """Save the team server after it accepted the token, unless it is already known; or forget it."""
    if server is None:
        return
    folder = state.settings.paths.servers
    known = list_teams(folder, state.warn_skipped)
    is_known = server.name in [team.name for team in known if team.url == server.url]
    if forget and is_known:
        remove_team(folder, server.name)
    elif not forget and (not is_known or token_file is not None):
        add_team(folder, server.name, server.url, options.read_token(token_file))


def _find_version(program: str) -> tuple[int, ...] | None:
    """Return the version of a program, None if it is missing or prints none."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - the host that the user has installed and named
            [path, "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        click.echo(f"{program} --version: {error}", err=True)
        return None
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return None if match is None else tuple(int(part) for part in match.groups())


def _show(planned: _Planned, *, diff: bool) -> None:
    # As doctor does: few users run doctor right after the installation.
    for result in check_torch():
        if result.state != "ok":
            click.echo(f"torch: {result.says}\n{result.hint}", err=True)
    hosts, offer = planned.hosts, planned.offer
    if not hosts and not offer.sessions:
        click.echo(f"no coding agent was found on this machine; name one: {', '.join(HOSTS)}")
    elif hosts and not planned.changes:
        click.echo("no settings of these agents mention Reverie")
    if diff:
        show_diffs(planned.changes)
    connections = list_connections(hosts, planned.host_env, planned.reverie, planned.changes)
    show_plan(hosts, connections, planned.changes, planned.host_env.home, removes=planned.removes)
    offer.show()
    if planned.question and not diff:
        click.echo("`--diff` shows each file and line that changes.")


def _report(state: State, planned: _Planned, *, dry_run: bool) -> None:
    files = [describe(change) for change in planned.changes]
    answer = {"hosts": [host.name for host in planned.hosts], "dry_run": dry_run, "files": files}
    state.show(answer | {"sessions": planned.offer.describe()}, lambda _: None)
    for change in planned.changes:
        if change.error is not None:
            state.note(f"Error: {change.path} was not changed: {change.error}")
        for remark in change.remarks:
            state.note(f"{change.path}: {remark}")
    if dry_run:
        state.note("nothing was written")
