"""What a workspace holds and what waits: stats, the queue, the rebuild."""

import threading
import time
from typing import TYPE_CHECKING, Any

import click

from pipeline.records import Stage
from pipeline.times import format_duration
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import format_size, print_pairs, show_progress, table

if TYPE_CHECKING:
    from web.client import Client

POLL_S = 0.25


@click.command(cls=Command)
@pass_state
def stats(state: State) -> None:
    """Count what the workspace holds and how large it is."""
    with state.client() as client:
        found = client.stats()
    if state.json:
        state.print_json(found)
        return
    memories, graph, index, stored = found["memories"], found["graph"], found["index"], found["bytes"]
    print_pairs(
        [
            ("workspace", found["workspace"]),
            ("memories", f"{memories['active']} active, {memories['archived']} archived"),
            ("sessions", memories["sessions"]),
            ("kinds", _counts(memories["by_kind"])),
            ("sources", _counts(memories["by_source"])),
            ("entities", f"{graph['entities']}, mentioned {graph['mentions']} times"),
            ("segment", f"{index['segment'] or 'none yet'}, {index['tail_rows']} writes since"),
            ("vectors", f"{index['passages']} passages by {index['model']} ({index['encoder']})"),
            ("files", ", ".join(f"{name} {format_size(count)}" for name, count in stored.items())),
        ]
    )


def _counts(counts: dict[str, int]) -> str | None:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or None


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def queue(context: click.Context) -> None:
    """Show what waits and what failed for good."""
    if context.invoked_subcommand is None:
        _show_queue(context.ensure_object(State))


def _show_queue(state: State) -> None:
    with state.client() as client:
        found = client.queue()
    if state.json:
        state.print_json(found)
        return
    rows = [[stage, count, found["dead"].get(stage, 0)] for stage, count in found["pending"].items()]
    table(["stage", "pending", "dead"], rows, right=["pending", "dead"])
    oldest = found["oldest_pending_s"]
    if oldest is not None:
        click.echo(f"the oldest waits for {format_duration(oldest)}")
    click.echo(f"{len(found['workers'])} worker processes have reported")
    if any(found["dead"].values()):
        click.echo("`reverie queue retry` gives what failed for good a fresh start")


@queue.command("retry")
@click.option("--stage", type=click.Choice([stage.value for stage in Stage]), help="Only what failed in this stage.")
@pass_state
def retry(state: State, stage: str | None) -> None:
    """Give what failed for good a fresh start."""
    with state.client() as client:
        found = client.retry(stage)
    if state.json:
        state.print_json(found)
    else:
        click.echo(f"{found['retried']} queued again")


@click.command(cls=Command)
@pass_state
def rebuild(state: State) -> None:
    """Compute every index of the workspace again from events.sqlite, while the server runs."""
    started = time.monotonic()
    with state.client() as client:
        queued = client.rebuild()["queued"]
        try:
            dead = _wait_until_digested(client, queued, quiet=state.json)
        except KeyboardInterrupt:
            click.echo("the rebuild goes on in the background; `reverie queue` shows how far it is", err=True)
            raise
    took = round(time.monotonic() - started, 1)
    if state.json:
        state.print_json({"queued": queued, "dead": dead, "took_s": took})
        return
    click.echo(f"{queued} memories of {state.workspace} indexed again in {took} s")
    if any(dead.values()):
        click.echo(f"failed for good: {_counts(dead)}; `reverie queue retry` tries again", err=True)


def _wait_until_digested(client: "Client", queued: int, *, quiet: bool) -> dict[str, Any]:
    pause = threading.Event()
    # Each memory is embedded and linked.
    total = 2 * queued
    with show_progress("indexing", total, quiet=quiet) as set_done:
        while True:
            found = client.queue()
            left = sum(found["pending"].values())
            set_done(max(0, total - left))
            if not left:
                return dict(found["dead"])
            pause.wait(POLL_S)
