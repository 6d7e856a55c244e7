"""The same memory on several machines, on the command line: remotes, devices, conflicts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.enums import ScopeKind
from web.cli import options
from web.cli.command import Group, State, pass_state
from web.cli.offline import open_home
from web.cli.render import format_minute, format_size, one_line, plain, print_if_none, show_waiting, table

if TYPE_CHECKING:
    from pipeline.services.sync import RemoteStatus
    from pipeline.sync.exchange import Exchanged


@click.group(cls=Group)
def sync() -> None:
    """Keep one memory on several machines, by a folder, a bucket or another Reverie, without an account."""


@sync.command("invite")
@pass_state
def invite(state: State) -> None:
    """Show the code by which a new device joins; whoever reads it can read your memory."""
    with open_home(state) as home:
        code = home.sync.invite()
    text = f"On the new device: reverie sync join CODE. Keep it as you keep a password; the code is\n\n{code}"
    state.show({"code": code}, text)


@sync.command("join")
@click.argument("code")
@pass_state
def join(state: State, code: str) -> None:
    """Enter the circle of devices that CODE opens; `reverie sync invite` shows it on one of them."""
    with open_home(state) as home:
        home.sync.join(code)
    state.show({"joined": True}, "joined; `reverie sync add NAME URL` names where the memory travels by")


@sync.command("add")
@click.argument("name")
@click.argument("url")
@click.option("--only", "workspaces", multiple=True, metavar="ID", help="A workspace that travels; without, all do.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([ScopeKind.WORKSPACE, ScopeKind.USER, ScopeKind.AGENT]),
    help="A scope that travels; without, what is the workspace's and what is yours.",
)
@click.option("--open", "is_open", is_flag=True, help="Write to it unencrypted, signed all the same.")
@pass_state
def add(
    state: State, name: str, url: str, workspaces: tuple[str, ...], scopes: tuple[str, ...], *, is_open: bool
) -> None:
    """Let memory travel by URL: dir:PATH, s3://BUCKET/PREFIX or https://HOST."""
    from pipeline.store.objects import FOLDER

    if url.startswith(FOLDER):
        # No shell does it behind a colon.
        url = f"{FOLDER}{Path(url.removeprefix(FOLDER)).expanduser().absolute()}"
    with open_home(state) as home:
        status = home.sync.add(name, url, workspaces, scopes, sealed=not is_open)
    text = f"{name}: {status.ahead} changes wait to be sent; `reverie sync now` sends them, and so does the stack"
    state.show(_describe(status), text)


@sync.command("remove")
@click.argument("name")
@pass_state
def remove(state: State, name: str) -> None:
    """Let nothing travel by NAME any more; what stands there stays."""
    with open_home(state) as home:
        home.sync.remove(name)
    state.show({"removed": name}, f"{name} is no remote any more; what stands there was left alone")


@sync.command("now")
@click.argument("name", required=False)
@pass_state
def now(state: State, name: str | None) -> None:
    """Send and take in what is new, by every remote or by NAME."""
    from pipeline.errors import ReverieError

    with open_home(state) as home, show_waiting("exchanging", quiet=state.json):
        done = home.sync.now([name] if name else [])
    failed = {one: result for one, result in done.items() if isinstance(result, ReverieError)}
    told = {one: _count(result) for one, result in done.items() if not isinstance(result, ReverieError)}
    told |= {one: {"error": str(error)} for one, error in failed.items()}

    def show() -> None:
        print_if_none(list(told), "no remote yet: reverie sync add NAME URL")
        for one, counts in told.items():
            if "error" in counts:
                click.echo(f"{one}: {plain(counts['error'])}", err=True)
                continue
            rest = f", {counts['put_aside']} put aside" if counts["put_aside"] else ""
            click.echo(f"{one}: {counts['applied']} taken in, {counts['sent']} sent{rest}")
            for refused in counts["refused"]:
                click.echo(f"{one}: {plain(refused)}", err=True)

    state.show(told, show)
    if failed or any(counts.get("refused") for counts in told.values()):
        sys.exit(1)


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
    """Show each remote: how much waits to be sent and to be taken in, when it last worked, how large it is."""
    with open_home(state) as home:
        found = [_describe(one) for one in home.sync.look()]

    def show() -> None:
        print_if_none(found, "no remote yet: reverie sync add NAME URL")
        if found:
            rows = [
                [
                    one["name"],
                    one["url"],
                    one["ahead"],
                    one["behind"],
                    format_minute(one["last_ok_at"]) if one["last_ok_at"] else "never",
                    format_size(one["bytes"]),
                    one_line(one["error"] or "", 60),
                ]
                for one in found
            ]
            heads = ["remote", "where", "ahead", "behind", "last", "size", "problem"]
            table(heads, rows, right=["ahead", "behind", "size"])

    state.show(found, show)


