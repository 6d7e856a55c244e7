"""Commands for lessons: list them, record whether one was followed, measure their effect, propose new ones."""

from typing import TYPE_CHECKING, Any

import click

from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import one_line, plain
from web.cli.sessions import find_session_path
from web.cli.state import State

if TYPE_CHECKING:
    pass

NO_LESSONS = 'There are no lessons here yet. Store one with `reverie remember "…" --kind lesson`.'


@click.group(cls=Group, bare_command="list")
def lessons() -> None:
    """List lessons and record whether agents followed them. Without a command, list them."""


@lessons.command("list")
@click.option(
    "--about", "q", metavar="TEXT", help="Only list lessons about this topic, best match first; counts as showing them."
)
@options.viewer
@options.limit(20)
@pass_state
def list_lessons(state: State, /, limit: int, **filters: Any) -> None:
    """List lessons, newest first, with how often each was shown and followed."""
    page = state.list_items("/v1/lessons", limit, **filters)
    state.show_items(page, _print_lesson, NO_LESSONS)


def _print_lesson(lesson: dict[str, Any]) -> None:
    record = f"shown {lesson['shown']}, followed {lesson['followed']}, ignored {lesson['ignored']}"
    click.echo(f"{lesson['id']}  {lesson['severity']}  {plain(lesson['usefulness'])} ({record})")
    condition = f"When {one_line(lesson['applies_when'])}: " if lesson["applies_when"] else ""
    click.echo(f"     {condition}{one_line(lesson['rule'] or lesson['content'], 400)}")
    if lesson.get("surface_id"):
        click.echo(f"     record the outcome: `reverie lessons outcome {lesson['surface_id']} followed|ignored`")


@lessons.command("outcome")
@click.argument("surface_id", metavar="SURFACE", callback=options.check_name)
@click.argument("outcome", type=click.Choice(["followed", "ignored"]))
@click.option("--note", help="Note on the reason or the result.")
@pass_state
def outcome(state: State, surface_id: str, outcome: str, note: str | None) -> None:
    """Record whether a lesson was followed. SURFACE is the ID of one time that it was shown."""
    body = {"followed": outcome == "followed"} | options.select_given_options({"note": note})
    answer = state.ask(lambda client: client.request("POST", ("lessons", "surfaces", surface_id), body))
    state.show(answer, f"lesson {answer['lesson_id']} was {outcome}")


@lessons.command("distill")
@click.argument("session", metavar="SESSION", callback=options.check_name)
@pass_state
def distill(state: State, session: str) -> None:
    """Propose lessons from SESSION for your review. The start of its ID is enough."""
    answer = state.ask(
        lambda client: client.call("POST", f"{find_session_path(client, session)}/distill"), to_write=True
    )
    candidates = [proposal for proposal in answer["proposed"] if proposal["outcome"] == "candidate"]
    state.show(answer, f"{len(candidates)} proposed; list them with `reverie review candidates`")
