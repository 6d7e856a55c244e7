"""Format answers: tables and progress at a terminal, plain lines in a pipe, memories as lines."""

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipeline.times import local_minute

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")

# In a pipe no terminal sets a width: nothing shall be wrapped or cut.
PIPE_WIDTH = 4000
READABLE_WIDTH = 100
_CONTROL = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))


def plain(text: object) -> str:
    """Return a text without control characters, which could overwrite the terminal."""
    return str(text).translate(_CONTROL)


def terminal_width() -> int:
    """Return the width of the terminal, or a readable width in a pipe."""
    return shutil.get_terminal_size((READABLE_WIDTH, 24)).columns


def open_console(*, stderr: bool = False) -> "Console":
    """Return a console on standard output, or on standard error for everything but the answer."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, width=None if stream.isatty() else PIPE_WIDTH)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = (), empty: str | None = None
) -> None:
    """Print rows under a header; align the columns in `right` to the right.

    Without rows, print the message `empty` on standard error instead, if there is one.
    """
    if empty is not None and not rows:
        click.echo(empty, err=True)
        return
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


Column = str | Callable[[Any], object]


def print_table(
    items: Sequence[Any], columns: Mapping[str, Column], *, right: Sequence[str] = (), empty: str | None = None
) -> None:
    """Print a row for each item; a column is a field of the items, or a function that returns the cell."""
    rows = [[column(item) if callable(column) else item[column] for column in columns.values()] for item in items]
    table(list(columns), rows, right=right, empty=empty)


def print_items(items: Sequence[T], print_item: Callable[[T], object], empty: str) -> None:
    """Print each item by a function; without items, print the message `empty` on standard error."""
    for item in items:
        print_item(item)
    if not items:
        click.echo(empty, err=True)


def text_of(name: str) -> Column:
    """Return the column with the text in a field of the items, as one line."""
    return lambda item: one_line(item[name])


def minute_of(name: str) -> Column:
    """Return the column with the time in a field of the items, to the minute."""
    return lambda item: format_minute(item[name])


def size_of(name: str) -> Column:
    """Return the column with the number of bytes in a field of the items."""
    return lambda item: format_size(item[name])


# The column with the score of the items.
SCORE: Mapping[str, Column] = {"score": lambda item: f"{item['score']:.2f}"}


def print_wrapped(text: str) -> None:
    """Print a paragraph within the width of the terminal; indent its further lines."""
    width = open_console().width
    click.echo(textwrap.fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))


def print_pairs(pairs: Sequence[tuple[str, object]]) -> None:
    """Print names and their values."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        click.echo(f"{name:<{width}}  {plain('-' if value is None else value)}")


def format_size(count: float) -> str:
    """Format a number of bytes."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


@contextmanager
def show_waiting(text: str, *, quiet: bool) -> Iterator[None]:
    """Show on standard error that the command is working: a spinner at a terminal, one line in a pipe."""
    if quiet:
        yield
    elif sys.stderr.isatty():
        with open_console(stderr=True).status(text):
            yield
    else:
        click.echo(f"{text} …", err=True)
        yield


@contextmanager
def show_progress(text: str, total: int | None = None, *, quiet: bool) -> Iterator[Callable[..., Any]]:
    """Show progress towards a total on standard error; yield the function that sets the part done, and the total."""
    if quiet or not sys.stderr.isatty():
        if not quiet:
            click.echo(f"{text} …" if total is None else f"{text}: {total} …", err=True)
        yield lambda *_counts: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    part_done = TaskProgressColumn() if total is None else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), part_done, TimeRemainingColumn())
    with Progress(*columns, console=open_console(stderr=True)) as bar:
        task = bar.add_task(text, total=total)
        yield lambda done, total=total: bar.update(task, completed=done, total=total)


PREVIEW = 100


def one_line(text: object, width: int = PREVIEW) -> str:
    """Return a text as one line of at most `width` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def format_value(value: Any) -> str:
    """Return a value as it can be typed: text unchanged, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def count_of(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, in the plural unless it is 1."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def headline(memory: Mapping[str, Any]) -> str:
    """Return the line above a memory's text: ID, kind, time, source and session."""
    session = f"  session {one_line(memory['session_id'])}" if memory["session_id"] else ""
    source = name_source(memory)
    return f"{memory['id']}  {memory['kind']}  {local_minute(memory['occurred_at'])}  {source}{session}"


def name_source(memory: Mapping[str, Any]) -> str:
    """Return the source of a memory for its reader: "you said" for the owner's own words in a prompt."""
    person = memory.get("said_by")
    if person is None:
        return str(memory["source"])
    return "you said" if person == "user" else f"{person} said"


def print_memory(memory: Mapping[str, Any]) -> None:
    """Print the headline and the text of a memory."""
    click.echo(headline(memory))
    print_text(memory["content"])


def print_text(text: str, indent: str = "     ") -> None:
    """Print a text below its headline."""
    for line in plain(text).splitlines():
        click.echo(f"{indent}{line}")


def print_if_none(items: Sequence[object], message: str = "Nothing found.") -> None:
    """Print a message on standard error if a list is empty."""
    if not items:
        click.echo(message, err=True)


def scope_name(scope: Mapping[str, Any]) -> str:
    """Return a scope in the form that options take."""
    return f"{scope['kind']}:{scope['id']}" if scope["id"] else str(scope["kind"])


def format_minute(time: str | None) -> str | None:
    """Return a time to the minute in the local time zone."""
    return None if time is None else local_minute(time).replace("T", " ")


def describe_encoder(progress: Mapping[str, Any]) -> str:
    """Describe which model answers, why it is not the default, and the progress of the next model."""
    text: str = progress["model"]
    if progress["next_model"]:
        text += f"; {progress['next_model']} has embedded {progress['embedded']}"
    return f"{text}; {progress['languages']} not in English" if progress["languages"] else text
