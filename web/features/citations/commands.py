"""The command that checks what rule files and memories cite of the repository."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pipeline.features.citations.usecases import CheckedText, check_files, check_memories, find_root, list_gone_branches
from pipeline.kernel.errors import ServerUnreachable
from web.cli.command import Command, pass_state
from web.cli.output import BROKEN_HOME, report_error
from web.cli.render import one_line
from web.cli.state import State

MOST_MEMORIES = 5000


@click.command(cls=Command)
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[PATH]...")
@click.option("--files", "only_files", is_flag=True, help="Only check files; needs no server.")
@click.option("--memories", "only_memories", is_flag=True, help="Only check memories.")
@pass_state
def check(state: State, paths: tuple[Path, ...], *, only_files: bool, only_memories: bool) -> None:
    """Check the paths, symbols, constants, commands and commits that rule files and memories cite.

    Without PATH, check all memories and rule files, and list the memories of git branches that no longer exist. The
    exit code is 1 if a citation is no longer true.
    """
    if only_memories and (paths or only_files):
        raise click.UsageError("--memories excludes PATH and --files.")
    root = find_root(paths[0].absolute().parent if paths else Path())
    checked = [] if only_memories else check_files(root, paths)
    gone: dict[str, str] = {}
    if not (paths or only_files):
        memories = _list_memories(state)
        checked += check_memories(root, memories)
        gone = list_gone_branches(root, memories)
    shown = {
        "items": [_describe(text) for text in checked],
        "gone_branches": [{"id": memory_id, "branch": branch} for memory_id, branch in gone.items()],
    }
    state.show(shown, lambda _: _print(checked, gone))
    if any(text.broken for text in checked):
        click.get_current_context().exit(1)


def _list_memories(state: State) -> list[dict[str, Any]]:
    try:
        items: list[dict[str, Any]] = state.list_items("/v1/memories", MOST_MEMORIES)["items"]
    except ServerUnreachable as error:
        # Not 1, which means that something is no longer true.
        report_error(error, str(error), as_json=state.json)
        click.get_current_context().exit(BROKEN_HOME)
    return items


def _describe(checked: CheckedText) -> dict[str, Any]:
    return {
        "source": checked.source,
        "holding": len(checked.holding),
        "unknown": len(checked.findings) - len(checked.holding) - len(checked.broken),
        "broken": [
            {
                "line": _find_line(checked.text, finding.citation.start),
                "kind": finding.citation.kind,
                "citation": finding.citation.text,
                "state": finding.state,
                "since": finding.change and finding.change.commit,
                "date": finding.change and finding.change.date,
                "now": finding.now,
            }
            for finding in checked.broken
        ],
        "verified": [
            {
                "commit": commit,
                "checked": [finding.citation.text for finding in checked.findings],
                "changed": None if changed is None else list(changed),
            }
            for commit, changed in checked.verified.items()
        ],
    }


def _print(checked: Sequence[CheckedText], gone: Mapping[str, str]) -> None:
    for text in checked:
        for finding in text.broken:
            line = _find_line(text.text, finding.citation.start)
            click.echo(f"{text.source}:{line}: {one_line(finding.describe())}")
        for commit, changed in text.verified.items():
            click.echo(f"{text.source}: verified @{commit}: {_describe_verified(text, changed)}")
    for memory_id, branch in gone.items():
        click.echo(f"{memory_id}: written on the branch {one_line(branch)}, which no longer exists")
    broken, holding = sum(len(text.broken) for text in checked), sum(len(text.holding) for text in checked)
    unknown = sum(len(text.findings) for text in checked) - broken - holding
    click.echo(f"{len(checked)} texts checked: {broken} broken, {holding} valid, {unknown} unknown citations")


def _describe_verified(text: CheckedText, changed: tuple[str, ...] | None) -> str:
    if changed is None:
        return "the repository does not have this commit"
    cited = ", ".join(one_line(finding.citation.text) for finding in text.findings) or "no citations"
    return f"checked {cited}; changed since: {', '.join(map(one_line, changed)) or 'none'}"


def _find_line(text: str, start: int) -> int:
    return text.count("\n", 0, start) + 1
