"""Commands for the store of memories: snapshots, indexes, encryption, PostgreSQL."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from pipeline.features.encryption import usecases as encryption
from pipeline.features.postgres import usecases as moving
from pipeline.features.snapshots import usecases as snapshots
from pipeline.kernel.errors import InvalidField
from web.cli.command import Group, pass_state
from web.cli.local_store import nothing_runs, require_files
from web.cli.render import Fields, count_of, fill, pick, plain, print_table, show_progress, show_waiting
from web.cli.state import State, empty_page
from web.http.client import Client

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
    answer = {"queued": queued, "dead": failed, "took_s": took_s}
    state.show(answer, f"indexed {queued} memories of {state.workspace} in {took_s} s")
    if any(failed.values()):
        counts = ", ".join(f"{name} {count}" for name, count in failed.items())
        state.note(f"failed permanently: {counts}; `reverie jobs queue retry` tries again")


def _wait_until_indexed(client: Client, queued: int, *, quiet: bool) -> dict[str, Any]:
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
    paths = state.settings.paths
    require_files(state.settings, "encrypt")
    with nothing_runs(state.settings, "encrypt"):
        with _wrong_usage():
            is_new = encryption.choose_key(paths, key_file)
        with show_waiting("encrypting", quiet=state.json):
            done = encryption.encrypt_home(paths)
    key = encryption.describe_encryption(paths).key_file
    answer = {"encrypted": True, "key_file": str(key), "made_key": is_new, **_describe_files(done)}
    if is_new:
        state.note(f"created the key {key}. Keep a copy in another place: without it, the memories are lost")
    outcome = f"all stores and snapshots are encrypted with the key in {key}"
    state.show(answer, lambda _: _print_files(done, "encrypted", outcome))
    state.note(f"not encrypted: {encryption.NOT_ENCRYPTED}")
    return 1 if done.left else 0


@store.command()
@pass_state
def decrypt(state: State) -> int:
    """Decrypt all stores and snapshots; your key file is kept. Stop Reverie first."""
    with nothing_runs(state.settings, "decrypt"), show_waiting("decrypting", quiet=state.json):
        done = encryption.decrypt_home(state.settings.paths)
    answer = {"encrypted": bool(done.left), **_describe_files(done)}
    state.show(answer, lambda _: _print_files(done, "decrypted", "no store and no snapshot is encrypted"))
    return 1 if done.left else 0


def _describe_files(done: encryption.Converted) -> dict[str, Any]:
    return {"converted": done.files, "already": done.already, "left": done.left}


def _print_files(done: encryption.Converted, verb: str, outcome: str) -> None:
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
    problems = [part for part in done if part.problem is not None]
    parts = [
        {"name": moved.part.name, "of": moved.part.kind, **pick(moved, "outcome", "rows", "problem")} for moved in done
    ]
    answer = {"to": move.target.name, "moved": not (dry_run or problems), "parts": parts}
    state.show(answer, _print_moved)
    if answer["moved"] and not state.json:
        _print_next(
            plain(move.target.name), to_files=to == "sqlite", is_encrypted=state.settings.paths.store_key.is_file()
        )
    return 1 if problems else 0


@contextmanager
def _wrong_usage() -> Iterator[None]:
    try:
        yield
    except InvalidField as error:
        hint = f"--{error.errors[0].loc.replace('_', '-')}"
        raise click.BadParameter(error.errors[0].msg, param_hint=hint) from error


def _move(move: moving.Move, *, dry_run: bool, quiet: bool) -> list[moving.MovedPart]:
    total, read = moving.count_rows(move) * (1 if dry_run else _READINGS), 0
    with show_progress("reading rows" if dry_run else "moving rows", total, quiet=quiet) as set_done:

        def count(rows: int) -> None:
            nonlocal read
            read += rows
            set_done(read)

        done = list(moving.move_parts(move, dry_run=dry_run, progress=count))
    if not dry_run:
        moving.finish(move, _report_problem)
    return done


def _print_moved(answer: dict[str, Any]) -> None:
    columns: Fields = {"kind": lambda part: _KINDS[part["of"]], "part": "name", "rows": "rows", "outcome": "outcome"}
    print_table(answer["parts"], columns)
    for part in answer["parts"]:
        if part["problem"] is not None:
            click.echo(fill("{name} was not moved: {problem}", part), err=True)


def _print_next(target: str, *, to_files: bool, is_encrypted: bool) -> None:
    if to_files:
        click.echo(f"all rows are in {target}; to use it, unset REVERIE_STORE")
        return
    click.echo(f"all rows are at {target}; to use it, set REVERIE_STORE={target}\n{_REMAINING}")
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
    counted = "people" if of_people else "memories"
    if of_people:
        copies = snapshots.list_people_snapshots(state.settings.paths)
    else:
        copies = snapshots.list_snapshots(state.settings, state.workspace)
    page = empty_page() | {"items": [_describe_copy(copy, counted) for copy in copies]}
    columns = {"snapshot": "name", "taken": "taken", counted: counted, "size": "bytes"}
    state.show_page(page, columns, NO_SNAPSHOTS)


def _describe_copy(copy: snapshots.SnapshotSummary, counted: str) -> dict[str, Any]:
    if copy.problem is not None:
        click.echo(f"{copy.name}: {plain(copy.problem)}", err=True)
    return {**pick(copy, "name", "taken"), "at": copy.at.isoformat(), counted: copy.count, "bytes": copy.bytes}


@snapshot.command("take")
@_of_people
@pass_state
def take(state: State, *, of_people: bool) -> None:
    """Take a snapshot now; the server may be running."""
    if of_people or not snapshots.takes_snapshots(state.settings):
        require_files(state.settings, "take a snapshot of accounts" if of_people else "take a snapshot")
    with show_waiting("copying", quiet=state.json or of_people):
        if of_people:
            copy = _describe_copy(snapshots.take_people_snapshot(state.settings.paths), "people")
            content = "{people} people"
        else:
            copy = _describe_copy(snapshots.take_snapshot(state.settings, state.workspace), "memories")
            content = f"{{memories}} memories of {state.workspace}"
    state.show(copy, fill(f"{{name}} contains {content} ({{bytes}})", copy))


@snapshot.command("restore")
@click.argument("name")
@_of_people
@pass_state
def restore(state: State, name: str, *, of_people: bool) -> None:
    """Restore the workspace from the snapshot NAME, or `latest`. Stop Reverie first; the current store is kept."""
    action = "restore a snapshot of accounts" if of_people else "restore a snapshot"
    if of_people or not snapshots.takes_snapshots(state.settings):
        require_files(state.settings, action)
    with nothing_runs(state.settings, action), show_waiting("restoring", quiet=state.json or of_people):
        answer, text = (_restore_people if of_people else _restore_workspace)(state, name)
    state.show(answer, text)


def _restore_workspace(state: State, name: str) -> tuple[dict[str, Any], str]:
    restored = snapshots.restore_snapshot(state.settings, state.workspace, name, _report_problem)
    answer = {"restored": restored.snapshot.name, **pick(restored, "memories", "aside")}
    aside = "" if restored.aside is None else "the previous store is kept as {aside}\n"
    text = f"restored {state.workspace} from {{restored}}: {{memories}} memories\n{aside}"
    return answer, fill(f"{text}Reverie rebuilds the indexes in the background after the next start", answer)


def _restore_people(state: State, name: str) -> tuple[dict[str, Any], str]:
    problems: list[str] = []
    restored, aside = snapshots.restore_people(state.settings.paths, name, problems.append)
    for problem in problems:
        _report_problem(problem)
    kept = "" if problems else "; removals and revocations since then stay in force"
    note = "" if aside is None else f"\nthe previous file is kept as {aside}"
    answer = {"restored": restored.name, "people": restored.count, "aside": aside}
    return answer, f"restored accounts, tokens and roles from {restored.name}{kept}{note}"


def _report_problem(problem: str) -> None:
    click.echo(plain(problem), err=True)
