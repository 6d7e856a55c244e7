"""Commands that index projects, Git histories and PDF files, and import sessions and the memories of other tools."""

from pathlib import Path

import click

from pipeline.ingest.fields import COMMITS
from pipeline.services.ingestion import IMPORTS, SOURCES, source_name
from web.cli import options
from web.cli.command import Command, Group, pass_state
from web.cli.export import EXPORTED, import_bundle, import_export, is_export
from web.cli.import_memories import import_memories
from web.cli.render import format_minute, table
from web.cli.session_import import sessions
from web.cli.source_import import SourceImport
from web.cli.state import State

any_path = click.argument("path", type=click.Path(exists=True, path_type=Path))
any_folder = click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
dry_run = click.option("--dry-run", is_flag=True, help="Count what would be imported without writing it.")


@click.group(cls=Group)
def index() -> None:
    """Index a project, a Git history or PDF files; run again to update the memories."""


@index.command("project")
@any_folder
@dry_run
@pass_state
def project(state: State, path: Path, *, dry_run: bool) -> None:
    """Index the files of the project in PATH; memories of deleted files are archived."""
    workspace = state.choice(path, to_write=not dry_run).workspace
    source = source_name("project", path)
    SourceImport(state, workspace, source, dry_run=dry_run, sweeps=True).run("project", path)


@index.command("git")
@any_folder
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=COMMITS,
    show_default=True,
    help="Maximum number of commits, newest first.",
)
@click.option(
    "--since",
    type=options.PAST,
    metavar="TIME",
    help="Only index commits from this time on, such as 12w or 2026-03-01.",
)
@dry_run
@pass_state
def git(state: State, path: Path, limit: int, since: str | None, *, dry_run: bool) -> None:
    """Index the commit history of the repository that contains PATH."""
    workspace = state.choice(path, to_write=not dry_run).workspace
    source = SourceImport(state, workspace, source_name("git", path), dry_run=dry_run)
    source.run("git", path, limit=limit, since=since)


@index.command("pdf")
@any_path
@dry_run
@pass_state
def pdf(state: State, path: Path, *, dry_run: bool) -> None:
    """Index the PDF file PATH, or all PDF files in the folder PATH."""
    workspace = state.choice(Path(), to_write=not dry_run).workspace
    SourceImport(state, workspace, source_name("pdf", path), dry_run=dry_run).run("pdf", path)


@index.command("list")
@options.limit(50)
@pass_state
def list_sources(state: State, limit: int) -> None:
    """List the indexed and imported sources."""
    page = state.list_items("/v1/sources", limit)
    rows = [
        [source["source"], source["items"], source["memories"], format_minute(source["at"])] for source in page["items"]
    ]
    empty = "Nothing is indexed here yet. Index a project with `reverie index project`."
    state.show(
        page,
        lambda: table(["source", "items", "memories", "updated"], rows, right=["items", "memories"], empty=empty),
    )


@index.command("forget")
@click.argument("source", callback=options.check_name)
@dry_run
@pass_state
def forget(state: State, source: str, *, dry_run: bool) -> None:
    """Archive all memories of SOURCE; indexing it again restores them."""
    SourceImport(state, state.workspace, source, dry_run=dry_run).forget()


@click.group("import", cls=Group)
def import_() -> None:
    """Import past sessions and memories from other tools; run again to import new ones."""


def _make_importer(name: str) -> click.Command:
    @any_path
    @dry_run
    @pass_state
    def run(state: State, path: Path, *, dry_run: bool, trusted: bool = False) -> None:
        if is_export(name, path):
            if dry_run:
                raise click.UsageError("--dry-run does not apply to an export: its memories are compared one by one.")
            import_export(state, name, path, is_own=trusted)
            return
        if trusted:
            raise click.UsageError(f"--trusted does not apply: {path} is not an export of Reverie.")
        workspace = state.choice(Path(), to_write=not dry_run).workspace
        # A folder of notes is complete: memories of deleted notes are archived.
        sweeps = name == "markdown" and path.is_dir()
        SourceImport(state, workspace, source_name(name, path), dry_run=dry_run, sweeps=sweeps).run(name, path)

    if name in EXPORTED:
        run = click.option("--trusted", is_flag=True, help="Keep the source and the trust of memories you exported.")(
            run
        )
    return click.command(name, cls=Command, help=f"Import {SOURCES[name].summary}.")(run)


for _name in IMPORTS:
    import_.add_command(_make_importer(_name))


import_.add_command(import_bundle)
import_.add_command(sessions)
import_.add_command(import_memories)
