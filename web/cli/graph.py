"""Commands for the graph of memories: entities, connections between them, and threads (arcs)."""

from typing import Any

import click

from pipeline.enums import EntityKind
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import format_minute, one_line, print_memory, table, text_of
from web.cli.state import State

ARC_STATUSES = ("active", "dormant", "closed")
NO_ENTITIES = (
    'No memory mentions an entity by this name. Workers find entities in new memories: `reverie remember "…"`.'
)
NO_ARCS = "There are no threads here yet. An hourly job detects them; `reverie jobs run arcs` runs it now."


@click.group(cls=Group, default_command="show")
def graph() -> None:
    """Show the entities that memories mention, how they are connected, and threads (arcs)."""


@graph.command()
@click.option("--status", type=click.Choice(ARC_STATUSES), help="Only list threads with this status.")
@options.viewer
@options.limit(20)
@pass_state
def arcs(state: State, /, limit: int, **filters: Any) -> None:
    """List threads: memories that belong to one story, the most recently continued first."""
    page = state.list_items("/v1/arcs", limit, **filters)
    state.show_items(page, _print_arc, NO_ARCS)


def _print_arc(arc: dict[str, Any]) -> None:
    span = f"{format_minute(arc['first_at'])} to {format_minute(arc['last_at'])}"
    click.echo(f"{arc['id']}  {arc['status']}  {span}  {arc['size']}")
    click.echo(f"     {one_line(arc['title'], 400)}")
    for member in arc["members"]:
        click.echo(f"     - {member['id']}  {member['kind']}  {one_line(member['preview'])}")


@graph.group(bare_command="list")
def entities() -> None:
    """List and show the entities that memories mention. Without a command, list the most frequent ones."""


@entities.command("list")
@click.argument("name", default="", metavar="[NAME]")
@click.option("--kind", type=click.Choice([kind.value for kind in EntityKind]), help="Only list entities of this kind.")
@options.viewer
@options.limit(50)
@pass_state
def list_entities(state: State, /, name: str, limit: int, **filters: Any) -> None:
    """List entities, most frequent first; with NAME, those whose name contains it."""
    page = state.list_items("/v1/entities", limit, q=name, **filters)
    columns = {"entity": "id", "kind": "kind", "mentions": "mentions", "name": text_of("name")}
    state.show_table(page, columns, right=["mentions"], empty=NO_ENTITIES)


@entities.command("show")
@click.argument("name", metavar="NAME|ID")
@options.viewer
@options.limit(10, most=200)
@pass_state
def show_entity(state: State, /, name: str, limit: int, **viewer: Any) -> None:
    """Show an entity with related entities and the memories that mention it, newest first."""
    with state.client() as client:
        center = client.graph(name, 1, 1, **viewer)["nodes"][0]
        entity = client.request("GET", ("entities", center["id"]), query=viewer | {"limit": limit})
    if state.json:
        state.print_json(entity)
        return
    click.echo(f"{entity['id']}  {entity['kind']}  {one_line(entity['name'])}, mentioned {entity['mentions']} times")
    if entity["aliases"]:
        click.echo(f"also called: {', '.join(map(one_line, entity['aliases']))}")
    if entity["related"]:
        related = ", ".join(f"{one_line(other['name'])} {other['memories']}" for other in entity["related"])
        click.echo(f"related: {related}")
    for memory in entity["memories"]:
        print_memory(memory)


@entities.command("merge")
@click.argument("name", metavar="NAME|ID")
@click.argument("into", metavar="INTO")
@pass_state
def merge_entity(state: State, /, name: str, into: str) -> None:
    """Merge the entity NAME into INTO. `split` undoes it."""
    with state.client() as client:
        center = client.graph(name, 1, 1)["nodes"][0]
        answer = client.request("POST", ("entities", center["id"], "merge"), {"into": into})
    line = f"{one_line(center['name'])} is now another name of {one_line(answer['name'])}."
    state.show(answer, lambda: click.echo(line))


@entities.command("split")
@click.argument("name", metavar="NAME|ID")
@click.argument("alias")
@pass_state
def split_entity(state: State, /, name: str, alias: str) -> None:
    """Undo the merge of ALIAS into NAME permanently."""
    with state.client() as client:
        center = client.graph(name, 1, 1)["nodes"][0]
        answer = client.request("POST", ("entities", center["id"], "split"), {"alias": alias})
    line = f"{one_line(alias)} is no longer another name of {one_line(center['name'])}."
    state.show(answer, lambda: click.echo(line))


@graph.command("show")
@click.argument("around", metavar="NAME|ID")
@click.option("--depth", type=click.IntRange(1, 2), default=1, show_default=True, help="Number of steps to follow.")
@options.viewer
@options.limit(30, most=100)
@pass_state
def show(state: State, /, around: str, depth: int, limit: int, **viewer: Any) -> None:
    """Show the entities that occur together with an entity, and in how many memories."""
    answer = state.ask(lambda client: client.graph(around, depth, limit, **viewer))
    names = {node["id"]: one_line(node["name"]) for node in answer["nodes"]}
    edges = sorted(answer["edges"], key=lambda edge: -edge["memories"])
    rows = [[names[edge["from"]], names[edge["to"]], edge["memories"]] for edge in edges]
    state.show(answer, lambda: table(["entity", "related", "memories"], rows, right=["memories"]))
