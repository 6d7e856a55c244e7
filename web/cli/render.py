"""Format answers: tables and progress at a terminal, plain lines in a pipe, memories as lines."""

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from pipeline.kernel.times import local_minute

if TYPE_CHECKING:
    from rich.console import Console

# In a pipe no terminal sets a width: nothing shall be wrapped or cut.
PIPE_WIDTH = 4000
READABLE_WIDTH = 100
# The indent of the rows below a title.
INDENT = "     "
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


# A cell with a number, a share, a size or a duration.
_NUMBER = re.compile(r"[-+]?[\d,.]+(?:%| ?[KMG]?i?B| m?s)?")


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str | None = None) -> None:
    """Print rows under a header; align columns of numbers to the right.

    Without rows, print the message `empty` on standard error instead, if there is one.
    """
    if empty is not None and not rows:
        click.echo(empty, err=True)
        return
    from rich.table import Table
    from rich.text import Text

    rows_table = Table(box=None, pad_edge=False, header_style="bold")
    cells = [["-" if value is None else plain(value) for value in row] for row in rows]
    for number, column in enumerate(columns):
        values = [row[number] for row in cells if row[number] not in ("-", "")]
        numeric = values and all(map(_NUMBER.fullmatch, values))
        rows_table.add_column(
            column,
            justify="right" if numeric else "left",
            # A column that is narrower than a word, such as an ID, would cut it.
            min_width=max((len(word) for value in (column, *values) for word in value.split()), default=0),
        )
    for row in cells:
        rows_table.add_row(*map(Text, row))
    target = open_console()
    with target.capture() as captured:
        target.print(rows_table, crop=False)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


# A field of a record: its path, such as `memory.id`, or a function that returns what to print.
Field = str | Callable[[Any], object]
Fields = Mapping[str, Field]


def read_field(item: Any, field: Field) -> object:
    """Return a field of a record in the form for a reader; None if it has no value."""
    if callable(field):
        return field(item)
    for name in field.split("."):
        item = None if item is None else item[name]
    return format_field(name, item)


def format_field(name: str, value: Any) -> object:
    """Return a value in the form for a reader. The name of its field decides between the forms of a type."""
    form = _FORMS.get("at" if name.endswith("_at") else name)
    if form is not None and value is not None:
        return form(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{one_line(key)} {format_value(part)}" for key, part in value.items())
    return ", ".join(map(format_value, value)) if isinstance(value, list) else value


def pick(record: object, *names: str) -> dict[str, Any]:
    """Return some attributes of a record as a JSON object."""
    return {name: getattr(record, name) for name in names}


def print_table(items: Sequence[Any], columns: Fields, *, empty: str | None = None) -> None:
    """Print a row for each record, with a column for each field."""
    rows = [[read_field(item, field) for field in columns.values()] for item in items]
    table(list(columns), rows, empty=empty)


def print_fields(item: Any, fields: Fields, indent: str = "") -> None:
    """Print a row for each field of a record that has a value."""
    pairs = [(name, read_field(item, field)) for name, field in fields.items()]
    print_pairs([(f"{indent}{name}", value) for name, value in pairs if value not in (None, "", [])])


@dataclass(frozen=True, slots=True)
class Record:
    """The view of a record: its title, then an indented row for each field that has a value, then its lists."""

    title: Field
    fields: Fields = field(default_factory=dict)
    lists: "Mapping[str, View]" = field(default_factory=dict)

    def __call__(self, item: Any) -> None:
        """Print a record."""
        click.echo(plain(read_field(item, self.title)))
        print_fields(item, self.fields, INDENT)
        for name, view in self.lists.items():
            if item[name]:
                click.echo(f"\n{name}")
                print_items(item[name], view)


# How a list is printed: the columns of a table, or a function that prints an item.
View = Fields | Callable[[Any], object]


def print_items(items: Sequence[Any], view: View, empty: str | None = None) -> None:
    """Print the items of a list; without items, print the message `empty` on standard error, if there is one."""
    if isinstance(view, Mapping):
        print_table(items, view, empty=empty)
        return
    for item in items:
        view(item)
    if not items and empty is not None:
        click.echo(empty, err=True)


def fill(text: str, answer: Mapping[str, Any]) -> str:
    """Return a text with fields of an answer in the places that name them, such as `{id}`."""
    return text.format_map({name: plain(format_field(name, value)) for name, value in answer.items()})


def print_wrapped(text: str) -> None:
    """Print a paragraph within the width of the terminal; indent its further lines."""
    width = open_console().width
    click.echo(textwrap.fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))


def print_pairs(pairs: Sequence[tuple[str, object]]) -> None:
    """Print names and their values; of a list or of a text with several lines, a row for each value or line."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        for number, line in enumerate(
            value if isinstance(value, list) else plain("-" if value is None else value).splitlines() or [""]
        ):
            click.echo(f"{'' if number else name:<{width}}  {plain(line)}")


def format_size(count: float) -> str:
    """Format a number of bytes."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def format_sizes(sizes: Mapping[str, int]) -> str:
    """Format numbers of bytes by name."""
    return ", ".join(f"{name} {format_size(count)}" for name, count in sizes.items())


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
    """Show progress towards a total on standard error; yield the function that sets part, total and text."""
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
        yield lambda done, total=total, text=text: bar.update(task, completed=done, total=total, description=text)


PREVIEW = 100


def one_line(text: object, width: int | None = PREVIEW) -> str:
    """Return a text as one line, of at most `width` characters."""
    line = " ".join(plain(text).split())
    return line if width is None or len(line) <= width else f"{line[: width - 1]}…"


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


def print_text(text: str) -> None:
    """Print a text below its headline."""
    for line in plain(text).splitlines():
        click.echo(f"{INDENT}{line}")


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


# The forms of fields, by name.
_FORMS: Mapping[str, Callable[[Any], object]] = {
    **dict.fromkeys(("at", "since", "valid_from", "valid_to"), format_minute),
    "scope": scope_name,
    "bytes": format_size,
    "progress": "{:.0%}".format,
    **dict.fromkeys(("score", "lasts", "importance", "relevance"), "{:.2f}".format),
    **dict.fromkeys(
        ("content", "text", "title", "name", "subject", "attribute", "value", "sentence", "preview"),
        lambda value: one_line(format_value(value)),
    ),
}
