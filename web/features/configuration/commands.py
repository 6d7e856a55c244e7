"""Commands for settings, the embedding model, the server's token, and shell completion."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from config.declared import Secret
from config.paths import HomePaths
from config.settings import (
    ENVIRONMENT_ONLY,
    SETTINGS,
    WORKSPACE_SETTINGS,
    Settings,
    load_settings,
    refuse_environment_only,
    validate,
)
from config.toml_files import SettingsError, parse_toml, read_text
from config.workspace_configs import save_setting, save_workspace_setting, write_config
from pipeline.features.workspaces.config import edit_config, explain_workspace, opened_configs
from pipeline.kernel.errors import Conflict, EncoderUnavailable, NotFound, ReverieError, ServerUnreachable
from web.cli import options
from web.cli.command import Command, Group, pass_state
from web.cli.render import Fields, pick, plain, print_table, show_waiting
from web.cli.state import State

HEADER = "# Settings of {target}. Remove the # in front of a setting to change it; the value shown is the default.\n"


def _edit_text(text: str, target: str, names: list[str]) -> str | None:
    """Open the editor; return the edited text, None if the user changed nothing."""
    template = add_missing_settings(text, target, names)
    edited = click.edit(template, extension=".toml")
    return None if edited is None or edited == template else edited


def add_missing_settings(text: str, target: str, names: list[str]) -> str:
    """Return settings with a comment for each setting that the text does not mention."""
    mentioned = {line.lstrip("# ").partition("=")[0].strip() for line in text.splitlines() if "=" in line}
    comments = [
        f"\n# {SETTINGS[name].help}\n# {name} = {format_toml(SETTINGS[name].default)}\n"
        for name in names
        if name not in mentioned
    ]
    head = text if text.strip() else HEADER.format(target=target)
    return head + ("" if head.endswith("\n") or not comments else "\n") + "".join(comments)


def format_toml(value: Any) -> str:
    """Return a value of a setting as TOML."""
    import tomlkit

    plain_value = value if isinstance(value, bool | int | float) else str(value)
    return str(tomlkit.item(plain_value).as_string())


def save_value(settings: Settings, workspace_id: str | None, name: str, text: str) -> tuple[str, Any, Any]:
    """Save a setting for a workspace, or for all with None; return the file, the value, and the effective value.

    Raises SettingsError for an unknown setting and for an invalid value.
    """
    value = _parse_value(name, text)
    if workspace_id is None:
        save_setting(settings.paths, name, value)
        return str(settings.paths.config), value, getattr(load_settings(), name)
    with opened_configs(settings) as configs:
        save_workspace_setting(configs, workspace_id, name, value)
        file = configs.place(workspace_id)
    effective = {setting.name: setting.value for setting in explain_workspace(settings, workspace_id)}
    return file, value, effective[name]


def _parse_value(name: str, text: str) -> Any:
    setting = SETTINGS.get(name)
    if setting is None:
        import difflib

        similar = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.5)
        hint = f"Did you mean {similar[0]}?" if similar else "`reverie config` lists all settings."
        raise SettingsError(f'There is no setting "{name}". {hint}')
    if name in ENVIRONMENT_ONLY or setting.type is Secret:
        raise SettingsError(
            f"Cannot save {name} in a file. Set it with the environment variable REVERIE_{name.upper()}."
        )
    try:
        return setting.parse(text)
    except ValueError as error:
        raise SettingsError(f"{name}: {error}") from error


RESTART = "restart Reverie to apply it: `reverie down`, then `reverie up`"


here = click.option("--here", is_flag=True, help="Change only the workspace of the current folder.")


def _target_workspace(state: State, *, here: bool) -> str | None:
    """Return the workspace whose own settings change; None for the settings of all workspaces."""
    if here:
        # A new project gets its own workspace with the first write.
        return state.choice(Path(), to_write=True).workspace
    return state.named_workspace


@click.group(cls=Group, invoke_without_command=True)
@click.option("--edit", is_flag=True, help="Edit the settings in your editor; the file lists all of them as comments.")
@here
@click.pass_context
def config(context: click.Context, *, edit: bool, here: bool) -> None:
    """Show and change settings. Without a command, show every setting, its value and its origin.

    --edit changes the settings of all workspaces, with --workspace or --here those of one workspace.
    """
    if context.invoked_subcommand is not None:
        return
    state = context.ensure_object(State)
    if edit:
        _edit_settings(state, _target_workspace(state, here=here))
    else:
        _show_settings(state)


def _show_settings(state: State) -> None:
    names = ("name", "value", "origin", "help")
    settings = [pick(setting, *names) for setting in explain_workspace(state.settings, state.workspace)]
    columns: Fields = {"setting": "name", "value": lambda setting: setting["value"], "origin": "origin", "help": "help"}
    state.show({"settings": settings}, lambda _: print_table(settings, columns))


def _edit_settings(state: State, workspace_id: str | None) -> None:
    """Let the user edit the settings of a workspace, or of all with None.

    Raises SettingsError for invalid settings: the file is not changed then.
    """
    if workspace_id is not None:
        names = [name for name in SETTINGS if name in WORKSPACE_SETTINGS]
        target = f'workspace "{workspace_id}"'
        file, is_changed = edit_config(state.settings, workspace_id, lambda text: _edit_text(text, target, names))
    else:
        file, is_changed = _edit_shared_settings(state.settings.paths)
    note = f"; {RESTART}" if is_changed and workspace_id is None else ""
    state.show({"place": file, "changed": is_changed}, f"{file}: {'saved' if is_changed else 'unchanged'}{note}")


def _edit_shared_settings(paths: HomePaths) -> tuple[str, bool]:
    file = paths.config
    text = read_text(file)
    edited = _edit_text(text, "all workspaces", [name for name in SETTINGS if name not in ENVIRONMENT_ONLY])
    if edited is None or edited == text:
        return str(file), False
    values = parse_toml(edited, str(file))
    refuse_environment_only(values, file)
    validate(values, dict.fromkeys(values, str(file)))
    paths.ensure()
    write_config(file, edited)
    return str(file), True


@config.command("set")
@click.argument("name")
@options.words("value", "VALUE...")
@here
@pass_state
def set_value(state: State, name: str, value: str, *, here: bool) -> None:
    """Set the setting NAME to VALUE for all workspaces, or with --workspace or --here for one workspace."""
    workspace_id = _target_workspace(state, here=here)
    file, saved, effective = save_value(state.settings, workspace_id, name, value)
    answer = {"name": name, "value": effective, "saved": saved, "place": file}
    state.show(answer, f"{file}: {name} = {saved}")
    if effective != saved:
        state.note(f"a stronger setting takes precedence: {name} = {effective}; `reverie config` shows it")
    elif workspace_id is None:
        state.note(RESTART)


SHELLS = ("bash", "zsh", "fish")


@config.command()
@click.argument("shell", type=click.Choice(SHELLS))
@pass_state
def completion(state: State, shell: str) -> None:
    """Print the script that makes SHELL complete the commands of `reverie`."""
    complete = get_completion_class(shell)
    assert complete is not None
    root = click.get_current_context().find_root().command
    # click looks for this variable when a program named `reverie` starts.
    script = complete(root, {}, "reverie", "_REVERIE_COMPLETE").source()
    state.show({"shell": shell, "script": script}, script)


@click.command(cls=Command)
@click.option("--show", is_flag=True, help="Print the token itself.")
@click.option("--renew", is_flag=True, help="Create a new token; the server rejects the old one from then on.")
@options.yes
@pass_state
def token(state: State, *, show: bool, renew: bool, yes: bool) -> None:
    """Show the file that contains the server's token, or create a new token."""
    file = state.settings.paths.token_file
    if not file.exists():
        raise NotFound(f"There is no token yet. The first `reverie up` creates {file}.")
    if renew:
        question = "A new token signs out every browser and disconnects every client of the old one. Create it?"
        options.confirm(state, question, yes=yes, refusal="the token was not changed")
        state.settings.paths.renew_token()
    answer = {"path": str(file)} | ({"token": file.read_text(encoding="ascii").strip()} if show else {})
    state.show(answer, answer.get("token", answer["path"]))


