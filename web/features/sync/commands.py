"""Commands that sync the memory with other machines: remotes, devices, conflicts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.kernel.enums import ScopeKind
from pipeline.kernel.errors import NotFound, ReverieError
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.local_store import open_home
from web.cli.render import Fields, Record, fill, format_minute, pick, plain, print_table, show_waiting
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.features.sync.usecases import RemoteStatus


# What `repair` counts, by the start of the name of a count.
REPAIRED = {"remote ": "missing changes found", "files on ": "damaged or missing files written again"}
NO_REMOTES = "There is no remote yet. Add one with `reverie sync add NAME URL`."


@click.group(cls=Group)
def sync() -> None:
    """Sync memories with your other machines through a folder, a bucket or another Reverie, without an account."""


@sync.command("invite")
@pass_state
def invite(state: State) -> None:
    """Show the pairing code for a new device. Anyone who has the code can read your memories."""
    with open_home(state) as home:
        code = home.sync.invite()
    text = f"On the new device, run `reverie sync join CODE`. Keep the code as secret as a password:\n\n{code}"
    state.show({"code": code}, text)


@sync.command("join")
@click.argument("code")
@pass_state
def join(state: State, code: str) -> None:
    """Join your other devices with the pairing CODE that `reverie sync invite` shows on one of them."""
    with open_home(state) as home:
        home.sync.join(code)
    state.show({"joined": True}, "joined; add a remote with `reverie sync add NAME URL`")


@sync.command("add")
@click.argument("name")
@click.argument("url")
@click.option("--only", "workspaces", multiple=True, metavar="ID", help="Only sync this workspace. Can be repeated.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([kind.value for kind in (ScopeKind.WORKSPACE, ScopeKind.USER, ScopeKind.AGENT)]),
    help="Only sync memories of this scope. Can be repeated.  [default: workspace and user]",
)
@click.option("--open", "is_open", is_flag=True, help="Write unencrypted, but signed data.")
@pass_state
def add(
    state: State, name: str, url: str, workspaces: tuple[str, ...], scopes: tuple[str, ...], *, is_open: bool
) -> None:
    """Add the remote NAME at URL: dir:PATH, s3://BUCKET/PREFIX or https://HOST."""
    from pipeline.kernel.store.objects import FOLDER

    if url.startswith(FOLDER):
        # Shells do not expand ~ after a colon.
        url = f"{FOLDER}{Path(url.removeprefix(FOLDER)).expanduser().absolute()}"
    with open_home(state) as home:
        status = home.sync.add(name, url, workspaces, scopes, sealed=not is_open)
    text = f"{name}: {status.ahead} changes to send; Reverie sends them automatically, `reverie sync now` at once"
    state.show(_describe(status), text)


@sync.command("remove")
@click.argument("name")
@pass_state
def remove(state: State, name: str) -> None:
    """Stop syncing with the remote NAME; its data is kept there."""
    with open_home(state) as home:
        home.sync.remove(name)
    state.show({"removed": name}, f"removed the remote {name}; its data was not deleted")


@sync.command("now")
@click.argument("name", required=False)
@pass_state
def now(state: State, name: str | None) -> None:
    """Send and receive changes now, with all remotes or with NAME."""
    with open_home(state) as home, show_waiting("syncing", quiet=state.json):
        results = home.sync.now([name] if name else [])
    answer = {
        remote: {"error": str(result)}
        if isinstance(result, ReverieError)
        else pick(result, "applied", "known", "sent", "bytes")
        | {"put_aside": len(result.put_aside), "refused": list(result.refused)}
        for remote, result in results.items()
    }
    state.show(answer, _print_exchanges)
    if any("error" in counts or counts.get("refused") for counts in answer.values()):
        sys.exit(1)


def _print_exchanges(answer: dict[str, dict[str, Any]]) -> None:
    if not answer:
        click.echo(NO_REMOTES, err=True)
    for remote, counts in answer.items():
        if "error" not in counts:
            quarantined = ", {put_aside} quarantined" if counts["put_aside"] else ""
            click.echo(f"{remote}: {fill('{applied} received, {sent} sent' + quarantined, counts)}")
        for problem in [counts["error"]] if "error" in counts else counts["refused"]:
            click.echo(f"{remote}: {plain(problem)}", err=True)


def _describe(status: "RemoteStatus") -> dict[str, Any]:
    return pick(status, "name", "url", "ahead", "behind", "last_ok_at", "error", "bytes") | {
        "workspaces": list(status.workspaces),
        "encrypted": status.sealed,
    }


