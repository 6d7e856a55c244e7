"""The settings, the token, the version."""

import click

from pipeline.errors import NotFound
from web.cli.command import Command, State, pass_state
from web.cli.render import table


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
@pass_state
def token(state: State, *, show: bool) -> None:
    """Show where the bearer token stands."""
    file = state.settings.paths.token_file
    if not file.exists():
        raise NotFound(f"there is no token yet; the first `reverie up` makes {file}")
    secret = file.read_text(encoding="ascii").strip() if show else None
    if state.json:
        state.print_json({"path": str(file)} | ({"token": secret} if secret is not None else {}))
    else:
        click.echo(secret if secret is not None else str(file))


@click.command(cls=Command)
@pass_state
def version(state: State) -> None:
    """Show the version."""
    from config.version import VERSION

    if state.json:
        state.print_json({"version": VERSION})
    else:
        click.echo(f"reverie {VERSION}")
