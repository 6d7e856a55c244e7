"""Print events of a workspace, or its new memories, as they happen."""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Protocol

import click

from pipeline.kernel.enums import Kind
from pipeline.kernel.errors import AnswerLost, NotFound, ServerUnreachable, StoreUnavailable
from pipeline.kernel.records import SHORT_ID
from pipeline.kernel.times import local_second
from web.cli.command import Command, pass_state
from web.cli.output import dump_json
from web.cli.render import one_line, plain
from web.cli.state import State
from web.http.client import Client

KINDS = click.Choice([kind.value for kind in Kind])
TYPES = ("written", "changed", "superseded", "archived", "restored", "purged", "candidate", "job_done")
RETRY_S = 1.0
RESET = "The server no longer has the events after this cursor. List the memories again; new events follow."
# The most memories printed after one poll, and the number of IDs that are remembered as printed.
MOST_AT_ONCE = 200
PAGE = 50
REMEMBERED = 1000


class Feed(Protocol):
    """Yields what is new since the last reading; the next one follows after `pause_s`."""

    pause_s: float

    def read(self) -> Iterable[dict[str, Any]]:
        """Return what is new."""


class EventFeed:
    """The events of a workspace after a cursor, which survives broken connections."""

    def __init__(self, client: Client, after: str | None, **filters: str | None) -> None:
        self._client = client
        self._filters = filters
        self.cursor = after
        self.pause_s = RETRY_S

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the events of one connection."""
        for block in self._client.stream("/v1/events", {**self._filters, "after": self.cursor}):
            if block.retry_ms is not None:
                self.pause_s = block.retry_ms / 1000
            if block.data:
                yield json.loads(block.data)
            # Only now: an event counts as read once it was processed.
            self.cursor = block.id or self.cursor


class MemoryFeed:
    """The memories that are new since the last poll."""

    def __init__(self, client: Client, **filters: Any) -> None:
        self._client = client
        self._filters = filters
        self.pause_s = RETRY_S
        # More than the newest ID: that memory may be archived or purged between two polls.
        self._seen: deque[str] = deque(maxlen=REMEMBERED)

    def read(self, most: int = MOST_AT_ONCE) -> list[dict[str, Any]]:
        """Return at most `most` memories that are new since the last poll, oldest first."""
        new: list[dict[str, Any]] = []
        # A workspace without memories is not found.
        with suppress(NotFound):
            for memory in self._client.items("/v1/memories", max(most, PAGE), page=PAGE, **self._filters):
                if memory["id"] in self._seen:
                    break
                new.append(memory)
        new.reverse()
        self._seen.extend(memory["id"] for memory in new)
        return new[-most:] if most else []


def follow(state: State, feed: Feed, print_item: Callable[[dict[str, Any]], object]) -> None:
    """Print what is new until the user interrupts the command; reconnect if the server is away."""
    pause = threading.Event()
    is_away = False
    while True:
        try:
            for item in feed.read():
                is_away = False
                print_new(state, item, print_item)
            is_away = False
        except (ServerUnreachable, AnswerLost, StoreUnavailable) as error:
            if not is_away:
                click.echo(f"{plain(error)}; waiting for the server", err=True)
            is_away, feed.pause_s = True, RETRY_S
        if pause.wait(feed.pause_s):
            return


def print_new(state: State, item: dict[str, Any], print_item: Callable[[dict[str, Any]], object]) -> None:
    """Print an event or a memory; with --json as an object on one line."""
    if state.json:
        click.echo(dump_json(item))
    else:
        print_item(item)


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
        feed = EventFeed(client, after, kind=",".join(kinds), type=",".join(types), titles=titles)
        follow(state, feed, print_event)


def print_event(event: dict[str, Any]) -> None:
    """Print one event on one line."""
    if event["type"] == "reset":
        click.echo(RESET, err=True)
        return
    line = f"{local_second(event['at'])}  {event['type']:<10}  "
    if event["type"] == "job_done":
        line += f"{plain(event['job'])}{'' if event['ok'] else '  (failed)'}"
    else:
        line += f"{event['kind']:<10}  {event['memory_id'][-SHORT_ID:]}  {one_line(event.get('title', ''))}"
    click.echo(line.rstrip())
