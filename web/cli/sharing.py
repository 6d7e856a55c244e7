"""Sharing on the command line: what is yours alone, with a whole workspace, and back."""

import click

from web.cli import options
from web.cli.command import Command, State, pass_state
from web.cli.render import one_line


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@click.option("--withdraw", is_flag=True, help="Take it back: nobody else is told it any more.")
@pass_state
def share(state: State, memory_id: str, *, withdraw: bool) -> None:
    """Let everybody in the workspace see the memory ID, which was yours, an agent's or a session's alone."""
    found = state.ask(lambda client: client.withdraw(memory_id) if withdraw else client.share(memory_id))
    verb = "withdrew" if withdraw else "shared"
    state.show(found, f"{verb} {found['id']}: {one_line(found['content'])}")
