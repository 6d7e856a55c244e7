"""Commands that index projects, Git histories and PDF files, and import sessions and the memories of other tools."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from config.paths import PERSONAL_WORKSPACE
from config.places import Places
from config.settings import environment_with
from pipeline.features.ingest.fields import COMMITS
from pipeline.features.ingest.usecases import (
    IMPORTS,
    SOURCES,
    FoundStores,
    find_stores,
    list_tools,
    open_reader,
    open_store,
    source_name,
)
from pipeline.features.workspaces.usecases import project_of_folder
from pipeline.kernel.errors import NotFound
from web.cli import options
from web.cli.command import Command, Group, pass_state
from web.cli.render import Fields, count_of, pick, plain, print_table, show_progress
from web.cli.state import State, choose_for_folder, find_user_home
from web.features.export.commands import EXPORTED, import_bundle, import_export, is_export
from web.features.ingest.uploads import Intake, IntakeCounts
from web.features.sessions.import_commands import sessions

# The most frequent reasons are printed; --json lists all.
SHOWN_REASONS = 10
any_path = click.argument("path", type=click.Path(exists=True, path_type=Path))
any_folder = click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
dry_run = click.option("--dry-run", is_flag=True, help="Count what would be imported without writing it.")


def import_source(
    state: State, folder: Path, name: str, path: Path, *, dry_run: bool, sweeps: bool = False, **choices: object
) -> None:
    """Import everything from a path into the workspace of a folder; exit with 1 if an import stored nothing.

    `sweeps` archives memories of items that no longer exist.
    """
    workspace = state.choice(folder, to_write=not dry_run).workspace
    source = source_name(name, path)
    with show_progress(f"reading {source}", quiet=state.json) as progress:
        read = open_reader(name, path, progress, **choices)
        answer, are_any_taken = _run_intake(
            state, workspace, source, lambda intake: intake.take(read), dry_run=dry_run, sweeps=sweeps
        )
    state.show(answer, IMPORTED)
    if name in IMPORTS and not are_any_taken:
        why = "; ".join([*_list_reasons(answer["rejected"]), *_list_reasons(answer["skipped"])])
        click.echo(
            f"Nothing was imported from {plain(path)}: {plain(why or 'it contains nothing to import')}", err=True
        )
        raise SystemExit(1)


def _run_intake(
    state: State,
    workspace: str,
    source: str,
    act: Callable[[Intake], IntakeCounts],
    *,
    dry_run: bool,
    sweeps: bool = False,
) -> tuple[dict[str, Any], bool]:
    """Import or forget a source; return the counts as a JSON object, and whether anything was stored."""
    started = time.monotonic()
    with state.client_of(workspace) as client:
        try:
            counts = act(Intake(client, source, sweeps=sweeps, dry=dry_run))
        except KeyboardInterrupt:
            click.echo("imported memories are kept; run the same command again to continue", err=True)
            raise
    reasons = {
        name: {reason: asdict(entry) for reason, entry in sorted(entries.items(), key=lambda item: -item[1].count)}
        for name, entries in (("rejected", counts.rejected), ("skipped", counts.skipped))
    }
    head = {"workspace": workspace, "source": source, "dry_run": dry_run}
    outcomes = {"items": dict(counts.items), "memories": dict(counts.memories)}
    return {**head, **outcomes, **reasons, "took_s": round(time.monotonic() - started, 1)}, counts.are_any_taken


def _list_reasons(reasons: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the most frequent reasons with their counts and first examples."""
    lines = [
        f"{entry['count']} {reason}: {', '.join(entry['first'])}{', …' if entry['count'] > len(entry['first']) else ''}"
        for reason, entry in list(reasons.items())[:SHOWN_REASONS]
    ]
    others = [entry["count"] for entry in list(reasons.values())[SHOWN_REASONS:]]
    return [*lines, *([f"{sum(others)} for {len(others)} other reasons"] if others else [])]


IMPORTED: Fields = {
    "workspace": "workspace",
    "source": "source",
    "items": lambda answer: _format_counts(answer["items"]),
    "memories": lambda answer: _format_counts(answer["memories"]),
    "rejected": lambda answer: _list_reasons(answer["rejected"]),
    "skipped": lambda answer: _list_reasons(answer["skipped"]),
    "took": lambda answer: f"{answer['took_s']} s{', nothing was written' if answer['dry_run'] else ''}",
}


