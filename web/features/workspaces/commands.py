"""Commands for workspaces: list, choose and delete them, move memories between them."""

from pathlib import Path

import click

from config.settings import load_settings
from config.workspace_configs import save_setting
from pipeline.features.workspaces.config import list_workspaces as list_existing
from pipeline.features.workspaces.usecases import DEFAULT_WORKSPACE, agree_to_claim, claim_of_folder, withdraw_claim
from pipeline.kernel.enums import Outcome
from pipeline.kernel.errors import InvalidField, ServerUnreachable
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.local_store import nothing_runs
from web.cli.render import Fields, count_of, describe_encoder, fill, format_sizes
from web.cli.state import HOW_TO_FILL, State, choose_for_folder, empty_page

# The server copies all memories before it answers.
MOVED_WITHIN_S = 3600.0


@click.group(cls=Group)
def workspace() -> None:
    """List, choose, move and delete workspaces, and show what they contain."""


@workspace.command("list")
@pass_state
def list_workspaces(state: State) -> None:
    """List the workspaces; the number of memories is shown while the server runs."""
    try:
        with state.client() as client:
            page = client.workspaces()
    except ServerUnreachable:
        page = empty_page() | {"items": [{"id": name, "memories": None} for name in list_existing(state.settings)]}
    columns: Fields = {
        "": lambda item: "*" if item["id"] == state.workspace else "",
        "workspace": "id",
        "memories": "memories",
    }
    state.show_page(page, columns, f"There is no workspace yet. {HOW_TO_FILL}")


@workspace.command("current")
@pass_state
def current(state: State) -> None:
    """Show the workspace that commands use in the current folder."""
    state.show({"workspace": state.workspace}, state.workspace)


@workspace.command("why")
@options.folder
@pass_state
def why(state: State, folder: Path) -> None:
    """Explain which workspace a folder belongs to, by which rule, and whether it is in use."""
    choice = state.choice(folder)
    identity = choice.identity
    assert identity is not None
    answer = {"id": identity.id, "rule": identity.rule, "detail": choice.detail}
    state.show(answer, f"{identity.id} (by {identity.rule})\n{choice.detail}")


@workspace.command("trust")
@options.folder
@click.option("--revoke", is_flag=True, help="Withdraw the agreement.")
@options.yes
@pass_state
def trust(state: State, folder: Path, *, revoke: bool, yes: bool) -> None:
    """Agree that this project uses the workspace that its .reverie.toml names."""
    file, name = claim_of_folder(folder)
    if revoke:
        withdraw_claim(state.settings, file)
    else:
        question = f"{file} names workspace {name}. Agents in this project will read and write its memories. Agree?"
        if not (yes or click.confirm(question, err=True)):
            raise click.Abort
        agree_to_claim(state.settings, file, name)
    state.show(
        {"file": str(file), "workspace": name, "agreed": not revoke},
        f"workspace {name} is {'no longer' if revoke else 'now'} used in {file.parent}",
    )


@workspace.command("use")
@click.argument("name", metavar="ID")
@pass_state
def use(state: State, name: str) -> None:
    """Use the workspace ID in all folders; a unique prefix is enough. `use default` ends this."""
    name = name if name == DEFAULT_WORKSPACE else _find(state, name)
    paths = state.settings.paths
    save_setting(paths, "workspace", name)
    choice = choose_for_folder(Path(), load_settings())
    effective = choice.workspace
    state.show({"workspace": effective, "saved": name}, f"{paths.config}: workspace = {name}")
    if effective == name or choice.identity is None:
        return
    if choice.identity.rule == "environment":
        state.note(f"REVERIE_WORKSPACE={effective} in the environment takes precedence")
    else:
        state.note(f"in this folder, {effective} takes precedence: {choice.identity.detail}")


@workspace.command("delete")
@click.argument("name", metavar="ID")
@options.yes
@pass_state
def delete(state: State, name: str, *, yes: bool) -> None:
    """Delete the workspace ID with all its memories, sessions and snapshots. Stop Reverie first."""
    from pipeline.features.workspaces.changes import check_delete, count_memories, delete_workspace

    name = _find(state, name)
    check_delete(name)
    with nothing_runs(state.settings, "delete a workspace"):
        memories = count_memories(state.settings, name)
        count = count_of(memories, "memory", "memories")
        question = f"Delete workspace {name} with {count} and all snapshots? This cannot be undone."
        options.confirm(state, question, yes=yes, refusal="nothing was deleted")
        delete_workspace(state.settings, name)
    state.show({"workspace": name, "memories": memories}, f"deleted workspace {name} with {count}")


def _find(state: State, name: str) -> str:
    """Return the workspace that a name or the start of a name means."""
    from pipeline.features.workspaces.changes import find_by_prefix

    try:
        return find_by_prefix(name, list_existing(state.settings))
    except InvalidField as error:
        hint = 'To create a workspace, run `reverie -w ID remember "…"`.'
        raise click.BadParameter(f"{error.errors[0].msg} {hint}", param_hint="ID") from error


@workspace.command("move")
@click.argument("source", metavar="FROM", callback=options.check_name)
@click.argument("target", metavar="TO")
@options.yes
@pass_state
def move(state: State, source: str, target: str, *, yes: bool) -> None:
    """Move all memories of the workspace FROM, or the memory with the ID FROM, to the workspace TO.

    The folders of a moved workspace use TO, which is created if it does not exist. FROM keeps archived copies.
    """
    if not any(name.startswith(source) for name in list_existing(state.settings)):
        with state.client() as client:
            receipt = client.request("POST", ("memories", source, "move"), {"workspace": target})
        known = ", which already contained it" if receipt["outcome"] == Outcome.MERGED else ""
        state.show(receipt, f"moved to {target}: {receipt['id']}{known}")
        return
    name = _find(state, source)
    question = f"Move all memories of workspace {name} to {target}? Folders that use {name} will use {target}."
    options.confirm(state, question, yes=yes, refusal="nothing was moved")
    with state.client_of(name, timeout_s=MOVED_WITHIN_S) as client:
        answer = client.call("POST", "/v1/workspaces/move", {"workspace": target})
    state.show(answer, f"moved {count_of(answer['memories'], 'memory', 'memories')} from {name} to {target}")


@workspace.command("stats")
@pass_state
def stats(state: State) -> None:
    """Show how many memories and entities the workspace contains, and its size."""
    nothing = {"workspace": state.workspace, "memories": None}
    answer = state.ask_about_content(lambda client: client.stats(), nothing)
    state.show(answer, state.empty_text if answer is nothing else STATS)


STATS: Fields = {
    "workspace": "workspace",
    "memories": lambda stats: fill("{active} active, {archived} archived", stats["memories"]),
    "sessions": "memories.sessions",
    "kinds": "memories.by_kind",
    "sources": "memories.by_source",
    "entities": lambda stats: fill("{entities}, mentioned {mentions} times", stats["graph"]),
    "segment": lambda stats: f"{stats['index']['segment'] or 'none yet'}, {stats['index']['tail_rows']} newer writes",
    "vectors": lambda stats: fill("{passages} passages ({encoder})", stats["index"]),
    "encoder": lambda stats: describe_encoder(stats["index"]),
    "files": lambda stats: format_sizes(stats["bytes"]),
}
