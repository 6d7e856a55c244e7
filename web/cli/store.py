"""Commands for the store of memories: snapshots, indexes, encryption, PostgreSQL."""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import InvalidField
from web.cli.command import Group, pass_state
from web.cli.local_store import nothing_runs, require_files
from web.cli.migrate import migrate
from web.cli.render import count_of, plain, show_progress, show_waiting
from web.cli.snapshots import snapshot
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.services.encryption import Converted
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
        queued = client.request("POST", "/v1/rebuild")["queued"]
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


@store.command()
@click.option(
    "--key-file",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="File of the key, outside of the data directory; it is created if it does not exist. Required the first "
    "time, and after you have moved the file.",
)
@pass_state
def encrypt(state: State, key_file: Path | None) -> int:
    """Encrypt all stores and snapshots with a key that you keep. Stop Reverie first."""
    from pipeline.services import encryption

    paths = state.settings.paths
    require_files(state.settings, "encrypt")
    with nothing_runs(state.settings, "encrypt"):
        try:
            is_new = encryption.choose_key(paths, key_file)
        except InvalidField as error:
            raise click.BadParameter(error.errors[0].msg, param_hint="--key-file") from error
        with show_waiting("encrypting", quiet=state.json):
            done = encryption.encrypt_home(paths)
    key = encryption.describe_encryption(paths).key_file
    answer = {"encrypted": True, "key_file": str(key), "made_key": is_new, **_describe_files(done)}

    def show() -> None:
        if is_new:
            click.echo(f"created the key {key}. Keep a copy in another place: without it, the memories are lost")
        _print_files(done, "encrypted", f"all stores and snapshots are encrypted with the key in {key}")
        click.echo(f"not encrypted: {encryption.NOT_ENCRYPTED}")

    state.show(answer, show)
    return 1 if done.left else 0


@store.command()
@pass_state
def decrypt(state: State) -> int:
    """Decrypt all stores and snapshots; your key file is kept. Stop Reverie first."""
    from pipeline.services import encryption

    with nothing_runs(state.settings, "decrypt"), show_waiting("decrypting", quiet=state.json):
        done = encryption.decrypt_home(state.settings.paths)
    answer = {"encrypted": bool(done.left), **_describe_files(done)}
    state.show(answer, lambda: _print_files(done, "decrypted", "no store and no snapshot is encrypted"))
    return 1 if done.left else 0


def _describe_files(done: "Converted") -> dict[str, Any]:
    return {"converted": done.files, "already": done.already, "left": done.left}


def _print_files(done: "Converted", verb: str, outcome: str) -> None:
    for name, count in done.files.items():
        if count:
            click.echo(f"{verb} {count_of(count, 'file')} of {name}")
    for problem in done.left:
        click.echo(f"not {verb}: {plain(problem)}", err=True)
    if not done.left:
        click.echo(outcome)


store.add_command(snapshot)
store.add_command(migrate)
