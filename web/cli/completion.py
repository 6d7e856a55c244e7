"""Completion of commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

from web.cli.command import Command, State, pass_state

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
