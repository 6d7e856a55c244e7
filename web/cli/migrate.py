"""Moving the store from the home's files to a server of PostgreSQL, and back."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import InvalidField
from web.cli.command import Command, State, pass_state
from web.cli.offline import nothing_runs
from web.cli.render import plain, show_progress, table

if TYPE_CHECKING:
    from pipeline.services.moving import Move, MovedPart

# What is moved is read to be known, to be copied, and to be compared.
_READINGS = 3
_OF = {"home": "the home", "settings": "settings", "workspace": "workspace"}
_PLAIN = "this home is encrypted, the server's database is not: encrypt the disk under it"
_STAYS = (
    "the home's settings, the token, models and indexes stay in the home's files; vectors that are not where "
    "REVERIE_VECTORS says are computed anew while the stack runs"
)


@click.command(cls=Command)
@click.option("--to", required=True, metavar="PLACE", help="postgresql://USER@HOST/DATABASE; `sqlite` is the way back.")
@click.option(
    "--home",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The home that gets files on the way back; without, this one.",
)
@click.option("--only", multiple=True, metavar="ID", help="A workspace to move; without, all that there is.")
@click.option("--dry-run", is_flag=True, help="Tell what would be moved, and move nothing.")
@pass_state
def migrate(state: State, to: str, home: Path | None, only: tuple[str, ...], *, dry_run: bool) -> int:
    """Move the store to a server of PostgreSQL, or back into files, every row compared; the stack must be stopped.

    What is there stays as it is. Run again, it goes on where it was interrupted, and moves what has changed since.
    """
    from pipeline.services import moving

    with _wrong_usage():
        # Before a folder is made for a home that is none of this.
        moving.choose_server(state.settings, to, home)
    chosen = only or ((state.named_workspace,) if state.named_workspace else ())
    homes = [state.settings] if home is None else [state.settings, replace(state.settings, home=home.absolute())]
    with ExitStack() as held:
        for settings in homes:
            held.enter_context(nothing_runs(settings, "a store is moved"))
        with _wrong_usage():
            move = held.enter_context(moving.open_move(state.settings, to, home, chosen))
        done = _move(move, dry_run=dry_run, quiet=state.json)
    is_over = not dry_run and all(one.problem is None for one in done)
    told = {"to": move.target.name, "moved": is_over, "parts": [_describe(one) for one in done]}
    is_encrypted = state.settings.paths.store_key.is_file()
    state.show(told, lambda: _print(done, to if is_over else None, move.target.name, is_encrypted=is_encrypted))
    return 1 if any(one.problem is not None for one in done) else 0


@contextmanager
def _wrong_usage() -> Iterator[None]:
    try:
        yield
    except InvalidField as error:
        raise click.BadParameter(error.errors[0].msg, param_hint=f"--{error.errors[0].loc}") from error


def _move(move: "Move", *, dry_run: bool, quiet: bool) -> list["MovedPart"]:
    from pipeline.services import moving

    total, read = moving.count_rows(move) * (1 if dry_run else _READINGS), 0
    with show_progress("reading rows" if dry_run else "moving rows", total, quiet=quiet) as show:

        def note(rows: int) -> None:
            nonlocal read
            read += rows
            show(read)

        done = list(moving.move_parts(move, dry_run=dry_run, progress=note))
    if not dry_run:
        moving.finish(move, lambda says: click.echo(plain(says), err=True))
    return done


def _describe(one: "MovedPart") -> dict[str, Any]:
    return {
        "name": one.part.name,
        "of": one.part.kind,
        "outcome": one.outcome,
        "rows": one.rows,
        "problem": one.problem,
    }


def _print(done: Sequence["MovedPart"], moved_to: str | None, target: str, *, is_encrypted: bool) -> None:
    rows = [[_OF[one.part.kind], one.part.name, one.rows, one.outcome] for one in done]
    table(["of", "part", "rows", "outcome"], rows, right=["rows"])
    for one in done:
        if one.problem is not None:
            click.echo(f"{one.part.name} was not moved: {plain(one.problem)}", err=True)
    if moved_to == "sqlite":
        click.echo(f"every row is in {plain(target)} as it was; unset REVERIE_STORE to use it from now on")
    elif moved_to is not None:
        click.echo(f"every row is at {plain(target)} as it was; to use it from now on: REVERIE_STORE={plain(target)}")
        click.echo(_STAYS)
        if is_encrypted:
            click.echo(_PLAIN)