NO_SERVER = "no server is running"


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def model(context: click.Context) -> None:
    """Show, compile or change the embedding model. Without a command, show it."""
    if context.invoked_subcommand is None:
        _show_model(context.ensure_object(State))


def _show_model(state: State) -> None:
    status = _describe_model(state) | {"loaded": _find_loaded_model(state)}
    state.show(status, {name: name for name in status})
    if not status["compiled"]:
        state.note("a worker compiles the model when it needs it; `reverie model compile` does it now")


def _describe_model(state: State) -> dict[str, Any]:
    from pipeline.features.indexing.usecases import get_encoder_status

    status = get_encoder_status(state.settings)
    answer = {"model": status.model, "compiled": status.compiled is not None, "directory": str(status.directory)}
    compiled = status.compiled
    if compiled is None:
        return answer
    return answer | {"dimension": compiled.dimension, "precision": compiled.precision, "window": compiled.max_tokens}


def _find_loaded_model(state: State) -> str:
    """Describe the model that the web server has loaded."""
    try:
        with state.client() as client:
            if client.health()["encoder"] != "ready":
                return "not yet"
            loaded = client.stats()["index"]["model"]
    except ReverieError as error:
        return NO_SERVER if isinstance(error, ServerUnreachable) else "yes"
    return "yes" if loaded == _default_model(state) else f"{loaded}, in this workspace"


