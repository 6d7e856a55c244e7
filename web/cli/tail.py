"""Print the events of a workspace as they happen."""

import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pipeline.enums import Kind
from pipeline.errors import AnswerLost, ServerUnreachable, StoreUnavailable
from pipeline.records import SHORT_ID
from pipeline.times import local_second
from web.cli.command import Command, pass_state
from web.cli.output import dump_json
from web.cli.render import one_line, plain
from web.cli.state import State

if TYPE_CHECKING:
    from web.client import Client

KINDS = click.Choice([kind.value for kind in Kind])
TYPES = ("written", "changed", "superseded", "archived", "restored", "purged", "candidate", "job_done")
RETRY_MS = 1000
RESET = "The server no longer has the events after this cursor. List the memories again; new events follow."


class Feed:
    """The events of a workspace after a cursor, which survives broken connections."""

    def __init__(self, client: "Client", after: str | None, **filters: str | None) -> None:
        self._client = client
        self._filters = filters
        self.cursor = after
        self.retry_ms = RETRY_MS

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the events of one connection."""
        for block in self._client.stream("/v1/events", {**self._filters, "after": self.cursor}):
            if block.retry_ms is not None:
                self.retry_ms = block.retry_ms
            if block.data:
                yield json.loads(block.data)
            # Only now: an event counts as read once it was processed.
            self.cursor = block.id or self.cursor


@click.command(cls=Command)
@click.option("--kind", "kinds", type=KINDS, multiple=True, help="Only print changes of this kind of memory.")
@click.option(
    "--type", "types", type=click.Choice(TYPES), metavar="TYPE", multiple=True, help="Only print events of this type."
)
@click.option("--after", metavar="CURSOR", help="Continue after this cursor; 0 is the beginning.")
@pass_state
def tail(state: State, kinds: tuple[str, ...], types: tuple[str, ...], after: str | None) -> None:
    """Print changes of memories and finished jobs as they happen, until Ctrl-C."""
    with state.client() as client:
        titles = None if state.json else "true"
        follow(state, Feed(client, after, kind=",".join(kinds), type=",".join(types), titles=titles))


def follow(state: State, feed: Feed) -> None:
    """Print events until the user interrupts the command; reconnect if the server is away."""
    pause = threading.Event()
    is_away = False
    while True:
        try:
            for event in feed.read():
                is_away = False
                print_event(state, event)
            is_away = False
        except (ServerUnreachable, AnswerLost, StoreUnavailable) as error:
            if not is_away:
                click.echo(f"{plain(error)}; waiting for the server", err=True)
            is_away, feed.retry_ms = True, RETRY_MS
        pause.wait(feed.retry_ms / 1000)


def print_event(state: State, event: dict[str, Any]) -> None:
    """Print one event on one line."""
    if state.json:
        click.echo(dump_json(event))
    elif event["type"] == "reset":
        click.echo(RESET, err=True)
    elif event["type"] == "job_done":
        failed = "" if event["ok"] else "  (failed)"
        click.echo(f"{local_second(event['at'])}  job_done    {plain(event['job'])}{failed}")
    else:
        title = one_line(event.get("title", ""))
        head = f"{local_second(event['at'])}  {event['type']:<10}  {event['kind']:<10}"
        click.echo(f"{head}  {event['memory_id'][-SHORT_ID:]}  {title}".rstrip())