@sync.command("log")
@options.limit(20)
@pass_state
def log(state: State, limit: int) -> None:
    """Show what happened between the machines, the last first, and what was put aside."""
    with open_home(state) as home:
        events = [{"at": one.at, "remote": one.remote, "says": one.says} for one in home.sync.events(limit)]
        aside = [
            {"at": one.at, "remote": one.remote, "workspace": one.workspace, "operation": one.id, "reason": one.reason}
            for one in home.sync.put_aside()
        ]

    def show() -> None:
        print_if_none([*events, *aside])
        for one in events:
            click.echo(f"{format_minute(one['at'])}  {one['remote']:12}  {one_line(one['says'], 200)}")
        for one in aside:
            click.echo(f"put aside: {one['operation']} of {one['workspace']} from {one['remote']}: {one['reason']}")

    state.show({"items": events, "put_aside": aside}, show)


@sync.command("conflicts")
@click.option("--restore", "number", type=click.IntRange(min=1), help="Let the lost value of a conflict hold again.")
@pass_state
def conflicts(state: State, number: int | None) -> None:
    """Show what two machines wrote into one field without knowing of each other: what holds, and what was lost."""
    from pipeline.errors import NotFound

    with open_home(state) as home:
        found = home.sync.conflicts(state.workspace)
        if number is not None:
            if number > len(found):
                raise NotFound(f"there is no conflict {number}; there are {len(found)}")
            one = found[number - 1]
            home.sync.restore_lost(one.workspace, one.memory_id, one.field, one.operation)
            state.show({"restored": one.memory_id, "field": one.field}, f"{one.memory_id}: {one.field} is restored")
            return
    told = [
        {"memory_id": one.memory_id, "field": one.field, "won": one.won, "lost": one.lost, "by": one.by}
        for one in found
    ]

    def show() -> None:
        print_if_none(told)
        for place, one in enumerate(told, 1):
            click.echo(f"{place}. {one['memory_id']} {one['field']}")
            click.echo(f"   holds: {one_line(str(one['won']), 200)}")
            click.echo(f"   lost:  {one_line(str(one['lost']), 200)} (by {plain(one['by'])})")

    state.show({"items": told}, show)


@sync.command("repair")
@click.argument("name", required=False)
@pass_state
def repair(state: State, name: str | None) -> None:
    """Read every remote, or NAME, again from its beginning, and make every memory say what the log says."""
    with open_home(state) as home, show_waiting("repairing", quiet=state.json):
        counts = dict(home.sync.repair([name] if name else []))

    def show() -> None:
        for one, count in counts.items():
            what = "missing changes found" if one.startswith("remote ") else "rows mended"
            click.echo(f"{one}: {count} {what}")

    state.show(counts, show)


@sync.command("devices")
@pass_state
def devices(state: State) -> None:
    """List the devices that share this memory."""
    with open_home(state) as home:
        found = [
            {"name": one.name, "node": one.node, "added_at": one.added_at, "revoked_at": one.revoked_at, "this": here}
            for one, here in home.sync.devices()
        ]

    def show() -> None:
        print_if_none(found, "this home shares with no other: reverie sync invite")
        if found:
            rows = [[one["name"], one["node"], format_minute(str(one["added_at"])), _standing(one)] for one in found]
            table(["device", "number", "since", ""], rows)

    state.show(found, show)


def _standing(device: dict[str, Any]) -> str:
    if device["revoked_at"]:
        return f"revoked {format_minute(device['revoked_at'])}"
    return "this one" if device["this"] else ""


@sync.command("revoke")
@click.argument("device")
@pass_state
def revoke(state: State, device: str) -> None:
    """Trust DEVICE, by its name or number, no longer; it can read nothing that is written from now on."""
    with open_home(state) as home:
        gone = home.sync.revoke(device)
    state.show(
        {"revoked": gone.node},
        f"{gone.name} is revoked; what it holds already it keeps. `reverie sync now` tells the others",
    )
