"""Command that prints what was learned, changed and forgotten in a day."""

import shlex
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import click

from pipeline.kernel.records import SHORT_ID
from pipeline.kernel.times import local_day_start, local_minute, parse, utc_now, utc_text
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
    answer = state.ask(lambda client: client.request("GET", "/v1/today", query=query))
    is_today = start == parse(utc_now()).astimezone().date()
    empty = NOTHING.format(day="today" if is_today else f"on {start}")
    state.show_page(answer, lambda day: _print_day(day, state.workspace), empty)


def _print_day(day: Mapping[str, Any], here: str) -> None:
    command = "reverie" if day["workspace"] == here else f"reverie -w {day['workspace']}"
    click.echo(day["workspace"])
    for part in PARTS:
        imported = day["imported"].get(part)
        if day[part] or imported:
            click.echo(f"  {part}")
        if imported:
            click.echo(f"    {count_of(imported, 'imported memory', 'imported memories')}")
        for row in day[part]:
            _print_row(row, command)
    if day["more"]:
        click.echo("  There were more changes; only the last are listed.")
    click.echo(f'  To change a sentence: {command} edit ID --content "…"   To delete it: {command} forget ID\n')


def _print_row(row: Mapping[str, Any], command: str) -> None:
    time, memory = local_minute(row["at"])[-5:], row["memory"]
    if memory is None:
        click.echo(f"    {time}  a memory was deleted permanently")
        return
    what = name_source(memory) if row["what"] == "learned" else plain(row["what"])
    before = f"{one_line(row['before'])} → " if row["before"] else ""
    click.echo(f"    {time}  {memory['id'][-SHORT_ID:]}  {before}{one_line(memory['content'])}  ({what})")
    if row["undo"] is not None:
        click.echo(f"           undo: {command} {_undo_command(row, memory)}")


def _undo_command(row: Mapping[str, Any], memory: Mapping[str, Any]) -> str:
    """Return the command that undoes a change, without the name of the program."""
    method, target, before = row["undo"]["method"], row["undo"]["id"], plain(row["before"])
    commands = {
        "audit": ["logs", "audit", "undo", target],
        "restore": ["restore", target[-SHORT_ID:]],
        "archive": ["forget", target[-SHORT_ID:]],
        "text": ["edit", memory["id"][-SHORT_ID:], "--content", before],
        "value": ["facts", "set", *target.split("/", 1), before.partition(": ")[2]],
    }
    return shlex.join(commands[method])
