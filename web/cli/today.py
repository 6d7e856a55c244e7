"""Command that prints what was learned, changed and forgotten in a day."""

import shlex
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import click

from pipeline.records import SHORT_ID
from pipeline.times import local_day_start, local_minute, parse, utc_now, utc_text
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import count_of, name_source, one_line, plain
from web.cli.state import State

PARTS = ("learned", "changed", "forgotten")
NOTHING = (
    "Nothing was learned, changed or forgotten {day}. Statements that your agents hear from you appear here, and so "
    'does what you store with `reverie remember "…"`.'
)


@click.command(cls=Command)
@click.option("--day", type=options.PAST, default="today", metavar="DAY", help="Another day, such as yesterday or 3d.")
@pass_state
def today(state: State, day: str) -> None:
    """Show what was learned, changed and forgotten today, in all workspaces or with -w in one.

    A day starts at midnight in your time zone.
    """
    start = parse(day).astimezone().date()
    ends = {"since": start, "until": start + timedelta(days=1)}
    bounds = {name: utc_text(local_day_start(day)) for name, day in ends.items()}
    query = options.select_given_options({**bounds, "workspace": state.named_workspace})
    answer = state.ask(lambda client: client.call("GET", "/v1/today", query=query))
    state.show(answer, lambda: _print_day(state, answer["items"], start))


def _print_day(state: State, days: list[dict[str, Any]], start: date) -> None:
    if not days:
        is_today = start == parse(utc_now()).astimezone().date()
        click.echo(NOTHING.format(day="today" if is_today else f"on {start}"), err=True)
    for number, day in enumerate(days):
        command = "reverie" if day["workspace"] == state.workspace else f"reverie -w {day['workspace']}"
        click.echo(f"{'' if number == 0 else chr(10)}{day['workspace']}")
        for part in PARTS:
            _print_part(part, day, command)
        if day["more"]:
            click.echo("  There were more changes; only the last are listed.")
        click.echo(f'  To change a sentence: {command} edit ID --content "…"   To delete it: {command} forget ID')


def _print_part(part: str, day: Mapping[str, Any], command: str) -> None:
    rows, imported = day[part], day["imported"].get(part)
    if not rows and not imported:
        return
    click.echo(f"  {part}")
    if imported:
        memories = count_of(imported, "imported memory", "imported memories")
        click.echo(f"    {memories}")
    for row in rows:
        _print_row(row, command)


def _print_row(row: Mapping[str, Any], command: str) -> None:
    time, memory = local_minute(row["at"])[-5:], row["memory"]
    if memory is None:
        click.echo(f"    {time}  a memory was deleted permanently")
        return
    what = name_source(memory) if row["what"] == "learned" else plain(row["what"])
    before = f"{one_line(row['before'])} → " if row["before"] else ""
    click.echo(f"    {time}  {memory['id'][-SHORT_ID:]}  {before}{one_line(memory['content'])}  ({what})")
    undo = _undo_command(row, memory)
    if undo is not None:
        click.echo(f"           undo: {command} {undo}")


def _undo_command(row: Mapping[str, Any], memory: Mapping[str, Any]) -> str | None:
    """Return the command that undoes a change, without the name of the program; None if there is none."""
    if row["undo"] is None:
        return None
    method, target, before = row["undo"]["method"], row["undo"]["id"], plain(row["before"])
    commands = {
        "audit": ["logs", "audit", "undo", target],
        "restore": ["restore", target[-SHORT_ID:]],
        "archive": ["forget", target[-SHORT_ID:]],
        "text": ["edit", memory["id"][-SHORT_ID:], "--content", before],
        "value": ["facts", "set", *target.split("/", 1), before.partition(": ")[2]],
    }
    return shlex.join(commands[method])
