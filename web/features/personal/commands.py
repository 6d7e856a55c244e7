"""Commands for memories about the user."""

import click

from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import count_of, print_memory
from web.cli.state import State
from web.http.client import EVERYTHING


@click.group(cls=Group, bare_command="list")
def me() -> None:
    """List, add, edit and purge memories about you, which apply in every workspace. Without a command, list them."""


@me.command("list")
@options.limit(50)
@pass_state
def list_personal(state: State, limit: int) -> None:
    """List the memories about you, newest first."""
    state.show_list(
        "/v1/memories",
        limit,
        print_memory,
        "There are no memories about you yet. Add one with `reverie me add TEXT`.",
        scope="user",
    )


@me.command("add")
@options.words("text", "TEXT...")
@pass_state
def add_personal(state: State, text: str) -> None:
    """Store TEXT as a memory about you; `-` reads it from standard input."""
    body = {"content": options.read_text(text), "scope": {"kind": "user"}}
    state.act("POST", "/v1/memories", body, says="{outcome} {id}", to_write=True)


@me.command("edit")
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@options.words("text", "TEXT...")
@pass_state
def edit_personal(state: State, memory_id: str, text: str) -> None:
    """Replace the text of the memory ID about you; `-` reads it from standard input."""
    body = {"content": options.read_text(text)}
    memory = state.ask(lambda client: client.request("PATCH", ("memories", memory_id), body))
    state.show(memory, print_memory)


@me.command("purge")
@click.argument("memory_id", metavar="[ID]", required=False, callback=options.check_name)
@click.option("--all", "everything", is_flag=True, help="Delete all memories about you.")
@options.yes
@pass_state
def purge_personal(state: State, memory_id: str | None, *, everything: bool, yes: bool) -> None:
    """Delete the memory ID about you permanently, or all of them with --all."""
    if (memory_id is None) != everything:
        raise click.UsageError("Name one memory by its ID, or use --all.")
    with state.client() as client:
        memories = client.items("/v1/memories", EVERYTHING, scope="user")
        ids = [memory_id] if memory_id else [memory["id"] for memory in memories]
        count = count_of(len(ids), "memory", "memories")
        options.confirm(state, f"Delete {count} about you permanently?", yes=yes, refusal="nothing was purged")
        for personal_id in ids:
            client.purge(personal_id)
    state.show({"purged": ids}, f"purged {len(ids)}")
