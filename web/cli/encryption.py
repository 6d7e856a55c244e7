"""Encryption of the home at rest: with a key that its owner keeps elsewhere, and the way back."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import InvalidField
from web.cli.command import Command, State, pass_state
from web.cli.offline import nothing_runs, require_files
from web.cli.render import plain, show_waiting

if TYPE_CHECKING:
    from pipeline.services.encryption import Converted


@click.command(cls=Command)
@click.option(
    "--key-file",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Where the key is, or is to be made: outside of the home. Needed the first time, and when it was moved.",
)
@pass_state
def encrypt(state: State, key_file: Path | None) -> int:
    """Encrypt every store and snapshot of the home with a key that you keep; the stack must be stopped."""
    from pipeline.services import encryption

    paths = state.settings.paths
    require_files(state.settings, "a store is encrypted")
    with nothing_runs(state.settings, "a home is encrypted"):
        try:
            is_new = encryption.choose_key(paths, key_file)
        except InvalidField as error:
            raise click.BadParameter(error.errors[0].msg, param_hint="--key-file") from error
        with show_waiting("encrypting", quiet=state.json):
            done = encryption.encrypt_home(paths)
    kept = encryption.describe_encryption(paths).key_file
    told = {"encrypted": True, "key_file": str(kept), "made_key": is_new, **_tell(done)}

    def show() -> None:
        if is_new:
            click.echo(
                f"made the key {kept}: keep a copy of it elsewhere; without it nobody reads the store, nor do you"
            )
        _print(done, "encrypted", f"every store and snapshot is encrypted, by the key in {kept}")
        click.echo(f"not encrypted: {encryption.NOT_ENCRYPTED}")

    state.show(told, show)
    return 1 if done.left else 0


@click.command(cls=Command)
@pass_state
def decrypt(state: State) -> int:
    """Make every store and snapshot of the home plain again; the stack must be stopped. Your key stays where it is."""
    from pipeline.services import encryption

    with nothing_runs(state.settings, "a home is decrypted"), show_waiting("decrypting", quiet=state.json):
        done = encryption.decrypt_home(state.settings.paths)
    told = {"encrypted": bool(done.left), **_tell(done)}
    state.show(told, lambda: _print(done, "decrypted", "no store and no snapshot is encrypted"))
    return 1 if done.left else 0


def _tell(done: "Converted") -> dict[str, Any]:
    return {"converted": done.files, "already": done.already, "left": done.left}


def _print(done: "Converted", verb: str, outcome: str) -> None:
    for name, count in done.files.items():
        if count:
            click.echo(f"{verb} {count} {'file' if count == 1 else 'files'} of {name}")
    for problem in done.left:
        click.echo(f"left as it was: {plain(problem)}", err=True)
    if not done.left:
        click.echo(outcome)
