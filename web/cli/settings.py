"""The settings, the token, incognito sessions, completion, the version."""

import click
from click.shell_completion import get_completion_class

from pipeline.errors import NotFound
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import plain, table


@click.command(cls=Command)
@pass_state
def config(state: State) -> None:
    """Show every setting, its value and where it comes from."""
    from config.settings import explain_settings

    found = explain_settings(workspace_id=state.workspace)
    if state.json:
        state.print_json(
            {"settings": [{"name": s.name, "value": s.value, "origin": s.origin, "help": s.help} for s in found]}
        )
        return
    table(["setting", "value", "origin", "help"], [[s.name, s.value, s.origin, s.help] for s in found])


@click.command(cls=Command)
@click.option("--show", is_flag=True, help="Print the token itself.")
@click.option("--renew", is_flag=True, help="Make a new one; the old one opens nothing from then on.")
@click.option("--yes", is_flag=True, help="Do not ask before.")
@pass_state
def token(state: State, *, show: bool, renew: bool, yes: bool) -> int:
    """Show where the bearer token stands, or make a new one."""
    file = state.settings.paths.token_file
    if not file.exists():
        raise NotFound(f"there is no token yet; the first `reverie up` makes {file}")
    if renew and not _renew(state, yes=yes):
        return 1
    secret = file.read_text(encoding="ascii").strip() if show else None
    if state.json:
        state.print_json({"path": str(file)} | ({"token": secret} if secret is not None else {}))
    else:
        click.echo(secret if secret is not None else str(file))
    return 0


def _renew(state: State, *, yes: bool) -> bool:
    from web.hosts.install_state import find_token_files

    if state.json and not yes:
        raise click.UsageError("--json cannot ask; add --yes")
    warning = "Every browser will be signed out, and whoever holds the old token refused. Make a new one?"
    if not (yes or click.confirm(warning, err=True)):
        click.echo("the token stays", err=True)
        return False
    paths = state.settings.paths
    for holder in find_token_files(paths.root, paths.renew_token()):
        click.echo(f"{holder.path} holds the old one: run `reverie setup {' '.join(holder.hosts)}`", err=True)
    return True


@click.command(cls=Command)
@pass_state
def version(state: State) -> None:
    """Show the version."""
    from config.version import VERSION

    if state.json:
        state.print_json({"version": VERSION})
    else:
        click.echo(f"reverie {VERSION}")


@click.group(cls=Group)
def incognito() -> None:
    """Make sessions incognito: nothing that they say is stored."""


@incognito.command(cls=Command)
@click.option("--session", "session_id", metavar="ID", required=True, help="The session.")
@pass_state
def on(state: State, session_id: str) -> None:
    """Make a session incognito."""
    _set(state, session_id, on=True)


@incognito.command(cls=Command)
@click.option("--session", "session_id", metavar="ID", required=True, help="The session.")
@pass_state
def off(state: State, session_id: str) -> None:
    """Let a session be stored again."""
    _set(state, session_id, on=False)


@incognito.command("list", cls=Command)
@pass_state
def list_sessions(state: State) -> None:
    """List the incognito sessions."""
    with state.client() as client:
        answer = client.incognito()
    if state.json:
        state.print_json(answer)
        return
    table(["session", "since"], [[plain(item["session_id"]), item["since"]] for item in answer["items"]])


def _set(state: State, session_id: str, *, on: bool) -> None:
    with state.client() as client:
        answer = client.set_incognito(session_id, on=on)
    if state.json:
        state.print_json(answer)
    elif answer["since"] is None:
        click.echo(f"session {plain(session_id)} is no longer incognito")
    else:
        click.echo(f"session {plain(session_id)} is incognito since {answer['since']}")


SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@pass_state
def completion(state: State, shell: str) -> None:
    """Print the script that teaches SHELL to complete `reverie`."""
    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    # The variable is the one that click looks for when a program named `reverie` starts.
    script = found(root, {}, "reverie", "_REVERIE_COMPLETE").source()
    if state.json:
        state.print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
