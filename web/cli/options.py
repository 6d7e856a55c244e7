"""What several commands take: moments, scopes, JSON, texts from standard input, who asks, how many."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pipeline.enums import ScopeKind, Source
from pipeline.times import normalize_typed_time

# What came from another machine says so by itself.
SOURCE = click.Choice([source.value for source in Source if source is not Source.SYNC])
VIEWERS = ("user", "agent", "session", "task")


def parse_time(_context: click.Context, _parameter: click.Parameter, given: str | None) -> str | None:
    """Take a time of RFC 3339, or a date or a time without an offset, which are meant in UTC."""
    if given is None:
        return None
    try:
        return normalize_typed_time(given)
    except ValueError as error:
        raise click.BadParameter("must be a date, as 2026-03-01, or a time, as 2026-03-01T12:00:00Z") from error


def parse_scope_text(_context: click.Context, _parameter: click.Parameter, given: str | None) -> str | None:
    """Take a scope as `KIND` or `KIND:ID`."""
    if given is not None and given.partition(":")[0] not in list(ScopeKind):
        raise click.BadParameter(f"must be one of {', '.join(ScopeKind)}, with `:ID` where it needs one")
    return given


def parse_scope(context: click.Context, parameter: click.Parameter, given: str | None) -> dict[str, Any] | None:
    """Take a scope as `KIND` or `KIND:ID`, in the form of a body."""
    found = parse_scope_text(context, parameter, given)
    if found is None:
        return None
    kind, _, owner = found.partition(":")
    return {"kind": kind, "id": owner} if owner else {"kind": kind}


def parse_json_object(_context: click.Context, _parameter: click.Parameter, given: str | None) -> dict[str, Any] | None:
    """Take a JSON object."""
    if given is None:
        return None
    try:
        value = json.loads(given)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise click.BadParameter("must be a JSON object")
    return value


def check_name(_context: click.Context, _parameter: click.Parameter, given: str | None) -> str | None:
    """Take a name that stands in an address: not empty, without a slash."""
    if given is not None and (not given.strip() or "/" in given):
        raise click.BadParameter("must not be empty, nor hold a `/`")
    return given


def read_text(text: str) -> str:
    """Return a text, for `-` the one on standard input."""
    return sys.stdin.read().rstrip("\n") if text == "-" else text


def limit(default: int, most: int = 100_000) -> Callable[[Any], Any]:
    """Return the option `-n`, `--limit`: how many to list at most."""
    return click.option(
        "-n", "--limit", type=click.IntRange(1, most), default=default, show_default=True, help="How many at most."
    )


def viewer(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say who asks; what is owned is shown to its owner only."""
    for name in reversed(VIEWERS):
        command = click.option(f"--{name}", metavar="ID", help=f"Also what this {name} alone sees.")(command)
    return command


def select_given_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in given.items() if value not in (None, ())}


folder = click.option(
    "-C",
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="The folder that is meant; otherwise the current one.",
)


def read_token(file: Path | None) -> str:
    """Return a token out of a file, else out of standard input, unseen where a person types it."""
    if file is not None:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    if sys.stdin.isatty():
        return str(click.prompt("Token", hide_input=True, err=True)).strip()
    return sys.stdin.readline().strip()


token_file = click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The file that holds your token; otherwise it is read from standard input.",
)
