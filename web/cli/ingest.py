"""Commands that index projects, Git histories and PDF files, and import sessions and the memories of other tools."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from config.paths import PERSONAL_WORKSPACE
from config.places import Places
from config.settings import environment_with
from pipeline.ingest.fields import COMMITS
from pipeline.services.ingestion import IMPORTS, SOURCES, source_name
from pipeline.services.native_memories import find_stores, list_tools, open_store
from pipeline.services.workspaces import project_of_folder
from web.cli import options
from web.cli.command import Command, Group, pass_state
from web.cli.export import EXPORTED, import_bundle, import_export, is_export
from web.cli.render import Column, count_of, minute_of, plain, print_table
from web.cli.session_import import sessions
from web.cli.source_import import SourceImport
from web.cli.state import State, choose_for_folder, find_user_home

if TYPE_CHECKING:
    from pipeline.ingest.native.memory_stores import MemoryStore
    from pipeline.services.native_memories import FoundStores
    from web.source_import import IntakeCounts

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
    columns = {"source": "source", "items": "items", "memories": "memories", "updated": minute_of("at")}
    empty = "Nothing is indexed here yet. Index a project with `reverie index project`."
    state.show_table(page, columns, right=["items", "memories"], empty=empty)


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


def _check_tools(_context: click.Context, _option: click.Parameter, names: Sequence[str]) -> tuple[str, ...]:
    tools = tuple(list_tools())
    for name in names:
        if name not in tools:
            raise click.BadParameter(f'"{name}" is not a known tool. Known tools: {", ".join(tools)}.')
    return tuple(dict.fromkeys(names)) or tools


@import_.command("memories")
@click.option(
    "--from",
    "tools",
    metavar="NAME",
    multiple=True,
    callback=_check_tools,
    help="Only import from this tool, such as claude-code; may be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Count what would be imported without writing it.")
@pass_state
def import_memories(state: State, tools: tuple[str, ...], *, dry_run: bool) -> None:
    """Import the memories of other tools on this machine, and index rule files.

    Memories of a project go to its workspace, memories about you to your personal memory. The tools' files stay
    unchanged.
    """
    places = Places(find_user_home(), environment_with({}), sys.platform)
    here = project_of_folder(Path())
    importer = MemoriesImport(state, here, dry_run=dry_run)
    summaries = [importer.import_tool(found) for found in find_stores(places, here, tools)]
    answer = {"dry_run": dry_run, "tools": summaries}
    state.show(answer, lambda: _print_tools(summaries, dry_run=dry_run))


class MemoriesImport:
    """Import the stores of tools, each into the workspace of its project."""

    def __init__(self, state: State, here: Path, *, dry_run: bool) -> None:
        self._state = state
        self._here = here
        self._dry_run = dry_run

    def import_tool(self, found: "FoundStores") -> dict[str, Any]:
        """Import all stores of a tool; return its counts, and what was left out by reason."""
        items: Counter[str] = Counter()
        memories: Counter[str] = Counter()
        left_out: Counter[str] = Counter(skipped.reason for skipped in found.skipped)
        sources = []
        for store in found.stores:
            workspace = self._workspace_of(store)
            if workspace is None:
                left_out["personal memory is turned off"] += 1
                continue
            counts = self._import_store(store, workspace)
            items += counts.items
            memories += counts.memories
            for reasons in (counts.skipped, counts.rejected):
                left_out.update({reason: entry.count for reason, entry in reasons.items()})
            if counts.items:
                sources.append({"workspace": workspace, "source": store.source, "path": store.origin})
        return {
            "tool": found.tool,
            "label": found.label,
            "items": dict(items),
            "memories": dict(memories),
            "left_out": dict(left_out.most_common()),
            "sources": sources,
        }

    def _import_store(self, store: "MemoryStore", workspace: str) -> "IntakeCounts":
        from web.source_import import Intake

        with self._state.client_of(workspace) as client:
            return Intake(client, store.source, sweeps=True, dry=self._dry_run).take(open_store(store))

    def _workspace_of(self, store: "MemoryStore") -> str | None:
        """Return the workspace of a store's project; None for memories about the user that are not stored."""
        if store.project is None:
            return PERSONAL_WORKSPACE if self._state.settings.personal else None
        # `-w` names the workspace of the current project only.
        named = self._state.named_workspace if store.project == self._here else None
        return choose_for_folder(store.project, self._state.settings, named, to_write=not self._dry_run).workspace


def _print_tools(summaries: Sequence[Mapping[str, Any]], *, dry_run: bool) -> None:
    columns: dict[str, Column] = {
        "from": "label",
        "items": lambda summary: _format_counts(summary["items"]),
        "memories": lambda summary: _format_counts(summary["memories"]),
        "stores": lambda summary: len(summary["sources"]),
    }
    print_table(summaries, columns, right=["stores"], empty="No memories of other tools were found on this machine.")
    for summary in summaries:
        for reason, count in summary["left_out"].items():
            click.echo(f"left out: {summary['label']}: {count_of(count, 'item')}: {plain(reason)}")
    if dry_run and summaries:
        click.echo("nothing was written")


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"
