"""Command for threads (arcs), in the group `graph`."""

from typing import Any

import click

from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import Record, fill, one_line
from web.cli.state import State

ARC_STATUSES = ("active", "dormant", "closed")
NO_ARCS = "There are no threads here yet. An hourly job detects them; `reverie jobs run arcs` runs it now."
ARC = Record(
    lambda arc: fill("{id}  {status}  {first_at} to {last_at}  {size}", arc),
    {
        "title": lambda arc: one_line(arc["title"], 400),
        "memories": lambda arc: [fill("{id}  {kind}  {preview}", member) for member in arc["members"]],
    },
)


@click.command(cls=Command)
@click.option("--status", type=click.Choice(ARC_STATUSES), help="Only list threads with this status.")
@options.viewer
@options.limit(20)
@pass_state
def arcs(state: State, /, limit: int, **filters: Any) -> None:
    """List threads: memories that belong to one story, the most recently continued first."""
    state.show_list("/v1/arcs", limit, ARC, NO_ARCS, **filters)
