"""Sessions, what was put before agents in them, what they teach, and what is known about you, on the command line."""

from typing import Any
from urllib.parse import quote

import click

from web.cli import options
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import format_minute, one_line, plain, print_if_none, print_memory, terminal_width


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def sessions(context: click.Context) -> None:
    """Show the sessions of agents, one of them whole, or name one. Without a command, list them."""
    if context.invoked_subcommand is None:
        context.invoke(list_sessions)


@sessions.command("list")
@options.limit(20)
@pass_state
def list_sessions(state: State, limit: int) -> None:
    """List sessions, the last heard of first."""
    found = state.ask(lambda client: client.list_items("/v1/sessions", limit))
    state.show(found, lambda: _print_sessions(found["items"]))


def _print_sessions(found: list[dict[str, Any]]) -> None:
    print_if_none(found)
    for one in found:
        counts = f"{one['turns']} said, {one['actions']} done, {one['memories']} kept"
        click.echo(
            f"{format_minute(one['last_at'])}  {plain(one['id'])}  {one_line(one['name'] or '–', 60)}  ({counts})"
        )


@sessions.command("show")
@click.argument("session", metavar="SESSION")
@pass_state
def show_session(state: State, session: str) -> None:
    """Show what was said, told, done and learnt in SESSION, each the oldest first."""
    found = state.ask(lambda client: client.call("GET", f"/v1/sessions/{quote(session, safe='')}"))
    state.show(found, lambda: _print_session(found))


def _print_session(found: dict[str, Any]) -> None:
    session = found["session"]
    click.echo(f"{one_line(session['name'] or session['id'])}  {session['first_at'][:16]} to {session['last_at'][:16]}")
    width = terminal_width()
    for title, rows in (
        ("said", [f"{one['role']}: {one['content']}" for one in found["said"]]),
        ("told", [f"{one['event']}: {one['chars']} characters, {one['outcome']}" for one in found["told"]]),
        ("done", [f"{one['type']} {one['target']}{'' if one['ok'] else ' (failed)'}" for one in found["did"]]),
        ("learnt", [f"{one['kind']} {one['content']}" for one in found["learnt"]]),
    ):
        click.echo(f"\n{title}:" if rows else f"\n{title}: nothing")
        for row in reversed(rows):
            click.echo(f"  {one_line(row, max(20, width - 2))}")


@sessions.command("rename")
@click.argument("session", metavar="SESSION")
@click.argument("name")
@pass_state
def rename_session(state: State, session: str, name: str) -> None:
    """Call SESSION by another NAME."""
    found = state.ask(
        lambda client: client.call("PATCH", f"/v1/sessions/{quote(session, safe='')}", {"name": name}), to_write=True
    )
    state.show(found, f"{plain(session)} is called {plain(found['name'])}")


@click.command(cls=Command)
@click.argument("session", metavar="SESSION")
@pass_state
def distill(state: State, session: str) -> None:
    """Propose the lessons of SESSION: they wait in the inbox until you accept or reject them."""
    path = f"/v1/sessions/{quote(session, safe='')}/distill"
    found = state.ask(lambda client: client.call("POST", path), to_write=True)
    waiting = [one for one in found["proposed"] if one["outcome"] == "candidate"]
    state.show(found, f"{len(waiting)} proposed; `reverie candidates` lists what waits")


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def hooks(context: click.Context) -> None:
    """Show what was put before agents by hooks and tools. Without a command, list it."""
    if context.invoked_subcommand is None:
        context.invoke(log)


@hooks.command("log")
@click.argument("run", metavar="[RUN]", required=False)
@options.limit(30)
@click.option("--session", metavar="ID", help="Only of this session.")
@pass_state
def log(state: State, run: str | None, limit: int, session: str | None) -> None:
    """List what agents were told in the last two weeks, or show RUN as the agent read it."""
    if run is not None:
        whole = state.ask(lambda client: client.call("GET", f"/v1/hook-runs/{quote(run, safe='')}"))
        state.show(whole, lambda: click.echo(plain(whole["text"]) or f"nothing was told: {plain(whole['reason'])}"))
        return
    found = state.ask(lambda client: client.list_items("/v1/hook-runs", limit, session_id=session))
    state.show(found, lambda: _print_runs(found["items"]))


def _print_runs(found: list[dict[str, Any]]) -> None:
    print_if_none(found)
    for one in found:
        told = f"{one['chars']} characters, {len(one['memory_ids'])} memories" if one["chars"] else one["reason"]
        click.echo(
            f"{one['id']:>6}  {one['at'][:19]}  {one['host']:<12} {one['event']:<18} {one['took_ms']:7.1f} ms  "
            f"{one['outcome']:<6} {plain(told or '')}"
        )


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def me(context: click.Context) -> None:
    """Show what is known about you, told in every workspace; add, edit or purge it. Without a command, list it."""
    if context.invoked_subcommand is None:
        context.invoke(list_mine)


@me.command("list")
@options.limit(50)
@pass_state
def list_mine(state: State, limit: int) -> None:
    """List what is known about you, the latest first."""
    found = state.ask(lambda client: client.list_items("/v1/memories", limit, scope="user"))
    state.show(found, lambda: _print_mine(found["items"]))


def _print_mine(found: list[dict[str, Any]]) -> None:
    print_if_none(found)
    for one in found:
        print_memory(one)


@me.command("add")
@click.argument("text")
@pass_state
def add_mine(state: State, text: str) -> None:
    """Keep TEXT as known about you."""
    body = {"content": options.read_text(text), "scope": {"kind": "user"}}
    receipt = state.ask(lambda client: client.remember(body), to_write=True)
    state.show(receipt, f"{receipt['outcome']} {receipt['id']}")


@me.command("edit")
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@click.argument("text")
@pass_state
def edit_mine(state: State, memory_id: str, text: str) -> None:
    """Let the memory ID about you say TEXT."""
    found = state.ask(lambda client: client.edit(memory_id, {"content": options.read_text(text)}))
    state.show(found, lambda: print_memory(found))


@me.command("purge")
@click.argument("memory_id", metavar="[ID]", required=False, callback=options.check_name)
@click.option("--all", "everything", is_flag=True, help="Everything that is known about you.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_state
def purge_mine(state: State, memory_id: str | None, *, everything: bool, yes: bool) -> None:
    """Delete the memory ID about you for good, or with --all everything."""
    if (memory_id is None) != everything:
        raise click.UsageError("name either one memory by its ID, or --all")
    from web.client import EVERYTHING

    with state.client() as client:
        doomed = (
            [memory_id] if memory_id else [one["id"] for one in client.items("/v1/memories", EVERYTHING, scope="user")]
        )
        if not yes:
            click.confirm(f"Delete {len(doomed)} for good?", abort=True)
        for one in doomed:
            client.purge(one)
    state.show({"purged": doomed}, f"purged {len(doomed)}")
