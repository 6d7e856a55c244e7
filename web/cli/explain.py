"""Why results stand where they stand, and why a memory is not among them."""

import click

from web.cli.command import Command
from web.cli.memories import recall


@click.command(cls=Command)
@click.argument("query")
@click.argument("memory_id", metavar="[ID]", required=False)
@click.option("-k", "k", type=click.IntRange(1, 100), help="How many results.  [default: 10]")
@click.pass_context
def explain(context: click.Context, query: str, memory_id: str | None, k: int | None) -> None:
    """Show why each result of QUERY stands where it does; with ID, why that memory is or is not among them."""
    context.invoke(recall, query=query, explain=memory_id is None, wanted=memory_id, k=k)
