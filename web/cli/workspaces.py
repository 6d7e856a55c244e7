"""Commands for workspaces: list and choose them, show their size, move memories between them."""

from pathlib import Path

import click

from pipeline.enums import Outcome
from pipeline.errors import Conflict, ServerUnreachable
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import describe_encoder, format_size, print_pairs, table
from web.cli.state import HOW_TO_FILL, State, choose_for_folder


@click.group(cls=Group)
def workspace() -> None:
    """List workspaces, choose the one that commands use, and show what it contains."""


@workspace.command("list")
@pass_state
def list_workspaces(state: State) -> None:
    """List the workspaces; the number of memories is shown while the server runs."""
    try:
        with state.client() as client:
            items = client.workspaces()["items"]
    except ServerUnreachable:
        from pipeline.services.workspace_listing import list_workspaces as list_existing

        items = [{"id": name, "memories": None} for name in list_existing(state.settings)]
    rows = [["*" if item["id"] == state.workspace else "", item["id"], item["memories"]] for item in items]
    empty = f"There is no workspace yet. {HOW_TO_FILL}"
    state.show(
        {"items": items, "next_cursor": None},
        lambda: table(["", "workspace", "memories"], rows, right=["memories"], empty=empty),
    )


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
    from pipeline.services.workspaces import agree_to_claim, claim_of_folder, withdraw_claim

    file, name = claim_of_folder(folder)
    if revoke:
        withdraw_claim(state.settings, file)
    else:
        question = f"{file} names workspace {name}. Agents in this project will read and write its memories. Agree?"
        if not (yes or click.confirm(question, err=True)):
            raise click.Abort
        agree_to_claim(state.settings, file, name)
    if state.json:
        state.print_json({"file": str(file), "workspace": name, "agreed": not revoke})
    else:
        click.echo(f"workspace {name} is {'no longer' if revoke else 'now'} used in {file.parent}")


@workspace.command("adopt")
@options.folder
@pass_state
def adopt(state: State, folder: Path) -> None:
    """Move memories that were indexed before this project had its own workspace into that workspace."""
    from web.cli.workspace_adoption import adopt_sources

    target = state.choice(folder, to_write=True).workspace
    if target == state.settings.workspace:
        raise Conflict(
            f"Nothing to move: {folder} uses workspace {target}, not one of its own. Run this command in a Git project."
        )
    adopt_sources(state, folder, target)


@workspace.command("use")
@click.argument("name", metavar="ID")
@pass_state
def use(state: State, name: str) -> None:
    """Use the workspace ID by default; the first write creates it."""
    from config.paths import WORKSPACE_ID, is_workspace_id
    from config.settings import load_settings
    from config.settings_edits import save_setting

    if not is_workspace_id(name):
        raise click.BadParameter(
            f"{name!r} is not a workspace ID. An ID matches {WORKSPACE_ID.pattern}.", param_hint="ID"
        )
    paths = state.settings.paths
    save_setting(paths, "workspace", name)
    choice = choose_for_folder(Path(), load_settings())
    effective = choice.workspace
    if state.json:
        state.print_json({"workspace": effective, "saved": name})
        return
    click.echo(f"{paths.config}: workspace = {name}")
    if effective == name or choice.identity is None:
        return
    if choice.identity.rule == "environment":
        click.echo(f"REVERIE_WORKSPACE={effective} in the environment takes precedence", err=True)
    else:
        click.echo(f"in this folder, {effective} takes precedence: {choice.identity.detail}", err=True)


@workspace.command("move")
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@click.argument("target", metavar="WORKSPACE")
@pass_state
def move(state: State, memory_id: str, target: str) -> None:
    """Move the memory ID to WORKSPACE; this workspace keeps an archived copy."""
    with state.client() as client:
        receipt = client.move(memory_id, target)
    known = ", which already contained it" if receipt["outcome"] == Outcome.MERGED else ""
    state.show(receipt, f"moved to {target}: {receipt['id']}{known}")


@workspace.command("stats")
@pass_state
def stats(state: State) -> None:
    """Show how many memories and entities the workspace contains, and its size."""
    answer = state.ask_about_content(lambda client: client.stats(), {})
    if not answer:
        state.show({"workspace": state.workspace, "memories": None}, state.empty_text)
        return
    memories, graph, index, sizes = answer["memories"], answer["graph"], answer["index"], answer["bytes"]
    pairs = [
        ("workspace", answer["workspace"]),
        ("memories", f"{memories['active']} active, {memories['archived']} archived"),
        ("sessions", memories["sessions"]),
        ("kinds", _format_counts(memories["by_kind"])),
        ("sources", _format_counts(memories["by_source"])),
        ("entities", f"{graph['entities']}, mentioned {graph['mentions']} times"),
        ("segment", f"{index['segment'] or 'none yet'}, {index['tail_rows']} newer writes"),
        ("vectors", f"{index['passages']} passages ({index['encoder']})"),
        ("encoder", describe_encoder(index)),
        ("files", ", ".join(f"{name} {format_size(count)}" for name, count in sizes.items())),
    ]
    state.show(answer, lambda: print_pairs(pairs))


def _format_counts(counts: dict[str, int]) -> str | None:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or None
