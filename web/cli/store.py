"""Commands for the store of memories: snapshots, indexes, encryption, PostgreSQL."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import InvalidField
from web.cli.command import Group, pass_state
from web.cli.local_store import nothing_runs, require_files
from web.cli.render import count_of, format_size, plain, show_progress, show_waiting, size_of, table
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.services.encryption import Converted
    from pipeline.services.moving import Move, MovedPart
    from pipeline.services.snapshots import SnapshotSummary
    from web.client import Client


POLL_S = 0.25
# Each row is read three times: to list it, to copy it, and to compare the copy.
_READINGS = 3
_KINDS = {"home": "data directory", "settings": "settings", "workspace": "workspace"}
_NOT_ENCRYPTED = "the files here are encrypted, the server's database is not: encrypt the disk of the server"
_REMAINING = "settings, token, models and indexes stay in the data directory; Reverie computes missing vectors again"
NO_SNAPSHOTS = "There is no snapshot yet. Take one with `reverie store snapshot take`."


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


@store.command()
@click.option(
    "--to", required=True, metavar="STORE", help="Target: postgresql://USER@HOST/DATABASE, or sqlite for files."
)
@click.option(
    "--home",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Data directory for the files when moving back.  [default: the current one]",
)
@click.option("--only", multiple=True, metavar="ID", help="Only move this workspace. Can be repeated.")
@click.option("--dry-run", is_flag=True, help="Show what would be moved without moving it.")
@pass_state
def migrate(state: State, to: str, home: Path | None, only: tuple[str, ...], *, dry_run: bool) -> int:
    """Move the store to a PostgreSQL server, or back into files, and compare every row. Stop Reverie first.

    The source is not changed. If you run the command again, it continues after an interruption and moves changes.
    """
    from pipeline.services import moving

    with _wrong_usage():
        # Checked before a folder is created for the other data directory.
        moving.choose_server(state.settings, to, home)
    chosen = only or ((state.named_workspace,) if state.named_workspace else ())
    homes = [state.settings] if home is None else [state.settings, replace(state.settings, home=home.absolute())]
    with ExitStack() as stack:
        for settings in homes:
            stack.enter_context(nothing_runs(settings, "move the store"))
        with _wrong_usage():
            move = stack.enter_context(moving.open_move(state.settings, to, home, chosen))
        done = _move(move, dry_run=dry_run, quiet=state.json)
    is_complete = not dry_run and all(part.problem is None for part in done)
    answer = {"to": move.target.name, "moved": is_complete, "parts": [_describe_part(part) for part in done]}
    is_encrypted = state.settings.paths.store_key.is_file()
    target = move.target.name
    state.show(answer, lambda: _print_moved(done, to if is_complete else None, target, is_encrypted=is_encrypted))
    return 1 if any(part.problem is not None for part in done) else 0


@contextmanager
def _wrong_usage() -> Iterator[None]:
    try:
        yield
    except InvalidField as error:
        raise click.BadParameter(error.errors[0].msg, param_hint=f"--{error.errors[0].loc}") from error


def _move(move: "Move", *, dry_run: bool, quiet: bool) -> list["MovedPart"]:
    from pipeline.services import moving

    total, read = moving.count_rows(move) * (1 if dry_run else _READINGS), 0
    with show_progress("reading rows" if dry_run else "moving rows", total, quiet=quiet) as set_done:

        def count(rows: int) -> None:
            nonlocal read
            read += rows
            set_done(read)

        done = list(moving.move_parts(move, dry_run=dry_run, progress=count))
    if not dry_run:
        moving.finish(move, lambda message: click.echo(plain(message), err=True))
    return done


def _describe_part(moved: "MovedPart") -> dict[str, Any]:
    return {
        "name": moved.part.name,
        "of": moved.part.kind,
        "outcome": moved.outcome,
        "rows": moved.rows,
        "problem": moved.problem,
    }


def _print_moved(done: Sequence["MovedPart"], moved_to: str | None, target: str, *, is_encrypted: bool) -> None:
    rows = [[_KINDS[moved.part.kind], moved.part.name, moved.rows, moved.outcome] for moved in done]
    table(["kind", "part", "rows", "outcome"], rows, right=["rows"])
    for moved in done:
        if moved.problem is not None:
            click.echo(f"{moved.part.name} was not moved: {plain(moved.problem)}", err=True)
    if moved_to == "sqlite":
        click.echo(f"all rows are in {plain(target)}; to use it, unset REVERIE_STORE")
    elif moved_to is not None:
        click.echo(f"all rows are at {plain(target)}; to use it, set REVERIE_STORE={plain(target)}")
        click.echo(_REMAINING)
        if is_encrypted:
            click.echo(_NOT_ENCRYPTED)


@store.group()
def snapshot() -> None:
    """Take, list and restore verified copies of a workspace, or of accounts, tokens and roles."""


_of_people = click.option(
    "--people", "of_people", is_flag=True, help="Accounts, tokens and roles instead of the workspace."
)


@snapshot.command("list")
@_of_people
@pass_state
def list_snapshots(state: State, *, of_people: bool) -> None:
    """List snapshots, newest first."""
    from pipeline.services import snapshots

    counted = "people" if of_people else "memories"
    copies = (
        snapshots.list_people_snapshots(state.settings.paths)
        if of_people
        else snapshots.list_snapshots(state.settings, state.workspace)
    )
    page = {"items": [_describe_copy(copy, counted) for copy in copies], "next_cursor": None}
    columns = {"snapshot": "name", "taken": "taken", counted: counted, "size": size_of("bytes")}
    state.show_table(page, columns, right=[counted, "size"], empty=NO_SNAPSHOTS)


def _describe_copy(copy: "SnapshotSummary", counted: str) -> dict[str, Any]:
    if copy.problem is not None:
        click.echo(f"{copy.name}: {plain(copy.problem)}", err=True)
    counts = {counted: copy.count}
    return {"name": copy.name, "taken": copy.taken, "at": copy.at.isoformat(), **counts, "bytes": copy.bytes}


@snapshot.command("take")
@_of_people
@pass_state
def take(state: State, *, of_people: bool) -> None:
    """Take a snapshot now; the server may be running."""
    from pipeline.services import snapshots

    if of_people:
        require_files(state.settings, "take a snapshot of accounts")
        copy = _describe_copy(snapshots.take_people_snapshot(state.settings.paths), "people")
        state.show(copy, f"{copy['name']} contains {copy['people']} people ({format_size(copy['bytes'])})")
        return
    if not snapshots.takes_snapshots(state.settings):
        require_files(state.settings, "take a snapshot")
    with show_waiting("copying", quiet=state.json):
        copy = _describe_copy(snapshots.take_snapshot(state.settings, state.workspace), "memories")
    text = f"{copy['name']} contains {copy['memories']} memories of {state.workspace} ({format_size(copy['bytes'])})"
    state.show(copy, text)


@snapshot.command("restore")
@click.argument("name")
@_of_people
@pass_state
def restore(state: State, name: str, *, of_people: bool) -> None:
    """Restore the workspace from the snapshot NAME, or `latest`. Stop Reverie first; the current store is kept."""
    from pipeline.services import snapshots

    if of_people:
        _restore_people(state, name)
        return
    if not snapshots.takes_snapshots(state.settings):
        require_files(state.settings, "restore a snapshot")
    with nothing_runs(state.settings, "restore a snapshot"), show_waiting("restoring", quiet=state.json):
        restored = snapshots.restore_snapshot(
            state.settings,
            state.workspace,
            name,
            lambda message: click.echo(plain(message), err=True),
        )
    aside = "" if restored.aside is None else f"the previous store is kept as {restored.aside}\n"
    state.show(
        {"restored": restored.snapshot.name, "memories": restored.memories, "aside": restored.aside},
        f"restored {state.workspace} from {restored.snapshot.name}: {restored.memories} memories\n{aside}"
        "Reverie rebuilds the indexes in the background after the next start",
    )


def _restore_people(state: State, name: str) -> None:
    from pipeline.services import snapshots

    problems: list[str] = []
    require_files(state.settings, "restore a snapshot of accounts")
    with nothing_runs(state.settings, "restore a snapshot of accounts"):
        restored, aside = snapshots.restore_people(state.settings.paths, name, problems.append)
    for problem in problems:
        click.echo(plain(problem), err=True)
    kept = "" if problems else "; removals and revocations since then stay in force"
    note = "" if aside is None else f"\nthe previous file is kept as {aside}"
    state.show(
        {"restored": restored.name, "people": restored.count, "aside": aside},
        f"restored accounts, tokens and roles from {restored.name}{kept}{note}",
    )
