"""Memory as files to keep, to read or to carry away, and a bundle back again, on the command line."""

from pathlib import Path

import click

from web.cli.command import Command, State, pass_state
from web.cli.offline import open_home
from web.cli.render import plain, print_pairs, show_waiting

FORMATS = ("bundle", "markdown", "jsonl")

passphrase_file = click.option(
    "--passphrase-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file whose first line is the passphrase.",
)


def read_passphrase(file: Path | None) -> str | None:
    """Return the first line of a file, None without one."""
    if file is None:
        return None
    phrase = file.read_text(encoding="utf-8").partition("\n")[0].strip()
    if not phrase:
        raise click.BadParameter("its first line is empty", param_hint="--passphrase-file")
    return phrase


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="bundle", show_default=True, help="What is written."
)
@click.option("--all", "everything", is_flag=True, help="Every workspace, not this one alone.")
@passphrase_file
@pass_state
def export(state: State, file: Path, form: str, passphrase_file: Path | None, *, everything: bool) -> None:
    """Write what the workspace knows to FILE: a bundle, a folder of Markdown notes, or lines of JSON."""
    from pipeline.services import export as exporting

    phrase = read_passphrase(passphrase_file)
    if phrase is not None and form != "bundle":
        raise click.BadParameter("only a bundle takes a passphrase", param_hint="--passphrase-file")
    paths, target = state.settings.paths, file.absolute()
    with open_home(state) as home, show_waiting("writing", quiet=state.json):
        workspaces = home.databases.ids() if everything else [state.workspace]
        if form == "bundle":
            counts = exporting.export_bundle(paths, home.stores, target, workspaces, phrase).memories
        elif form == "markdown":
            counts = exporting.export_notes(paths, home.databases, target, workspaces)
        else:
            counts = exporting.export_lines(paths, home.databases, target, workspaces)
    told = {"file": str(target), "format": form, "encrypted": phrase is not None, "memories": counts}
    total = sum(counts.values())
    state.show(told, f"{plain(str(target))} holds {total} memories of {len(counts)} workspaces")


@click.command("bundle", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@passphrase_file
@pass_state
def import_bundle(state: State, file: Path, passphrase_file: Path | None) -> None:
    """Take in a bundle: an empty home becomes the one that wrote it, another one merges."""
    from pipeline.services import export as exporting

    phrase = read_passphrase(passphrase_file)
    with open_home(state) as home, show_waiting("reading", quiet=state.json):
        merged = exporting.import_bundle(state.settings.paths, home.stores, file, phrase)
    told = {"applied": merged.applied, "known": merged.known, "put_aside": merged.put_aside}

    def show() -> None:
        rows: list[tuple[str, object]] = [
            (workspace, f"{count} changes taken in, {merged.known[workspace]} known")
            for workspace, count in merged.applied.items()
        ]
        print_pairs(rows)
        for reason in merged.put_aside:
            click.echo(f"not taken: {plain(reason)}", err=True)

    state.show(told, show)
    if merged.put_aside:
        raise SystemExit(1)


def take_notes(state: State, folder: Path) -> None:
    """Take in what somebody changed in a folder of notes that was exported."""
    from pipeline.services import export as exporting

    with open_home(state) as home, show_waiting("reading", quiet=state.json):
        merged = exporting.import_notes(home.workspace(state.workspace), folder)
    told = {
        "edited": merged.edited,
        "created": merged.created,
        "same": merged.same,
        "refused": merged.refused,
    }

    def show() -> None:
        click.echo(f"{merged.edited} edited, {merged.created} new, {merged.same} as they were")
        for reason in merged.refused:
            click.echo(f"not taken: {plain(reason)}", err=True)

    state.show(told, show)
    if merged.refused:
        raise SystemExit(1)