@click.group(cls=Group)
def index() -> None:
    """Index a project, a Git history or PDF files; run again to update the memories."""


@index.command("project")
@any_folder
@dry_run
@pass_state
def project(state: State, path: Path, *, dry_run: bool) -> None:
    """Index the files of the project in PATH; memories of deleted files are archived."""
    import_source(state, path, "project", path, dry_run=dry_run, sweeps=True)


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
    import_source(state, path, "git", path, dry_run=dry_run, limit=limit, since=since)


@index.command("pdf")
@any_path
@dry_run
@pass_state
def pdf(state: State, path: Path, *, dry_run: bool) -> None:
    """Index the PDF file PATH, or all PDF files in the folder PATH."""
    import_source(state, Path(), "pdf", path, dry_run=dry_run)


@index.command("list")
@options.limit(50)
@pass_state
def list_sources(state: State, limit: int) -> None:
    """List the indexed and imported sources."""
    columns = {"source": "source", "items": "items", "memories": "memories", "updated": "at"}
    state.show_list(
        "/v1/sources", limit, columns, "Nothing is indexed here yet. Index a project with `reverie index project`."
    )


@index.command("forget")
@click.argument("source", callback=options.check_name)
@dry_run
@pass_state
def forget(state: State, source: str, *, dry_run: bool) -> None:
    """Archive all memories of SOURCE; indexing it again restores them."""
    answer, _ = _run_intake(state, state.workspace, source, lambda intake: intake.forget(), dry_run=dry_run)
    if not answer["items"]:
        raise NotFound(f'Workspace {state.workspace} has no source "{source}". `reverie index list` lists the sources.')
    state.show(answer, IMPORTED)


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
        # A folder of notes is complete: memories of deleted notes are archived.
        sweeps = name == "markdown" and path.is_dir()
        import_source(state, Path(), name, path, dry_run=dry_run, sweeps=sweeps)

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
    summaries = [
        _import_tool(state, found, dry_run=dry_run) for found in find_stores(places, project_of_folder(Path()), tools)
    ]
    state.show({"dry_run": dry_run, "tools": summaries}, _print_tools)


def _import_tool(state: State, found: FoundStores, *, dry_run: bool) -> dict[str, Any]:
    """Import all stores of a tool; return its counts, and what was left out by reason."""
    items: Counter[str] = Counter()
    memories: Counter[str] = Counter()
    left_out: Counter[str] = Counter(skipped.reason for skipped in found.skipped)
    sources = []
    for store in found.stores:
        workspace = _choose_workspace(state, store.project, dry_run=dry_run)
        if workspace is None:
            left_out["personal memory is turned off"] += 1
            continue
        with state.client_of(workspace) as client:
            counts = Intake(client, store.source, sweeps=True, dry=dry_run).take(open_store(store))
        items += counts.items
        memories += counts.memories
        for reasons in (counts.skipped, counts.rejected):
            left_out.update({reason: entry.count for reason, entry in reasons.items()})
        if counts.items:
            sources.append({"workspace": workspace, "source": store.source, "path": store.origin})
    return pick(found, "tool", "label") | {
        "items": dict(items),
        "memories": dict(memories),
        "left_out": dict(left_out.most_common()),
        "sources": sources,
    }


def _choose_workspace(state: State, project: Path | None, *, dry_run: bool) -> str | None:
    """Return the workspace of a store's project; None for memories about the user that are not stored."""
    if project is None:
        return PERSONAL_WORKSPACE if state.settings.personal else None
    # `-w` names the workspace of the current project only.
    named = state.named_workspace if project == project_of_folder(Path()) else None
    return choose_for_folder(project, state.settings, named, to_write=not dry_run).workspace


def _print_tools(answer: Mapping[str, Any]) -> None:
    columns: Fields = {
        "from": "label",
        "items": lambda summary: _format_counts(summary["items"]),
        "memories": lambda summary: _format_counts(summary["memories"]),
        "stores": lambda summary: len(summary["sources"]),
    }
    print_table(answer["tools"], columns, empty="No memories of other tools were found on this machine.")
    for summary in answer["tools"]:
        for reason, count in summary["left_out"].items():
            click.echo(f"left out: {summary['label']}: {count_of(count, 'item')}: {plain(reason)}")
    if answer["dry_run"] and answer["tools"]:
        click.echo("nothing was written")


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"
