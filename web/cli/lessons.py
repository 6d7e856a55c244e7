"""Lessons on the command line: whether they help, and what became of one that was shown."""

from typing import Any

import click

from web.cli import options
from web.cli.command import Group, State, pass_state
from web.cli.lines import one_line, remark_on_none
from web.cli.render import plain


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def lessons(context: click.Context) -> None:
    """Show lessons with their records, and say whether one was followed. Without a command, list all."""
    if context.invoked_subcommand is None:
        context.invoke(list_lessons)


@lessons.command("list")
@click.option("--about", "q", metavar="TEXT", help="Only lessons about this, best first; counts as showing them.")
@options.viewer
@options.limit(20)
@pass_state
def list_lessons(state: State, /, limit: int, **wanted: Any) -> None:
    """List lessons, newest first, each with how often it was shown and followed."""
    with state.client() as client:
        found = client.listing("/v1/lessons", limit, **wanted)
    if state.json:
        state.print_json(found)
        return
    remark_on_none(found["items"])
    for lesson in found["items"]:
        record = f"shown {lesson['shown']}, followed {lesson['followed']}, ignored {lesson['ignored']}"
        click.echo(f"{lesson['id']}  {lesson['severity']}  {plain(lesson['usefulness'])} ({record})")
        condition = f"When {one_line(lesson['applies_when'])}: " if lesson["applies_when"] else ""
        click.echo(f"     {condition}{one_line(lesson['rule'] or lesson['content'], 400)}")
        if lesson.get("surface_id"):
            click.echo(f"     `reverie lessons outcome {lesson['surface_id']} followed` (or `ignored`) tells whether")


@lessons.command("outcome")
@click.argument("surface_id", metavar="SURFACE", callback=options.named)
@click.argument("outcome", type=click.Choice(["followed", "ignored"]))
@click.option("--note", help="Why, or how it went.")
@pass_state
def outcome(state: State, surface_id: str, outcome: str, note: str | None) -> None:
    """Say whether a lesson was followed the time that SURFACE names."""
    body = {"followed": outcome == "followed"} | options.told({"note": note})
    with state.client() as client:
        found = client.answer_lesson(surface_id, body)
    if state.json:
        state.print_json(found)
    else:
        click.echo(f"lesson {found['lesson_id']} was {outcome}")
