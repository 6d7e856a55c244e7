"""How answers look: tables and progress for a person at a terminal, plain lines in a pipe, memories as lines."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

# Wide enough that nothing wraps or is cut where no terminal sets a width.
PIPE_WIDTH = 4000
READABLE_WIDTH = 100
_CONTROL = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))


def plain(text: object) -> str:
    """Return a text without control characters, which could write over a terminal."""
    return str(text).translate(_CONTROL)


def terminal_width() -> int:
    """Return how many columns a line may take; in a pipe as many as are still read with ease."""
    return shutil.get_terminal_size((READABLE_WIDTH, 24)).columns


def open_console(*, stderr: bool = False) -> "Console":
    """Return a console on standard output or, for what is not the answer, on standard error."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, width=None if stream.isatty() else PIPE_WIDTH)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """Print rows under their columns; those named in `right` are aligned to the right."""
    from rich.table import Table
    from rich.text import Text

    rows_table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        rows_table.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        rows_table.add_row(*(Text("-" if value is None else plain(value)) for value in row))
    target = open_console()
    with target.capture() as captured:
        target.print(rows_table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def print_pairs(pairs: Sequence[tuple[str, object]]) -> None:
    """Print names and their values."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        click.echo(f"{name:<{width}}  {plain('-' if value is None else value)}")


def format_size(count: float) -> str:
    """Return a number of bytes for a reader."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


@contextmanager
def show_waiting(text: str, *, quiet: bool) -> Iterator[None]:
    """Show on standard error that something goes on: a spinner at a terminal, one line in a pipe."""
    if quiet:
        yield
    elif sys.stderr.isatty():
        with open_console(stderr=True).status(text):
            yield
    else:
        click.echo(f"{text} …", err=True)
        yield


@contextmanager
def show_progress(text: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], Any]]:
    """Show on standard error how much of a total is done; yields the function that sets it."""
    if quiet or not sys.stderr.isatty():
        if not quiet:
            click.echo(f"{text}: {total} …", err=True)
        yield lambda _done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=open_console(stderr=True)) as bar:
        task = bar.add_task(text, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def show_reading(text: str, *, quiet: bool) -> Iterator[Callable[[int, int], Any]]:
    """Show on standard error how far a reading is; yields the function that sets what is done and how much there is."""
    if quiet or not sys.stderr.isatty():
        if not quiet:
            click.echo(f"{text} …", err=True)
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=open_console(stderr=True)) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


PREVIEW = 100


def one_line(text: object, width: int = PREVIEW) -> str:
    """Return a text as one line of at most so many characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def format_value(value: Any) -> str:
    """Return a value as it would be given: text as it is, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def headline(memory: Mapping[str, Any]) -> str:
    """Return what tells one memory from another beside its text."""
    session = f"  session {one_line(memory['session_id'])}" if memory["session_id"] else ""
    return f"{memory['id']}  {memory['kind']}  {memory['occurred_at'][:16]}  {memory['source']}{session}"


def print_memory(memory: Mapping[str, Any]) -> None:
    """Print a memory: a headline and its text."""
    click.echo(headline(memory))
    print_text(memory["content"])


def print_text(text: str, indent: str = "     ") -> None:
    """Print a text below its headline."""
    for line in plain(text).splitlines():
        click.echo(f"{indent}{line}")


def print_if_none(items: Sequence[object], says: str = "there are none") -> None:
    """Say on standard error that a list is empty."""
    if not items:
        click.echo(says, err=True)


def scope_name(scope: Mapping[str, Any]) -> str:
    """Return a scope as it is given on the command line."""
    return f"{scope['kind']}:{scope['id']}" if scope["id"] else str(scope["kind"])


def format_minute(moment: str | None) -> str | None:
    """Return a moment to the minute."""
    return None if moment is None else moment[:16].replace("T", " ")
