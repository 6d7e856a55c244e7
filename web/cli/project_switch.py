"""Commands that turn Reverie off and on for the project of the current folder."""

from pathlib import Path

import click

from pipeline.errors import Conflict
from web.cli.command import Command, pass_state
from web.cli.state import State

# The settings of a project in which Reverie is on. They are inverted while it is off.
_ON = {"enabled": True, "incognito": False}


@click.command(cls=Command)
@pass_state
def off(state: State) -> None:
    """Turn Reverie off in this project: agents see no memories and no tools, and nothing is stored."""
    _switch(state, on=False)


@click.command(cls=Command)
@pass_state
def on(state: State) -> None:
    """Turn Reverie on again in this project."""
    _switch(state, on=True)


def _switch(state: State, *, on: bool) -> None:
    from pipeline.services.workspaces import OF_A_PROJECT
    from web.cli.settings_file import save_value

    choice = state.choice(Path())
    if choice.identity is None or choice.identity.rule not in {*OF_A_PROJECT, "file", "explicit"}:
        raise Conflict(
            f"Cannot turn Reverie {'on' if on else 'off'} here: this folder is in no Git repository and shares "
            f"workspace {choice.workspace} with other folders. Run the command in a project, or change the shared "
            "workspace with `reverie config set incognito true --here`."
        )
    for name, value in _ON.items():
        file, _, _ = save_value(state.settings, choice.workspace, name, str(value is on).lower())
    text = f"Reverie is {'on' if on else 'off'} in {choice.workspace}"
    if not on:
        text += ": agents see no memories and no tools, and nothing is stored. Turn it on again with `reverie on`."
    state.show({"workspace": choice.workspace, "on": on, "place": file}, text)
