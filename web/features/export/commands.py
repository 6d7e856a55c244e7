"""Commands that export memories to files, and import a bundle or edited notes."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from web.cli.command import Command, pass_state
from web.cli.local_store import open_home
from web.cli.render import count_of, fill, pick, plain, show_progress, show_waiting
from web.cli.state import State

FORMATS = ("bundle", "markdown", "jsonl")
# Formats of exports that `import` also reads from other programs.
EXPORTED = ("markdown", "jsonl")
# Rejected memories that are printed.
SHOWN_REASONS = 20

passphrase_file = click.option(
    "--passphrase-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File whose first line is the passphrase.",
)


def read_passphrase(file: Path | None) -> str | None:
    """Return the first line of a file; None without a file."""
    if file is None:
        return None
    try:
        phrase = file.read_text(encoding="utf-8").partition("\n")[0].strip()
    except UnicodeDecodeError as error:
        raise click.BadParameter("The file is not valid UTF-8.", param_hint="--passphrase-file") from error
    if not phrase:
        raise click.BadParameter("The first line of the file is empty.", param_hint="--passphrase-file")
    return phrase


# A file name with one of these suffixes chooses the format.
SUFFIXES = {".md": "markdown", ".markdown": "markdown", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}


def choose_format(file: Path, form: str | None) -> tuple[str, Path]:
    """Return the format and the target of an export; notes are a folder, named without a suffix."""
    by_suffix = SUFFIXES.get(file.suffix.lower())
    chosen = form or by_suffix or ("markdown" if file.is_dir() else "bundle")
    is_note_name = chosen == "markdown" and by_suffix == "markdown" and not file.is_dir()
    return chosen, file.with_suffix("") if is_note_name else file


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the export.  [default: by the suffix of FILE: .md, .jsonl; else bundle]",
)
@click.option("--all", "everything", is_flag=True, help="Export all workspaces.")
@passphrase_file
@pass_state
def export(state: State, file: Path, form: str | None, passphrase_file: Path | None, *, everything: bool) -> None:
    """Export the memories of the workspace to FILE: a bundle, a folder of Markdown notes, or JSON lines."""
    from pipeline.features.export import usecases as exporting

    phrase = read_passphrase(passphrase_file)
    form, target = choose_format(file.absolute(), form)
    if phrase is not None and form != "bundle":
        raise click.BadParameter("Only a bundle can be encrypted. Add --format bundle.", param_hint="--passphrase-file")
    paths = state.settings.paths
    with open_home(state, only_reads=True) as home, show_waiting("writing", quiet=state.json):
        workspaces = home.databases.ids() if everything else [state.workspace]
        if form == "bundle":
            counts = exporting.export_bundle(paths, home.stores, target, workspaces, phrase).memories
        else:
            write = exporting.export_notes if form == "markdown" else exporting.export_lines
            counts = write(paths, home.databases, target, workspaces)
    answer = {"file": str(target), "format": form, "encrypted": phrase is not None, "memories": counts}
    kind = "the folder of notes" if form == "markdown" else form
    memories, sources = count_of(sum(counts.values()), "memory", "memories"), count_of(len(counts), "workspace")
    state.show(answer, f"exported {memories} of {sources} to {kind} {plain(str(target))}")


@click.command("bundle", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@passphrase_file
@pass_state
def import_bundle(state: State, file: Path, passphrase_file: Path | None) -> None:
    """Import a bundle: copy it into an empty data directory, or merge it with existing memories."""
    from pipeline.features.export import usecases as exporting

    phrase = read_passphrase(passphrase_file)
    with open_home(state) as home, show_waiting("reading", quiet=state.json):
        merged = exporting.import_bundle(state.settings.paths, home.stores, file, phrase)
    lines = [
        f"{workspace}  {count} changes imported, {merged.known[workspace]} already known"
        for workspace, count in merged.applied.items()
    ]
    _show_merged(state, pick(merged, "applied", "known", "put_aside"), "\n".join(lines), merged.put_aside)


def is_export(name: str, path: Path) -> bool:
    """Return whether Reverie exported a file of JSON lines, or a folder or file of notes."""
    from pipeline.features.export import usecases as exporting

    return name in EXPORTED and exporting.is_export(name, path)


def import_export(state: State, name: str, path: Path, *, is_own: bool) -> None:
    """Restore exported lines, or import the changes that were made in exported notes."""
    from pipeline.features.export import usecases as exporting

    with open_home(state) as home, show_progress(f"reading {path.name}", quiet=state.json) as progress:
        workspace, target = home.workspace(state.workspace), state.named_workspace
        if name == "markdown":
            done: Any = exporting.import_notes(workspace, path, target=target, is_own=is_own)
            text = "{edited} edited, {created} new, {same} unchanged"
        else:
            done = exporting.import_lines(workspace, path, progress, target=target, is_own=is_own)
            text = "{restored} memories restored, {known} already stored"
    answer = asdict(done)
    _show_merged(state, answer, fill(text, answer), done.refused)


def _show_merged(state: State, answer: dict[str, object], text: str, refused: Sequence[str]) -> None:
    """Print what was imported, then each rejected memory; exit with 1 if there is one."""

    def show(_answer: object) -> None:
        click.echo(text)
        for reason in refused[:SHOWN_REASONS]:
            click.echo(f"not imported: {plain(reason)}", err=True)
        if len(refused) > SHOWN_REASONS:
            click.echo(f"not imported: {len(refused) - SHOWN_REASONS} more; --json lists all", err=True)

    state.show(answer, show)
    if refused:
        raise SystemExit(1)
