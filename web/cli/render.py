"""How answers look: tables and progress for a person at a terminal, plain lines in a pipe."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

# Wide enough that nothing wraps or is cut where no terminal sets a width.
PIPE_WIDTH = 4000
_CONTROL = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))


def plain(text: object) -> str:
    """Return a text without control characters, which could write over a terminal."""
    return str(text).translate(_CONTROL)


def console(*, stderr: bool = False) -> "Console":
    """Return a console on standard output or, for what is not the answer, on standard error."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, width=None if stream.isatty() else PIPE_WIDTH)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """Print rows under their columns; those named in `right` are aligned to the right."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        shown.add_row(*(Text("-" if value is None else plain(value)) for value in row))
    target = console()
    with target.capture() as captured:
        target.print(shown)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def facts(pairs: Sequence[tuple[str, object]]) -> None:
    """Print names and their values."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        click.echo(f"{name:<{width}}  {plain('-' if value is None else value)}")


def size(count: float) -> str:
    """Return a number of bytes for a reader."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def duration(seconds: float) -> str:
    """Return a duration for a reader."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


@contextmanager
def waiting(text: str, *, quiet: bool) -> Iterator[None]:
    """Show on standard error that something goes on: a spinner at a terminal, one line in a pipe."""
    if quiet:
        yield
    elif sys.stderr.isatty():
        with console(stderr=True).status(text):
            yield
    else:
        click.echo(f"{text} …", err=True)
        yield


@contextmanager
def progress(text: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], Any]]:
    """Show on standard error how much of a total is done; yields the function that sets it."""
    if quiet or not sys.stderr.isatty():
        if not quiet:
            click.echo(f"{text}: {total} …", err=True)
        yield lambda _done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True)) as bar:
        task = bar.add_task(text, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def reading(text: str, *, quiet: bool) -> Iterator[Callable[[int, int], Any]]:
    """Show on standard error how far a reading is; yields the function that sets what is done and how much there is."""
    if quiet or not sys.stderr.isatty():
        if not quiet:
            click.echo(f"{text} …", err=True)
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True)) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
