"""The settings, the encoder, the token, incognito sessions, completion, the version."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from pipeline.errors import NotFound, ReverieError, ServerUnreachable
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import plain, print_pairs, show_waiting, table


@click.command(cls=Command)
@click.option("--edit", is_flag=True, help="Write what this workspace has of its own, in $EDITOR.")
@pass_state
def config(state: State, *, edit: bool) -> None:
    """Show every setting, its value and where it comes from."""
    from pipeline.services.workspace_config import edit_config, explain_workspace

    if edit:
        place, changed = edit_config(state.settings, state.workspace, lambda text: click.edit(text, extension=".toml"))
        state.show({"place": place, "changed": changed}, f"{place}: {'saved' if changed else 'as it was'}")
        return
    found = explain_workspace(state.settings, state.workspace)
    state.show(
        {"settings": [{"name": s.name, "value": s.value, "origin": s.origin, "help": s.help} for s in found]},
        lambda: table(["setting", "value", "origin", "help"], [[s.name, s.value, s.origin, s.help] for s in found]),
    )


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
    state.show(
        {"path": str(file)} | ({"token": secret} if secret is not None else {}),
        secret if secret is not None else str(file),
    )
    return 0


def _renew(state: State, *, yes: bool) -> bool:
    if state.json and not yes:
        raise click.UsageError("--json cannot ask; add --yes")
    warning = "Every browser will be signed out, and whoever holds the old token refused. Make a new one?"
    if not (yes or click.confirm(warning, err=True)):
        click.echo("the token stays", err=True)
        return False
    state.settings.paths.renew_token()
    return True


@click.command(cls=Command)
@pass_state
def version(state: State) -> None:
    """Show the version."""
    from web.version import VERSION

    state.show({"version": VERSION}, f"reverie {VERSION}")


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
    answer = state.ask(lambda client: client.incognito())
    state.show(
        answer,
        lambda: table(["session", "since"], [[plain(item["session_id"]), item["since"]] for item in answer["items"]]),
    )


def _set(state: State, session_id: str, *, on: bool) -> None:
    answer = state.ask(lambda client: client.set_incognito(session_id, on=on))
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
    state.show({"shell": shell, "script": script}, script)


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
    return "yes" if served == _usual_model(state) else f"{served}, in this workspace"


def _usual_model(state: State) -> str:
    from pipeline.index.encoders import usual_model

    return usual_model(state.settings)


@model.command("compile")
@pass_state
def compile_now(state: State) -> None:
    """Compile the configured model now; nothing is done when it is compiled already."""
    _compile(state, _usual_model(state))
    found = _describe(state)
    state.show(found, f"compiled in {found['directory']}")


@model.command("use")
@click.argument("name", metavar="NAME")
@pass_state
def use(state: State, name: str) -> None:
    """Compile the model NAME (a name or a folder) and use it from the next start on; `auto` follows the languages."""
    from config.saving import save_setting
    from config.settings import load_settings

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
