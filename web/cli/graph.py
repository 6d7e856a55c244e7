"""What memories tell together: arcs, the entities that they mention, and the graph of these."""

from typing import Any

import click

from pipeline.enums import EntityKind
from web.cli import options
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import format_minute, one_line, print_if_none, print_memory, table

ARC_STATUSES = ("active", "dormant", "closed")


@click.command(cls=Command)
@click.option("--status", type=click.Choice(ARC_STATUSES), help="Only arcs of this status.")
@options.viewer
@options.limit(20)
@pass_state
def arcs(state: State, /, limit: int, **wanted: Any) -> None:
    """List the threads that memories tell, the latest to go on first."""
    found = state.ask(lambda client: client.list_items("/v1/arcs", limit, **wanted))
    if state.json:
        state.print_json(found)
        return
    print_if_none(found["items"])
    for arc in found["items"]:
        span = f"{format_minute(arc['first_at'])} to {format_minute(arc['last_at'])}"
        click.echo(f"{arc['id']}  {arc['status']}  {span}  {arc['size']}")
        click.echo(f"     {one_line(arc['title'], 400)}")
        for member in arc["members"]:
            click.echo(f"     - {member['id']}  {member['kind']}  {one_line(member['preview'])}")


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def entities(context: click.Context) -> None:
    """Show what memories mention. Without a command, list what is mentioned most."""
    if context.invoked_subcommand is None:
        context.invoke(list_entities)


@entities.command("list")
@click.argument("name", default="", metavar="[NAME]")
@click.option("--kind", type=click.Choice([kind.value for kind in EntityKind]), help="Only entities of this kind.")
@options.viewer
@options.limit(50)
@pass_state
def list_entities(state: State, /, name: str, limit: int, **wanted: Any) -> None:
    """List the entities whose name holds NAME, or all, most often mentioned first."""
    found = state.ask(lambda client: client.list_items("/v1/entities", limit, q=name, **wanted))
    rows = [[one["id"], one["kind"], one["mentions"], one_line(one["name"])] for one in found["items"]]
    state.show(found, lambda: table(["entity", "kind", "mentions", "name"], rows, right=["mentions"]))


@entities.command("show")
@click.argument("name", metavar="NAME|ID")
@options.viewer
@options.limit(10, most=200)
@pass_state
def show(state: State, /, name: str, limit: int, **viewer: Any) -> None:
    """Show an entity by its name or id: what is mentioned beside it, and who mentions it, newest first."""
    with state.client() as client:
        centre = client.graph(name, 1, 1, **viewer)["nodes"][0]
        found = client.entity(centre["id"], limit, **viewer)
    if state.json:
        state.print_json(found)
        return
    click.echo(f"{found['id']}  {found['kind']}  {one_line(found['name'])}, mentioned {found['mentions']} times")
    if found["related"]:
        beside = ", ".join(f"{one_line(one['name'])} {one['memories']}" for one in found["related"])
        click.echo(f"beside {beside}")
    for memory in found["memories"]:
        print_memory(memory)


@click.command(cls=Command)
@click.argument("around", metavar="NAME|ID")
@click.option("--depth", type=click.IntRange(1, 2), default=1, show_default=True, help="How many steps away.")
@options.viewer
@options.limit(30, most=100)
@pass_state
def graph(state: State, /, around: str, depth: int, limit: int, **viewer: Any) -> None:
    """Show the entities around one, and in how many memories two are mentioned together."""
    found = state.ask(lambda client: client.graph(around, depth, limit, **viewer))
    names = {node["id"]: one_line(node["name"]) for node in found["nodes"]}
    edges = sorted(found["edges"], key=lambda edge: -edge["memories"])
    rows = [[names[edge["from"]], names[edge["to"]], edge["memories"]] for edge in edges]
    state.show(found, lambda: table(["entity", "beside", "memories"], rows, right=["memories"]))
