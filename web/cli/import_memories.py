"""The command that imports the memories of other tools on this machine."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from web.cli.command import Command, pass_state
from web.cli.render import count_of, plain, table
from web.cli.state import State, choose_for_folder, find_user_home

if TYPE_CHECKING:
    from pipeline.ingest.native.memory_stores import MemoryStore
    from pipeline.services.native_memories import FoundStores
    from web.source_import import IntakeCounts


def _check_tools(_context: click.Context, _option: click.Parameter, names: Sequence[str]) -> tuple[str, ...]:
    from pipeline.services.native_memories import list_tools

    tools = list_tools()
    for name in names:
        if name not in tools:
            raise click.BadParameter(f'"{name}" is not a known tool. Known tools: {", ".join(tools)}.')
    return tuple(dict.fromkeys(names)) or tools


@click.command("memories", cls=Command)
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
    from config.places import Places
    from config.settings import environment_with
    from pipeline.services.native_memories import find_stores
    from pipeline.services.workspaces import project_of_folder

    places = Places(find_user_home(), environment_with({}), sys.platform)
    here = project_of_folder(Path())
    importer = MemoriesImport(state, here, dry_run=dry_run)
    summaries = [importer.import_tool(found) for found in find_stores(places, here, tools)]
    answer = {"dry_run": dry_run, "tools": summaries}
    state.show(answer, lambda: _print(summaries, dry_run=dry_run))


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
        from pipeline.services.native_memories import open_store
        from web.source_import import Intake

        with self._state.client_of(workspace) as client:
            return Intake(client, store.source, sweeps=True, dry=self._dry_run).take(open_store(store))

    def _workspace_of(self, store: "MemoryStore") -> str | None:
        """Return the workspace of a store's project; None for memories about the user that are not stored."""
        if store.project is None:
            from config.paths import PERSONAL_WORKSPACE

            return PERSONAL_WORKSPACE if self._state.settings.personal else None
        # `-w` names the workspace of the current project only.
        named = self._state.named_workspace if store.project == self._here else None
        return choose_for_folder(store.project, self._state.settings, named, to_write=not self._dry_run).workspace


def _print(summaries: Sequence[Mapping[str, Any]], *, dry_run: bool) -> None:
    rows = [
        [summary["label"], _format(summary["items"]), _format(summary["memories"]), len(summary["sources"])]
        for summary in summaries
    ]
    empty = "No memories of other tools were found on this machine."
    table(["from", "items", "memories", "stores"], rows, right=["stores"], empty=empty)
    for summary in summaries:
        for reason, count in summary["left_out"].items():
            click.echo(f"left out: {summary['label']}: {count_of(count, 'item')}: {plain(reason)}")
    if dry_run and summaries:
        click.echo("nothing was written")


def _format(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"
