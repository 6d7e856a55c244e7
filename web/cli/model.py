"""The encoder on the command line: what is configured, compile it, choose another."""

from pathlib import Path
from typing import Any

import click

from pipeline.errors import ReverieError, ServerUnreachable
from web.cli.command import Group, State, pass_state
from web.cli.render import print_pairs, show_waiting

NO_SERVER = "no server runs"


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def model(context: click.Context) -> None:
    """Show the encoder, compile it, or choose another one."""
    if context.invoked_subcommand is None:
        _show(context.ensure_object(State))


def _show(state: State) -> None:
    found = _describe(state) | {"loaded": _loaded_model(state)}
    if state.json:
        state.print_json(found)
        return
    print_pairs(
        [(name, "no" if value is False else "yes" if value is True else value) for name, value in found.items()]
    )
    if not found["compiled"]:
        click.echo("a worker compiles it when it is needed; `reverie model compile` does it now")


def _describe(state: State) -> dict[str, Any]:
    from pipeline.services.encoder import get_encoder_status

    status = get_encoder_status(state.settings)
    found = {"model": status.model, "compiled": status.compiled is not None, "directory": str(status.directory)}
    if status.compiled is None:
        return found
    return found | {
        "dimension": status.compiled.dimension,
        "precision": status.compiled.precision,
        "window": status.compiled.max_tokens,
    }


def _loaded_model(state: State) -> str:
    """Tell which model the web server encodes with, if any."""
    try:
        with state.client() as client:
            if client.health()["encoder"] != "ready":
                return "not yet"
            served = client.stats()["index"]["model"]
    except ReverieError as error:
        return NO_SERVER if isinstance(error, ServerUnreachable) else "yes"
    configured = state.settings.embedding_model
    return "yes" if served == configured else f"{served}, until a restart"


@model.command("compile")
@pass_state
def compile_now(state: State) -> None:
    """Compile the configured model now; nothing is done when it is compiled already."""
    _compile(state, state.settings.embedding_model)
    found = _describe(state)
    if state.json:
        state.print_json(found)
    else:
        click.echo(f"compiled in {found['directory']}")


@model.command("use")
@click.argument("name", metavar="NAME")
@pass_state
def use(state: State, name: str) -> None:
    """Compile the model NAME (a name or a folder) and use it from the next start on."""
    from config.settings import load_settings, save_setting

    # The processes that will load it have other working folders.
    chosen = str(Path(name).absolute()) if Path(name).is_dir() else name
    directory = _compile(state, chosen)
    paths = state.settings.paths
    save_setting(paths, "embedding_model", chosen)
    effective = load_settings().embedding_model
    if state.json:
        state.print_json({"embedding_model": effective, "saved": chosen, "directory": str(directory)})
        return
    click.echo(f"{paths.config}: embedding_model = {chosen}")
    if effective != chosen:
        click.echo(f"REVERIE_EMBEDDING_MODEL={effective} in the environment still decides", err=True)
    elif chosen != state.settings.embedding_model:
        click.echo("restart Reverie (`reverie down`, `reverie up`); it then embeds every memory again")


def _compile(state: State, name: str) -> Path:
    with show_waiting(f"compiling {name}", quiet=state.json):
        from pipeline.services.encoder import compile_model

        return compile_model(state.settings, name)
