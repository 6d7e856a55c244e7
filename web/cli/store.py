"""Commands for the store of memories: snapshots, indexes, encryption, PostgreSQL."""

import threading
import time
from typing import TYPE_CHECKING, Any

import click

from web.cli.command import Group, pass_state
from web.cli.encryption import decrypt, encrypt
from web.cli.migrate import migrate
from web.cli.render import show_progress
from web.cli.snapshots import snapshot
from web.cli.state import State

if TYPE_CHECKING:
    from web.client import Client

POLL_S = 0.25


@click.group(cls=Group)
def store() -> None:
    """Back up, restore, encrypt and move the store, and rebuild its indexes."""


@store.command()
@pass_state
def rebuild(state: State) -> None:
    """Rebuild every index of the workspace from events.sqlite, while the server runs."""
    started = time.monotonic()
    with state.client() as client:
        queued = client.rebuild()["queued"]
        try:
            failed = _wait_until_indexed(client, queued, quiet=state.json)
        except KeyboardInterrupt:
            click.echo("the rebuild continues in the background; `reverie jobs queue` shows its progress", err=True)
            raise
    took_s = round(time.monotonic() - started, 1)
    if state.json:
        state.print_json({"queued": queued, "dead": failed, "took_s": took_s})
        return
    click.echo(f"indexed {queued} memories of {state.workspace} in {took_s} s")
    if any(failed.values()):
        counts = ", ".join(f"{name} {count}" for name, count in failed.items())
        click.echo(f"failed permanently: {counts}; `reverie jobs queue retry` tries again", err=True)


def _wait_until_indexed(client: "Client", queued: int, *, quiet: bool) -> dict[str, Any]:
    pause = threading.Event()
    # Each memory passes two stages: embed and entities.
    total = 2 * queued
    with show_progress("indexing", total, quiet=quiet) as set_done:
        while True:
            answer = client.queue()
            left = sum(answer["pending"].values())
            set_done(max(0, total - left))
            if not left:
                return dict(answer["dead"])
            pause.wait(POLL_S)


for _command in (snapshot, encrypt, decrypt, migrate):
    store.add_command(_command)
