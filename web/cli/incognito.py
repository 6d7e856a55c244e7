"""Off the record, on the command line."""

import click

from web.cli.command import Command, Group, State, pass_state
from web.cli.render import plain, table


@click.group(cls=Group)
def incognito() -> None:
    """Keep sessions off the record: nothing that they say is stored."""


@incognito.command(cls=Command)
@click.option("--session", "session_id", metavar="ID", required=True, help="The session.")
@pass_state
def on(state: State, session_id: str) -> None:
    """Take a session off the record."""
    _set(state, session_id, on=True)


@incognito.command(cls=Command)
@click.option("--session", "session_id", metavar="ID", required=True, help="The session.")
@pass_state
def off(state: State, session_id: str) -> None:
    """Put a session back on the record."""
    _set(state, session_id, on=False)


@incognito.command("list", cls=Command)
@pass_state
def list_sessions(state: State) -> None:
    """List the sessions that are off the record."""
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
        click.echo(f"session {plain(session_id)} is on the record")
    else:
        click.echo(f"session {plain(session_id)} is off the record since {answer['since']}")