REMOTE: Fields = {
    "remote": "name",
    "address": "url",
    "to send": "ahead",
    "to receive": "behind",
    "last sync": lambda remote: format_minute(remote["last_ok_at"]) or "never",
    "size": "bytes",
    "problem": "error",
}


@sync.command("status")
@pass_state
def status(state: State) -> None:
    """Show each remote: changes to send and to receive, time of the last sync, size and problems."""
    with open_home(state, only_reads=True) as home:
        remotes = [_describe(remote) for remote in home.sync.look()]
    state.show(remotes, lambda _: print_table(remotes, REMOTE, empty=NO_REMOTES))


@sync.command("log")
@options.limit(20)
@pass_state
def log(state: State, limit: int) -> None:
    """List the exchanges with other machines, newest first, and the changes that were quarantined."""
    with open_home(state, only_reads=True) as home:
        events = [pick(event, "at", "remote", "says") for event in home.sync.events(limit)]
        changes = [
            pick(change, "at", "remote", "workspace") | {"operation": change.id, "reason": change.reason}
            for change in home.sync.put_aside()
        ]

    def show(_answer: object) -> None:
        print_table(events, {"at": "at", "remote": "remote", "event": "says"}, empty=None if changes else NO_REMOTES)
        for change in changes:
            click.echo(fill("quarantined: {operation} of {workspace} from {remote}: {reason}", change))

    state.show({"items": events, "put_aside": changes}, show)


@sync.command("conflicts")
@click.option("--restore", "number", type=click.IntRange(min=1), help="Restore the overwritten value of this conflict.")
@pass_state
def conflicts(state: State, number: int | None) -> None:
    """List fields that two machines changed at the same time: the current and the overwritten value."""
    with open_home(state, only_reads=number is None) as home:
        records = home.sync.conflicts(state.workspace)
        if number is not None:
            if number > len(records):
                raise NotFound(f"There is no conflict {number}. `reverie sync conflicts` lists {len(records)}.")
            lost = records[number - 1]
            home.sync.restore_lost(lost.workspace, lost.memory_id, lost.field, lost.operation)
            answer = {"restored": lost.memory_id, "field": lost.field}
            state.show(answer, f"restored {lost.field} of {lost.memory_id}")
            return
    items = [pick(record, "memory_id", "field", "won", "lost", "by") for record in records]
    numbers = iter(range(1, len(items) + 1))
    conflict = Record(
        lambda item: fill(f"{next(numbers)}. {{memory_id}} {{field}}", item),
        {"current": "won", "overwritten": "lost", "by": "by"},
    )
    state.show_page({"items": items}, conflict, "There are no conflicts.")


@sync.command("repair")
@click.argument("name", required=False)
@pass_state
def repair(state: State, name: str | None) -> None:
    """Read all remotes, or NAME, again, write damaged files of this device again, and correct memories that differ."""
    with open_home(state) as home, show_waiting("repairing", quiet=state.json):
        counts = dict(home.sync.repair([name] if name else []))

    def show(_answer: object) -> None:
        for target, count in counts.items():
            changes = next((text for start, text in REPAIRED.items() if target.startswith(start)), "rows repaired")
            click.echo(f"{target}: {count} {changes}")

    state.show(counts, show)


@sync.command("devices")
@pass_state
def devices(state: State) -> None:
    """List the devices that share this memory."""
    with open_home(state, only_reads=True) as home:
        items = [
            pick(device, "name", "node", "added_at", "revoked_at") | {"this": is_here}
            for device, is_here in home.sync.devices()
        ]
    empty = "No other device is paired. Show a pairing code with `reverie sync invite`."
    columns: Fields = {"device": "name", "number": "node", "since": "added_at", "": _format_state}
    state.show(items, lambda _: print_table(items, columns, empty=empty))


def _format_state(device: dict[str, Any]) -> str:
    if device["revoked_at"]:
        return f"revoked {format_minute(device['revoked_at'])}"
    return "this device" if device["this"] else ""


@sync.command("revoke")
@click.argument("device")
@pass_state
def revoke(state: State, device: str) -> None:
    """Revoke DEVICE, a name or number: it cannot read anything that is written from now on."""
    with open_home(state) as home:
        revoked = home.sync.revoke(device)
    state.show(
        {"revoked": revoked.node},
        f"revoked {revoked.name}; it keeps its copy of the memories. `reverie sync now` informs the other devices",
    )
