"""Commands that start Reverie at login as a user service, or remove that service."""

import shlex
import shutil
import sys
from typing import Any

import click

from web.cli.command import Group, pass_state
from web.cli.render import plain
from web.cli.state import State, find_user_home
from web.stack.service_manager import ManagerOutcome, run_manager, service_of

# A parameter, because commands do not read the environment.
configuration_folder = click.option("--xdg_config_home", envvar="XDG_CONFIG_HOME", hidden=True)


@click.group(cls=Group)
def service() -> None:
    """Start Reverie at every login, or stop doing so."""


@service.command()
@configuration_folder
@click.option("--dry-run", is_flag=True, help="Show the file and the commands without running them.")
@pass_state
def install(state: State, xdg_config_home: str | None, *, dry_run: bool) -> int:
    """Install the user service: start Reverie now and at every login."""
    from web.stack.processes import stop_all

    target = service_of(sys.platform, find_user_home(), xdg_config_home, state.settings)
    if dry_run:
        text = target.text.decode()
        commands = [shlex.join([target.manager, *arguments]) for arguments in target.install]
        answer = {"file": str(target.file), "text": text, "left_to_do": commands}
        _report(state, answer, f"would write {target.file}:\n\n{text}", ManagerOutcome(commands))
        return 0
    state.settings.paths.ensure()
    target.file.parent.mkdir(parents=True, exist_ok=True)
    target.file.write_bytes(target.text)
    if shutil.which(target.manager) is not None:
        # A stack that is already running would keep the service from starting.
        stop_all(state.settings)
    outcome = run_manager(target.manager, target.install)
    answer = {"file": str(target.file), "left_to_do": outcome.left, "problem": outcome.problem or ""}
    _report(state, answer, f"written {target.file}", outcome)
    return 0 if outcome.problem is None else 1


@service.command()
@configuration_folder
@pass_state
def remove(state: State, xdg_config_home: str | None) -> None:
    """Stop Reverie and remove the user service; memories are kept."""
    target = service_of(sys.platform, find_user_home(), xdg_config_home, state.settings)
    if not target.file.exists():
        _report(state, {"file": None, "left_to_do": []}, f"there is no {target.file}", ManagerOutcome([]))
        return
    before = run_manager(target.manager, target.remove)
    target.file.unlink()
    after = run_manager(target.manager, target.forget)
    outcome = ManagerOutcome(before.left + after.left, before.problem or after.problem)
    _report(state, {"file": str(target.file), "left_to_do": outcome.left}, f"deleted {target.file}", outcome)


def _report(state: State, answer: dict[str, Any], line: str, outcome: ManagerOutcome) -> None:
    if state.json:
        state.print_json(answer)
        return
    click.echo(line)
    if outcome.problem is not None:
        click.echo(plain(outcome.problem), err=True)
    for command in outcome.left:
        click.echo(f"run by hand: {command}", err=True)
