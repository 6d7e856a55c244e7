"""Print new memories as they are written."""

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import NotFound, ServerUnreachable
from web.cli.output import dump_json
from web.cli.render import plain, print_memory
from web.cli.state import State

if TYPE_CHECKING:
    from web.client import Client

POLL_S = 1.0
# The most memories printed after one poll, and the number of IDs that are remembered as printed.
MOST_AT_ONCE = 200
PAGE = 50
REMEMBERED = 1000


class Feed:
    """Find the memories that are new since the last poll."""

    def __init__(self, client: "Client", **filters: Any) -> None:
        self._client = client
        self._filters = filters
        # More than the newest ID: that memory may be archived or purged between two polls.
        self._seen: deque[str] = deque(maxlen=REMEMBERED)

    def poll(self, most: int = MOST_AT_ONCE) -> list[dict[str, Any]]:
        """Return at most `most` memories that are new since the last poll, oldest first."""
        new: list[dict[str, Any]] = []
        try:
            for memory in self._client.items("/v1/memories", max(most, PAGE), page=PAGE, **self._filters):
                if memory["id"] in self._seen:
                    break
                new.append(memory)
        except NotFound:
            # The workspace has no memories yet.
            return []
        new.reverse()
        self._seen.extend(memory["id"] for memory in new)
        return new[-most:] if most else []


def follow(state: State, feed: Feed) -> None:
    """Print each new memory until the user interrupts the command."""
    pause = threading.Event()
    is_away = False
    while not pause.wait(POLL_S):
        try:
            new = feed.poll()
        except ServerUnreachable as error:
            # Continue once the server is running again.
            if not is_away:
                click.echo(f"{plain(error)}; waiting for the server", err=True)
            is_away = True
        else:
            is_away = False
            print_memories(state, new)


def print_memories(state: State, memories: list[dict[str, Any]]) -> None:
    """Print memories; with --json one object per line."""
    for memory in memories:
        if state.json:
            click.echo(dump_json(memory))
        else:
            print_memory(memory)
