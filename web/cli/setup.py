"""Hosts on the command line: tell them of Reverie after a look at the changes, or take it back."""

import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from web.cli import options
from web.cli.command import Command, State, find_user_home, pass_state
from web.cli.render import plain

if TYPE_CHECKING:
    from config.settings import Settings
    from web.hosts.environment import HostEnvironment, Installation, RemoteServer
    from web.hosts.hosts import Host
    from web.hosts.plan import FileChange

HOSTS = ("claude-code", "codex", "cursor", "vscode", "windsurf", "gemini", "zed", "opencode")
HIDDEN = "•••"
VERSION_TIMEOUT_S = 5
# The token of an earlier setup, or of somebody else.
_BEARER = re.compile(r"(?<=Bearer )[\w.~+/-]{8,}=*")
_DONE = {"create": "made", "change": "changed", "delete": "deleted", "none": "as it should be", "error": "left alone"}
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class _SetupCommand(Command):
    """The command; variables with which hosts move their own folders come as parameters that nobody types."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from web.hosts.environment import HOST_VARIABLES

        super().__init__(*args, **kwargs)
        for name in HOST_VARIABLES:
            self.params.append(click.Option([f"--{name.lower()}"], envvar=name, hidden=True))


@click.command(cls=_SetupCommand)
@click.argument("hosts", nargs=-1, metavar="[HOST]…", type=click.Choice(HOSTS))
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--project", is_flag=True, help="Set up the current folder instead of your own files.")
@click.option("--remove", is_flag=True, help="Take out what the setup has written.")
@click.option("--server", metavar="URL", help="Let the hosts ask the team's server at URL instead of this machine's.")
@options.token_file
@pass_state
def setup(
    state: State,
    /,
    *,
    hosts: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    project: bool,
    remove: bool,
    server: str | None,
    token_file: Path | None,
    **moved: str | None,
) -> int:
    """Write Reverie's hooks, MCP entry and rules into the settings of each HOST, or of all that are installed.

    HOST is one of claude-code, codex, cursor, vscode, windsurf, gemini, zed, opencode.
    """
    from web.hosts import files
    from web.hosts.plan import apply, plan_removal, plan_setup

    _check_asking(state, asks=not (yes or dry_run))
    root = state.settings.paths.root
    host_env = _host_environment({name.upper(): value for name, value in moved.items() if value}, project=project)
    chosen = _choose_hosts(hosts, host_env, remove=remove)
    reverie = _installation(state.settings, _find_server(state, server, token_file, host_env))
    records = files.read_state(root)
    changes = (plan_removal if remove else plan_setup)(chosen, host_env, reverie, records)
    if not state.json:
        _warn_of_cuda()
        _show(chosen, changes)
    pending = any(change.action not in ("none", "error") for change in changes)
    if not dry_run and (yes or not pending or click.confirm("Write this?", err=True)):
        _keep_or_forget(state, reverie.server, token_file, forget=remove)
        changes = apply(changes, root)
    elif not dry_run:
        click.echo("nothing was written", err=True)
        return 0
    _report(state, [host.name for host in chosen], changes, dry_run=dry_run)
    return 1 if any(change.error is not None for change in changes) else 0


def _check_asking(state: State, *, asks: bool) -> None:
    if state.json and asks:
        raise click.UsageError("--json cannot ask; add --yes or --dry-run")


def _warn_of_cuda() -> None:
    """Say what the doctor says of a torch with CUDA: nobody calls the doctor right after an installation."""
    from web.cli.checks import check_torch

    for result in check_torch():
        if result.state != "ok":
            click.echo(f"torch is {result.says}\n{result.hint}", err=True)


def _choose_hosts(names: Sequence[str], host_env: "HostEnvironment", *, remove: bool) -> list["Host"]:
    from web.hosts.hosts import BY_NAME, HOSTS as KNOWN

    if names:
        return [BY_NAME[name] for name in dict.fromkeys(names)]
    # What was written for a host may outlive it.
    return [host for host in KNOWN if remove or host.is_found(host_env)]


def _host_environment(environment: Mapping[str, str], *, project: bool) -> "HostEnvironment":
    import shutil

    from web.hosts.environment import HostEnvironment

    home = find_user_home()
    here = _here() if project else None
    if here == home:
        raise click.UsageError("--project needs a project: this folder is your home")
    return HostEnvironment(home, sys.platform, shutil.which, _version, environment, here)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise click.UsageError("--project needs a project: this folder is no longer there") from error


def _installation(settings: "Settings", server: "RemoteServer | None") -> "Installation":
    from config.program_variables import list_moving_variables
    from web.hosts.environment import Installation, programs_folder

    return Installation(programs_folder(), list_moving_variables(settings), server)


def _find_server(
    state: State, url: str | None, token_file: Path | None, host_env: "HostEnvironment"
) -> "RemoteServer | None":
    """Return the team's server at an address, by the name that the home knows it by, or would; None without one."""
    if url is None and token_file is not None:
        raise click.UsageError("--token-file goes with --server")
    if url is None:
        return None
    from pipeline.services.team_servers import list_teams
    from pipeline.team.servers import name_of
    from pipeline.text.addresses import check_server_url
    from web.hosts.environment import RemoteServer

    url = check_server_url(url)
    known = list_teams(state.settings.paths.servers, state.tell_left_out)
    name = next((one.name for one in known if one.url == url), name_of(url))
    workspace = None if host_env.project is None else state.choice(host_env.project, to_write=True).workspace
    return RemoteServer(name, url, workspace)


