"""Commands that encrypt and decrypt the stores and snapshots of the data directory."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import InvalidField
from web.cli.command import Command, pass_state
from web.cli.local_store import nothing_runs, require_files
from web.cli.render import count_of, plain, show_waiting
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.services.encryption import Converted


@click.command(cls=Command)
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
    answer = {"encrypted": True, "key_file": str(key), "made_key": is_new, **_describe(done)}

    def show() -> None:
        if is_new:
            click.echo(f"created the key {key}. Keep a copy in another place: without it, the memories are lost")
        _print(done, "encrypted", f"all stores and snapshots are encrypted with the key in {key}")
        click.echo(f"not encrypted: {encryption.NOT_ENCRYPTED}")

    state.show(answer, show)
    return 1 if done.left else 0


@click.command(cls=Command)
@pass_state
def decrypt(state: State) -> int:
    """Decrypt all stores and snapshots; your key file is kept. Stop Reverie first."""
    from pipeline.services import encryption

    with nothing_runs(state.settings, "decrypt"), show_waiting("decrypting", quiet=state.json):
        done = encryption.decrypt_home(state.settings.paths)
    answer = {"encrypted": bool(done.left), **_describe(done)}
    state.show(answer, lambda: _print(done, "decrypted", "no store and no snapshot is encrypted"))
    return 1 if done.left else 0


def _describe(done: "Converted") -> dict[str, Any]:
    return {"converted": done.files, "already": done.already, "left": done.left}


def _print(done: "Converted", verb: str, outcome: str) -> None:
    for name, count in done.files.items():
        if count:
            click.echo(f"{verb} {count_of(count, 'file')} of {name}")
    for problem in done.left:
        click.echo(f"not {verb}: {plain(problem)}", err=True)
    if not done.left:
        click.echo(outcome)