def _default_model(state: State) -> str:
    from pipeline.index.encoders import usual_model

    return usual_model(state.settings)


@model.command("compile")
@click.option("--shared", is_flag=True, help="Only build the default encoders in your cache, for all data directories.")
@pass_state
def compile_now(state: State, *, shared: bool) -> None:
    """Compile the configured models now, unless they are compiled already."""
    if shared:
        built = fill_encoder_cache(state)
        state.show({"encoders": built}, f"in the cache: {', '.join(map(plain, built)) or 'none'}")
        return
    _compile(state)
    status = _describe_model(state)
    state.show(status, f"compiled in {status['directory']}")


@model.command("embed")
@pass_state
def embed_now(state: State) -> int:
    """Embed pending memories now, in all workspaces or with --workspace in one."""
    from pipeline.features.maintenance.usecases import embed_pending
    from pipeline.features.workspaces.config import list_workspaces
    from web.features.maintenance.commands import open_worker

    named = state.named_workspace
    with show_waiting("embedding", quiet=state.json), open_worker(state.settings) as worker:
        done = [
            embed_pending(worker.context(name), worker.stages(name), worker.owner, worker.policy)
            for name in (list_workspaces(state.settings) if named is None else [named])
        ]
    memories, turns, failed = (sum(getattr(each, name) for each in done) for name in ("memories", "turns", "failed"))
    numbers = {"memories": memories, "turns": turns, "failed": failed}
    state.show(numbers, f"embedded {memories} memories and {turns} turns")
    if failed:
        click.echo(f"{failed} failed and are tried again; `reverie jobs queue` shows them", err=True)
    return 1 if failed else 0


@model.command("use")
@click.argument("name", metavar="NAME")
@pass_state
def use(state: State, name: str) -> None:
    """Compile the model NAME and use it after a restart. NAME is a name, a folder, or auto (by language)."""
    # The processes that load the model have other working folders.
    chosen = str(Path(name).absolute()) if Path(name).is_dir() else name
    directory = _compile(state, chosen)
    paths = state.settings.paths
    save_setting(paths, "embedding_model", chosen)
    effective = load_settings().embedding_model
    answer = {"embedding_model": effective, "saved": chosen, "directory": str(directory)}
    state.show(answer, f"{paths.config}: embedding_model = {chosen}")
    if effective != chosen:
        state.note(f"REVERIE_EMBEDDING_MODEL={effective} in the environment takes precedence")
    elif chosen != state.settings.embedding_model:
        state.note(f"{RESTART}. Reverie then embeds every memory again")


def _compile(state: State, name: str | None = None) -> Path:
    with show_waiting(f"compiling {plain(name or _default_model(state))}", quiet=state.json):
        from pipeline.features.indexing.usecases import compile_model

        return compile_model(state.settings, name)


# The settings of a project in which Reverie is on. They are inverted while it is off.
_OF_AN_ACTIVE_PROJECT = {"enabled": True, "incognito": False}


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
    from pipeline.features.workspaces.usecases import OF_A_PROJECT

    choice = state.choice(Path())
    if choice.identity is None or choice.identity.rule not in {*OF_A_PROJECT, "file", "explicit"}:
        raise Conflict(
            f"Cannot turn Reverie {'on' if on else 'off'} here: this folder is in no Git repository and shares "
            f"workspace {choice.workspace} with other folders. Run the command in a project, or change the shared "
            "workspace with `reverie config set incognito true --here`."
        )
    for name, value in _OF_AN_ACTIVE_PROJECT.items():
        file, _, _ = save_value(state.settings, choice.workspace, name, str(value is on).lower())
    text = f"Reverie is {'on' if on else 'off'} in {choice.workspace}"
    if not on:
        text += ": agents see no memories and no tools, and nothing is stored. Turn it on again with `reverie on`."
    state.show({"workspace": choice.workspace, "on": on, "place": file}, text)


def fill_encoder_cache(state: State) -> list[str]:
    """Build the encoders that these settings use, with a line for each; return the names of those in the cache."""
    from pipeline.features.indexing import usecases as encoder

    built = []
    for name in encoder.list_default_encoders(state.settings):
        try:
            with show_waiting(f"preparing the encoder {plain(name)}", quiet=state.json):
                if encoder.fill_encoder_cache(name):
                    built.append(name)
        except EncoderUnavailable as error:
            click.echo(f"{plain(name)} could not be prepared: {error}. A worker tries it again.", err=True)
    return built