def _keep_or_forget(state: State, server: "RemoteServer | None", token_file: Path | None, *, forget: bool) -> None:
    """Keep a server that took the token, unless the home knows it and no other token is given; or forget it."""
    if server is None:
        return
    from pipeline.services.team_servers import add_team, list_teams, remove_team

    folder = state.settings.paths.servers
    is_known = server.name in [one.name for one in list_teams(folder, state.tell_left_out) if one.url == server.url]
    if forget and is_known:
        remove_team(folder, server.name)
    elif not forget and (not is_known or token_file is not None):
        add_team(folder, server.name, server.url, options.read_token(token_file))


def _version(program: str) -> tuple[int, ...] | None:
    """Ask a program for its version; None where it is not there or does not say."""
    import shutil
    import subprocess

    path = shutil.which(program)
    if path is None:
        return None
    try:
        answered = subprocess.run(  # noqa: S603 - the host that the user has installed and named
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
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", answered.stdout)
    return None if found is None else tuple(int(part) for part in found.groups())


def _show(chosen: Sequence["Host"], changes: Sequence["FileChange"]) -> None:
    if not chosen:
        click.echo(f"no host was found here; name one: {', '.join(HOSTS)}")
    elif not changes:
        click.echo("no file of these hosts holds anything of Reverie")
    for change in changes:
        for line in _diff(change):
            click.echo(click.style(line, fg=_COLOURS.get(line[:1])))


def _diff(change: "FileChange") -> Iterator[str]:
    """Yield the lines of a unified diff, tokens hidden."""
    if change.error is not None or change.before == change.after:
        return
    before, after = (_lines(content) for content in (change.before, change.after))
    old, new = ("/dev/null" if content is None else str(change.path) for content in (change.before, change.after))
    for line in difflib.unified_diff(before, after, old, new, lineterm=""):
        yield plain(line).rstrip("\n")


def _lines(content: bytes | None) -> list[str]:
    text = _BEARER.sub(HIDDEN, (content or b"").decode("utf-8", "replace"))
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]


def _report(state: State, hosts: Sequence[str], changes: Sequence["FileChange"], *, dry_run: bool) -> None:
    if state.json:
        items = [_describe(change) for change in changes]
        state.print_json({"hosts": hosts, "dry_run": dry_run, "files": items})
        return
    for change in changes:
        if change.error is not None:
            click.echo(f"error: {plain(change.path)} is left alone: {plain(change.error)}", err=True)
        elif not dry_run:
            click.echo(f"{_DONE[change.action]:<15}  {plain(change.path)}  ({', '.join(change.hosts)})")
        for remark in change.remarks:
            click.echo(f"{plain(change.path)}: {plain(remark)}", err=True)
    if dry_run:
        click.echo("nothing was written", err=True)


def _describe(change: "FileChange") -> dict[str, Any]:
    return {
        "path": str(change.path),
        "hosts": change.hosts,
        "action": change.action,
        "error": change.error,
        "remarks": change.remarks,
        "diff": "\n".join(_diff(change)),
    }
