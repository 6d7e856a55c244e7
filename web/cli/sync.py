"""Commands that sync the memory with other machines: remotes, devices, conflicts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.enums import ScopeKind
from pipeline.errors import NotFound, ReverieError
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.local_store import open_home
from web.cli.render import (
    Column,
    format_minute,
    minute_of,
    one_line,
    plain,
    print_if_none,
    print_table,
    show_waiting,
    size_of,
)
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.services.sync import RemoteStatus
    from pipeline.sync.exchange import Exchanged


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
    from pipeline.store.objects import FOLDER

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
        remote: {"error": str(result)} if isinstance(result, ReverieError) else _count(result)
        for remote, result in results.items()
    }
    state.show(answer, lambda: _print_exchanges(answer))
    if any("error" in counts or counts.get("refused") for counts in answer.values()):
        sys.exit(1)


def _print_exchanges(answer: dict[str, dict[str, Any]]) -> None:
    print_if_none(list(answer), NO_REMOTES)
    for remote, counts in answer.items():
        if "error" in counts:
            click.echo(f"{remote}: {plain(counts['error'])}", err=True)
            continue
        quarantined = f", {counts['put_aside']} quarantined" if counts["put_aside"] else ""
        click.echo(f"{remote}: {counts['applied']} received, {counts['sent']} sent{quarantined}")
        for refused in counts["refused"]:
            click.echo(f"{remote}: {plain(refused)}", err=True)


def _count(done: "Exchanged") -> dict[str, Any]:
    return {
        "applied": done.applied,
        "known": done.known,
        "sent": done.sent,
        "bytes": done.bytes,
        "put_aside": len(done.put_aside),
        "refused": list(done.refused),
    }


def _describe(status: "RemoteStatus") -> dict[str, Any]:
    return {
        "name": status.name,
        "url": status.url,
        "ahead": status.ahead,
        "behind": status.behind,
        "last_ok_at": status.last_ok_at,
        "error": status.error,
        "bytes": status.bytes,
        "workspaces": list(status.workspaces),
        "encrypted": status.sealed,
    }


@sync.command("status")
@pass_state
def status(state: State) -> None:
    """Show each remote: changes to send and to receive, time of the last sync, size and problems."""
    with open_home(state, only_reads=True) as home:
        remotes = [_describe(remote) for remote in home.sync.look()]
    columns: dict[str, Column] = {
        "remote": "name",
        "address": "url",
        "to send": "ahead",
        "to receive": "behind",
        "last sync": lambda remote: format_minute(remote["last_ok_at"]) or "never",
        "size": size_of("bytes"),
        "problem": lambda remote: one_line(remote["error"] or "", 60),
    }
    state.show(
        remotes, lambda: print_table(remotes, columns, right=["to send", "to receive", "size"], empty=NO_REMOTES)
    )


@sync.command("log")
@options.limit(20)
@pass_state
def log(state: State, limit: int) -> None:
    """List the exchanges with other machines, newest first, and the changes that were quarantined."""
    with open_home(state, only_reads=True) as home:
        events = [{"at": event.at, "remote": event.remote, "says": event.says} for event in home.sync.events(limit)]
        quarantined = [
            {
                "at": change.at,
                "remote": change.remote,
                "workspace": change.workspace,
                "operation": change.id,
                "reason": change.reason,
            }
            for change in home.sync.put_aside()
        ]

    def show() -> None:
        print_if_none([*events, *quarantined], NO_REMOTES)
        for event in events:
            click.echo(f"{format_minute(event['at'])}  {event['remote']:12}  {one_line(event['says'], 200)}")
        for change in quarantined:
            click.echo(
                f"quarantined: {change['operation']} of {change['workspace']} from {change['remote']}: "
                f"{change['reason']}"
            )

    state.show({"items": events, "put_aside": quarantined}, show)


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
    items = [
        {
            "memory_id": record.memory_id,
            "field": record.field,
            "won": record.won,
            "lost": record.lost,
            "by": record.by,
        }
        for record in records
    ]
    state.show({"items": items}, lambda: _print_conflicts(items))


def _print_conflicts(items: list[dict[str, Any]]) -> None:
    print_if_none(items, "There are no conflicts.")
    for number, conflict in enumerate(items, 1):
        click.echo(f"{number}. {conflict['memory_id']} {conflict['field']}")
        click.echo(f"   current:     {one_line(str(conflict['won']), 200)}")
        click.echo(f"   overwritten: {one_line(str(conflict['lost']), 200)} (by {plain(conflict['by'])})")


@sync.command("repair")
@click.argument("name", required=False)
@pass_state
def repair(state: State, name: str | None) -> None:
    """Read all remotes, or NAME, again, write damaged files of this device again, and correct memories that differ."""
    with open_home(state) as home, show_waiting("repairing", quiet=state.json):
        counts = dict(home.sync.repair([name] if name else []))

    def show() -> None:
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
            {
                "name": device.name,
                "node": device.node,
                "added_at": device.added_at,
                "revoked_at": device.revoked_at,
                "this": is_here,
            }
            for device, is_here in home.sync.devices()
        ]

    empty = "No other device is paired. Show a pairing code with `reverie sync invite`."
    columns: dict[str, Column] = {"device": "name", "number": "node", "since": minute_of("added_at"), "": _format_state}
    state.show(items, lambda: print_table(items, columns, empty=empty))


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
