"""The live feed: memories as they are written."""

import json
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import NotFound, ServerUnreachable
from web.cli.command import Command, State, pass_state
from web.cli.render import plain, print_memory

if TYPE_CHECKING:
    from web.client import Client

POLL_S = 1.0
# What is shown after one look, and how many ids are remembered as shown.
PAGE = 50
MOST_AT_ONCE = 200
REMEMBERED = 1000


class Feed:
    """Know which memories were seen; each look returns the others, the oldest first."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        # Several, as the newest may be archived or purged between two looks.
        self._seen: deque[str] = deque(maxlen=REMEMBERED)

    def look(self, most: int = MOST_AT_ONCE) -> list[dict[str, Any]]:
        """Return what is new since the last look, at most so many."""
        new: list[dict[str, Any]] = []
        try:
            for memory in self._client.items("/v1/memories", max(most, PAGE), page=PAGE):
                if memory["id"] in self._seen:
                    break
                new.append(memory)
        except NotFound:
            # Nobody has written to this workspace yet.
            return []
        new.reverse()
        self._seen.extend(memory["id"] for memory in new)
        return new[-most:] if most else []


@click.command(cls=Command)
@click.option(
    "-n", "--lines", type=click.IntRange(0, MOST_AT_ONCE), default=10, show_default=True, help="How many old."
)
@click.option("--once", is_flag=True, help="Show these and return.")
@pass_state
def tail(state: State, lines: int, *, once: bool) -> None:
    """Show the newest memories, and each new one as it is written, until Ctrl-C; --json prints one a line."""
    with state.client() as client:
        feed = Feed(client)
        _print(state, feed.look(lines))
        if not once:
            _follow(state, feed)


def _follow(state: State, feed: Feed) -> None:
    pause = threading.Event()
    away = False
    while not pause.wait(POLL_S):
        try:
            new = feed.look()
        except ServerUnreachable as error:
            # A server that is started again goes on where it was.
            if not away:
                click.echo(f"{plain(error)}; waiting for it", err=True)
            away = True
        else:
            away = False
            _print(state, new)


def _print(state: State, memories: list[dict[str, Any]]) -> None:
    for memory in memories:
        if state.json:
            click.echo(json.dumps(memory, ensure_ascii=False))
        else:
            print_memory(memory)
