"""Command that moves the store from files to a PostgreSQL server, and back."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import InvalidField
from web.cli.command import Command, pass_state
from web.cli.local_store import nothing_runs
from web.cli.render import plain, show_progress, table
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.services.moving import Move, MovedPart

# Each row is read three times: to list it, to copy it, and to compare the copy.
_READINGS = 3
_KINDS = {"home": "data directory", "settings": "settings", "workspace": "workspace"}
_NOT_ENCRYPTED = "the files here are encrypted, the server's database is not: encrypt the disk of the server"
_REMAINING = "settings, token, models and indexes stay in the data directory; Reverie computes missing vectors again"


@click.command(cls=Command)
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
    answer = {"to": move.target.name, "moved": is_complete, "parts": [_describe(part) for part in done]}
    is_encrypted = state.settings.paths.store_key.is_file()
    target = move.target.name
    state.show(answer, lambda: _print(done, to if is_complete else None, target, is_encrypted=is_encrypted))
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


def _describe(moved: "MovedPart") -> dict[str, Any]:
    return {
        "name": moved.part.name,
        "of": moved.part.kind,
        "outcome": moved.outcome,
        "rows": moved.rows,
        "problem": moved.problem,
    }


def _print(done: Sequence["MovedPart"], moved_to: str | None, target: str, *, is_encrypted: bool) -> None:
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
