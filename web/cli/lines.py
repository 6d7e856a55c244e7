"""Memories as lines for a reader."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from web.cli.render import plain

PREVIEW = 100


def one_line(text: object, width: int = PREVIEW) -> str:
    """Return a text as one line of at most so many characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def shown(value: Any) -> str:
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


def remark_on_none(items: Sequence[object]) -> None:
    """Say on standard error that a list is empty."""
    if not items:
        click.echo("there are none", err=True)


def scope_name(scope: Mapping[str, Any]) -> str:
    """Return a scope as it is given on the command line."""
    return f"{scope['kind']}:{scope['id']}" if scope["id"] else str(scope["kind"])


def day(moment: str | None) -> str | None:
    """Return a moment to the minute."""
    return None if moment is None else moment[:16].replace("T", " ")
