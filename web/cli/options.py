"""Arguments and options that several commands take: texts, times, scopes, viewers, limits, confirmations."""

import codecs
import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from pipeline.kernel.enums import ScopeKind, Source
from pipeline.kernel.times import local_day_end, local_day_start, normalize_local_time, utc_now, utc_text
from web.cli.state import State

# Sync marks the memories of other machines itself.
SOURCE = click.Choice([source.value for source in Source if source is not Source.SYNC])
VIEWERS = ("user", "agent", "session", "task")
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_SPAN = re.compile(r"([0-9]{1,5})([hdw])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class Time(click.ParamType[str]):
    """A time: a date, RFC 3339 text, `now`, `yesterday`, or a number of hours, days or weeks such as `7d`.

    A number counts back from now, or with `future` forward. Days and times without an offset are in the local time
    zone. A day is its start, or with `is_end` its end.
    """

    name = "time"

    def __init__(self, *, future: bool = False, is_end: bool = False, may_be_past: bool = True) -> None:
        self._sign = 1 if future else -1
        self._is_end = is_end
        self._may_be_past = may_be_past

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the time as UTC text."""
        try:
            moment = self._read(str(value), datetime.now(UTC))
        except (ValueError, OverflowError):
            example = "in 7 days: 7d" if self._sign > 0 else "7 days ago: 7d"
            self.fail(
                f"{value!r} is not a time. Use a date (2026-03-01), a time (2026-03-01T12:00), yesterday, today, "
                f"tomorrow, or a number of hours, days or weeks ({example}).",
                param,
                ctx,
            )
        if not self._may_be_past and moment <= utc_now():
            self.fail(f"{value!r} is in the past. Use a later time, such as today, 7d or a date.", param, ctx)
        return moment

    def _read(self, text: str, now: datetime) -> str:
        word = text.strip().lower()
        if word == "now":
            return utc_text(now)
        if (span := _SPAN.fullmatch(word)) is not None:
            return utc_text(now + self._sign * int(span[1]) * _UNITS[span[2]])
        if word not in _DAYS and not _DATE.fullmatch(word):
            return normalize_local_time(text)
        today = now.astimezone().date()
        day = today + timedelta(days=_DAYS[word]) if word in _DAYS else date.fromisoformat(word)
        return utc_text(local_day_end(day) if self._is_end else local_day_start(day))


PAST = Time()
FUTURE = Time(future=True, is_end=True)
EXPIRY = Time(future=True, is_end=True, may_be_past=False)


def words(name: str, metavar: str, *, required: bool = True) -> Callable[[Any], Any]:
    """Return an argument that takes one or more words and joins them: quotes are optional."""
    return click.argument(
        name,
        nargs=-1,
        required=required,
        metavar=metavar,
        callback=lambda _context, _parameter, parts: " ".join(parts),
    )


def parse_scope_text(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """Check a scope in the form `KIND` or `KIND:ID`."""
    if text is not None and text.partition(":")[0] not in list(ScopeKind):
        raise click.BadParameter(f"{text!r} is not a scope. Use one of {', '.join(ScopeKind)}, or KIND:ID.")
    return text


def parse_scope(context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, Any] | None:
    """Return a scope in the form `KIND` or `KIND:ID` as an object."""
    scope = parse_scope_text(context, parameter, text)
    if scope is None:
        return None
    kind, _, owner = scope.partition(":")
    return {"kind": kind, "id": owner} if owner else {"kind": kind}


def parse_json_object(_context: click.Context, _parameter: click.Parameter, text: str | None) -> dict[str, Any] | None:
    """Return a JSON object."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"This is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise click.BadParameter('This is not a JSON object such as {"name": "value"}.')
    return value


def check_name(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """Check an ID or a name that becomes part of a URL path."""
    if name is not None and (not name.strip() or "/" in name):
        raise click.BadParameter("must not be empty and must not contain `/`")
    return name


def read_text(text: str, *, is_log: bool = False) -> str:
    """Return a text, or for `-` the text on standard input.

    In a log, replace the bytes that are no text. Otherwise raise UsageError for them.
    """
    if text != "-":
        return text
    raw = sys.stdin.buffer.read()
    encoding = "utf-16" if raw.startswith(_UTF_16_MARKS) else sys.stdin.encoding or "utf-8"
    try:
        return raw.decode(encoding, "replace" if is_log else "strict").removeprefix("\ufeff").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"Standard input is not valid {encoding.upper()}: byte {error.start + 1} is no text. Convert it first, for "
            "example with `iconv`."
        ) from error


def limit(default: int, most: int = 100_000) -> Callable[[Any], Any]:
    """Return the option `-n`, `--limit`."""
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help="Maximum number of results.",
    )


def viewer(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that include memories of one user, agent, session or task."""
    for name in reversed(VIEWERS):
        text = f"Include memories that only this {name} can see."
        command = click.option(f"--{name}", metavar="ID", help=text)(command)
    return command


def select_given_options(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in values.items() if value not in (None, ())}


folder = click.option(
    "-C",
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Folder to look at. Defaults to the current folder.",
)


def confirm(state: State, question: str, *, yes: bool, refusal: str) -> None:
    """Ask before something that cannot be undone; after a no, print the refusal and exit with 1.

    Raises UsageError with --json, which cannot ask.
    """
    if state.json and not yes:
        raise click.UsageError("Cannot ask for confirmation with --json. Add --yes to confirm.")
    if not (yes or click.confirm(question, err=True)):
        click.echo(refusal, err=True)
        raise click.exceptions.Exit(1)


yes = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


def read_token(file: Path | None) -> str:
    """Return a token from a file, or from standard input without echo."""
    if file is not None:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    if sys.stdin.isatty():
        return str(click.prompt("Token", hide_input=True, err=True)).strip()
    return sys.stdin.readline().strip()


token_file = click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File that contains your token. Without it, the token is read from standard input.",
)
