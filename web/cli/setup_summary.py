"""What `reverie setup` prints about the files of agents: the plan, each changed line on request, and the result."""

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from web.cli.render import count_of, open_console, plain, print_wrapped, table

if TYPE_CHECKING:
    from config.settings import Settings
    from web.hosts.host import Host
    from web.hosts.setup_plan import FileChange

HIDDEN = "•••"
# A token of an earlier setup or of another server, which the diff must not show.
_BEARER = re.compile(r"(?<=bearer )[\w.~+/-]{8,}=*", re.IGNORECASE)
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_ENDS = {"create": " (new)", "delete": " (deleted)", "error": " (cannot be changed)"}


def show_plan(
    hosts: "Sequence[Host]",
    connections: Sequence[str],
    changes: "Sequence[FileChange]",
    home: Path,
    *,
    removes: bool,
) -> None:
    """Print one row per agent: what setup connects, and the files that it changes."""
    columns = ("agent", "disconnect" if removes else "connect", "files that change")
    rows = []
    for host, connection in zip(hosts, connections, strict=True):
        theirs = [change for change in changes if host.name in change.hosts and change.action != "none"]
        if theirs or not removes:
            rows.append((host.title, connection, theirs))
    if rows:
        # Two blanks separate the columns.
        widths = [max(map(len, cells)) + 2 for cells in zip(columns[:2], *(row[:2] for row in rows), strict=True)]
        room = open_console().width - sum(widths)
        table(columns, [(*row[:2], _name_files(row[2], home, room)) for row in rows])


def show_diffs(changes: "Sequence[FileChange]") -> None:
    """Print every line that changes."""
    for change in changes:
        for line in _diff(change):
            click.echo(click.style(line, fg=_COLOURS.get(line[:1])))


def list_titles(hosts: "Sequence[Host]", changes: "Sequence[FileChange]") -> list[str]:
    """Return the agents without an error in any of their files."""
    failed = {name for change in changes if change.error is not None for name in change.hosts}
    changed = {name for change in changes for name in change.hosts}
    return [host.title for host in hosts if host.name in changed - failed]


def show_agents(titles: Sequence[str], changes: "Sequence[FileChange]", *, removed: bool) -> None:
    """Print which agents are connected or disconnected, and how many files changed for it."""
    count = sum(change.is_pending for change in changes)
    changed = f"{count_of(count, 'file')} changed). Restart them." if count else "up to date)."
    print_wrapped(f"{'Disconnected' if removed else 'Connected'}: {', '.join(titles)} ({changed}")


def show_next_steps(url: str | None, undo: str | None) -> None:
    """Print the address of the server, and how to undo the setup."""
    if url is not None:
        click.echo(f"Server: {url}")
    if undo is not None:
        click.echo(f"Undo: `{undo}`")


def show_kept(settings: "Settings", command: str, home: Path) -> None:
    """Print what a removal keeps, and how to connect the agents again."""
    print_wrapped(
        f"All memories stay in {plain(_shorten(settings.paths.root, home))}. `reverie down` stops the server."
    )
    click.echo(f"Undo: `{command}`")


def describe(change: "FileChange") -> dict[str, Any]:
    """Return a change as a JSON object."""
    return {
        "path": str(change.path),
        "hosts": change.hosts,
        "action": change.action,
        "error": change.error,
        "remarks": change.remarks,
        "diff": "\n".join(_diff(change)),
    }


def _name_files(changes: "Sequence[FileChange]", home: Path, room: int) -> str | None:
    """Return the names of files; if they need more room, only their number and the folders that fit."""
    if not changes:
        return None
    names = [f"{_shorten(change.path, home)}{_ENDS.get(change.action, '')}" for change in changes]
    count = count_of(len(changes), "file")
    folders = list(dict.fromkeys(_shorten(change.path.parent, home) for change in changes))
    summaries = [", ".join(names), f"{count} in {', '.join(folders)}", f"{count} in {min(folders, key=len)}, …"]
    return next((summary for summary in summaries if len(summary) <= room), count)


def _shorten(path: Path, home: Path) -> str:
    return str("~" / path.relative_to(home)) if path.is_relative_to(home) else str(path)


def _diff(change: "FileChange") -> Iterator[str]:
    """Yield the lines of a unified diff with hidden tokens."""
    if change.error is not None or change.before == change.after:
        return
    before, after = (_lines(content) for content in (change.before, change.after))
    old, new = ("/dev/null" if content is None else str(change.path) for content in (change.before, change.after))
    for line in difflib.unified_diff(before, after, old, new, lineterm=""):
        yield plain(line).rstrip("\n")


def _lines(content: bytes | None) -> list[str]:
    text = _BEARER.sub(HIDDEN, (content or b"").decode("utf-8", "replace"))
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]
