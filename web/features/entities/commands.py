"""Commands for the graph of memories: entities, connections between them, and threads (arcs)."""

from typing import Any

import click

from pipeline.kernel.enums import EntityKind
from web.cli import options
from web.cli.command import Group, add_declared, pass_state
from web.cli.render import Fields, Record, fill, one_line, print_memory, print_table
from web.cli.state import State

NO_ENTITIES = (
    'No memory mentions an entity by this name. Workers find entities in new memories: `reverie remember "…"`.'
)
ENTITY: Fields = {"entity": "id", "kind": "kind", "mentions": "mentions", "name": "name"}
SHOWN_ENTITY = Record(
    lambda entity: fill("{id}  {kind}  {name}, mentioned {mentions} times", entity),
    {
        "also called": "aliases",
        "related": lambda entity: ", ".join(fill("{name} {memories}", other) for other in entity["related"]),
    },
    {"memories": print_memory},
)


@click.group(cls=Group, default_command="show")
def graph() -> None:
    """Show the entities that memories mention, how they are connected, and threads (arcs)."""


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
    state.show_list("/v1/entities", limit, ENTITY, NO_ENTITIES, q=name, **filters)


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
    state.show(entity, SHOWN_ENTITY)


@entities.command("merge")
@click.argument("name", metavar="NAME|ID")
@click.argument("into", metavar="INTO")
@pass_state
def merge_entity(state: State, /, name: str, into: str) -> None:
    """Merge the entity NAME into INTO. `split` undoes it."""
    with state.client() as client:
        center = client.graph(name, 1, 1)["nodes"][0]
        answer = client.request("POST", ("entities", center["id"], "merge"), {"into": into})
    state.show(answer, f"{one_line(center['name'])} is now another name of {one_line(answer['name'])}.")


@entities.command("split")
@click.argument("name", metavar="NAME|ID")
@click.argument("alias")
@pass_state
def split_entity(state: State, /, name: str, alias: str) -> None:
    """Undo the merge of ALIAS into NAME permanently."""
    with state.client() as client:
        center = client.graph(name, 1, 1)["nodes"][0]
        answer = client.request("POST", ("entities", center["id"], "split"), {"alias": alias})
    state.show(answer, f"{one_line(alias)} is no longer another name of {one_line(center['name'])}.")


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
    columns: Fields = {
        "entity": lambda edge: names[edge["from"]],
        "related": lambda edge: names[edge["to"]],
        "memories": "memories",
    }
    state.show(answer, lambda _: print_table(edges, columns))


add_declared(graph)
