"""The command that lists and settles memories that contradict each other."""

from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import Conflict, NotFound
from pipeline.times import local_date
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import count_of, one_line, plain, print_if_none
from web.cli.state import State

if TYPE_CHECKING:
    from web.client import Client

KEYS = ("p", "o", "k", "s", "q")
QUESTION = "keep [p]referred, keep [o]ther, [k]eep both, [s]kip, [q]uit"


@click.command("conflicts", cls=Command)
@click.option("--list", "only_list", is_flag=True, help="List the conflicts without asking what to do.")
@options.limit(50)
@pass_state
def review_conflicts(state: State, limit: int, *, only_list: bool) -> None:
    """Review memories that contradict each other: keep one and archive the other, or keep both.

    The preferred memory comes first: a rule file, then your own statement, then a memory that matches its code, then
    the newer memory. With --json, list the conflicts.
    """
    page = state.list_items("/v1/conflicts", limit)
    if state.json or only_list or not page["items"]:
        state.show(page, lambda: _print_conflicts(page["items"]))
        return
    with state.client() as client:
        archived, kept = _review(client, page["items"])
    click.echo(f"{count_of(archived, 'memory', 'memories')} archived, {count_of(kept, 'conflict')} removed", err=True)


def _print_conflicts(conflicts: list[dict[str, Any]]) -> None:
    print_if_none(conflicts, "No memories contradict each other.")
    for conflict in conflicts:
        _print_conflict(conflict)


def _review(client: "Client", conflicts: list[dict[str, Any]]) -> tuple[int, int]:
    """Ask about each conflict; return the numbers of archived memories and of conflicts whose memories are kept."""
    archived = kept = 0
    for conflict in conflicts:
        _print_conflict(conflict)
        key = click.prompt(QUESTION, type=click.Choice(KEYS), show_choices=False)
        click.echo()
        if key == "q":
            break
        if key == "s":
            continue
        kept_id, other_id = (conflict[side]["memory"]["id"] for side in ("leading", "other"))
        if key == "o":
            kept_id, other_id = other_id, kept_id
        try:
            answer = client.settle_conflict(kept_id, other_id, "both" if key == "k" else "keep")
        except (Conflict, NotFound) as error:
            # Another client was faster, or one of the two was deleted: go on with the other conflicts.
            click.echo(f"not changed: {plain(error)}", err=True)
            continue
        archived += answer["archived"] is not None
        kept += answer["archived"] is None
    return archived, kept


def _print_conflict(conflict: dict[str, Any]) -> None:
    for name, label in (("leading", "preferred"), ("other", "other    ")):
        side = conflict[name]
        memory = side["memory"]
        click.echo(f"{label}  {one_line(memory['content'])}")
        origin = f"{local_date(memory['occurred_at'])}  {side['standing']}  {plain(side['origin'])}  {memory['id']}"
        click.echo(f"           {origin}")
    click.echo()
