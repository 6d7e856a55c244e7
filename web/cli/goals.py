"""Goals and lessons on the command line: list them, set one, say how far it has come or whether it helped."""

from typing import Any
from urllib.parse import quote

import click

from pipeline.enums import GoalStatus
from web.cli import options
from web.cli.command import Group, State, pass_state
from web.cli.render import format_minute, one_line, plain, print_if_none, table

STATUSES = tuple(status.value for status in GoalStatus)


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def goals(context: click.Context) -> None:
    """Keep goals: their status, progress and due date. Without a command, list all."""
    if context.invoked_subcommand is None:
        context.invoke(list_goals)


@goals.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only goals of this status.")
@options.viewer
@options.limit(50)
@pass_state
def list_goals(state: State, /, limit: int, **wanted: Any) -> None:
    """List goals, newest first."""
    found = state.ask(lambda client: client.list_items("/v1/goals", limit, **wanted))
    rows = [
        [goal["id"], goal["status"], f"{goal['progress']:.0%}", _format_due(goal), one_line(goal["title"])]
        for goal in found["items"]
    ]
    state.show(found, lambda: table(["goal", "status", "progress", "due", "title"], rows, right=["progress"]))


@goals.command("add")
@click.argument("title")
@click.option("--status", type=click.Choice(STATUSES), help="How it stands.  [default: open]")
@click.option("--progress", type=click.FloatRange(0, 1), help="How far it has come, 0 to 1.  [default: 0]")
@click.option("--due", "due_at", callback=options.parse_time, metavar="TIME", help="When it is due, as 2026-03-01.")
@click.option("--importance", type=click.FloatRange(0, 1), help="How much it matters, 0 to 1.")
@click.option("--tag", "tags", multiple=True, help="A tag of a-z, 0-9 and -; may be given several times.")
@click.option(
    "--scope", callback=options.parse_scope, metavar="KIND[:ID]", help="How far it reaches.  [default: workspace]"
)
@click.option("--session", "session_id", metavar="ID", help="The session it belongs to.")
@click.option("--source", type=options.SOURCE, help="Where it comes from.")
@pass_state
def add(state: State, /, title: str, **given: Any) -> None:
    """Set a goal by its TITLE; one that is known is given what is said now."""
    found = state.ask(
        lambda client: client.add_goal({"title": title} | options.select_given_options(given)), to_write=True
    )
    _print_goal(state, found, f"{found['outcome']} ")


@goals.command("show")
@click.argument("goal_id", metavar="ID", callback=options.check_name)
@pass_state
def show_goal(state: State, goal_id: str) -> None:
    """Show the goal ID with what advanced it."""
    found = state.ask(lambda client: client.call("GET", f"/v1/goals/{quote(goal_id, safe='')}"))
    if state.json:
        state.print_json(found)
        return
    _print_goal(state, found)
    for event in found["events"]:
        click.echo(f"  {format_minute(event['at'])}  {one_line(event['text'])}")


@goals.command("set")
@click.argument("goal_id", metavar="ID", callback=options.check_name)
@click.option("--title", help="The new title.")
@click.option("--status", type=click.Choice(STATUSES), help="How it stands.")
@click.option("--progress", type=click.FloatRange(0, 1), help="How far it has come, 0 to 1.")
@click.option("--due", "due_at", callback=options.parse_time, metavar="TIME", help="When it is due, as 2026-03-01.")
@click.option("--no-due", is_flag=True, help="Take the due date away.")
@pass_state
def set_goal(state: State, /, goal_id: str, *, no_due: bool, **given: Any) -> None:
    """Change the goal ID."""
    changes = options.select_given_options(given)
    if no_due and "due_at" in changes:
        raise click.UsageError("--due and --no-due contradict each other")
    if no_due:
        changes["due_at"] = None
    if not changes:
        raise click.UsageError("say what to change: --title, --status, --progress, --due or --no-due")
    found = state.ask(lambda client: client.change_goal(goal_id, changes))
    _print_goal(state, found)


def _print_goal(state: State, goal: dict[str, Any], outcome: str = "") -> None:
    due = f", due {_format_due(goal)}" if goal["due_at"] else ""
    state.show(
        goal, f"{outcome}{goal['id']}: {one_line(goal['title'])} ({goal['status']}, {goal['progress']:.0%}{due})"
    )


def _format_due(goal: dict[str, Any]) -> str | None:
    return format_minute(goal["due_at"])


@click.group(cls=Group, invoke_without_command=True)
@click.option("--effect", "show_effect", is_flag=True, help="Tell whether telling lessons makes a difference.")
@click.pass_context
def lessons(context: click.Context, *, show_effect: bool) -> None:
    """Show lessons with their records, and say whether one was followed. Without a command, list all."""
    if context.invoked_subcommand is None:
        context.invoke(effect if show_effect else list_lessons)


@lessons.command("list")
@click.option("--about", "q", metavar="TEXT", help="Only lessons about this, best first; counts as showing them.")
@options.viewer
@options.limit(20)
@pass_state
def list_lessons(state: State, /, limit: int, **wanted: Any) -> None:
    """List lessons, newest first, each with how often it was shown and followed."""
    found = state.ask(lambda client: client.list_items("/v1/lessons", limit, **wanted))
    if state.json:
        state.print_json(found)
        return
    print_if_none(found["items"])
    for lesson in found["items"]:
        record = f"shown {lesson['shown']}, followed {lesson['followed']}, ignored {lesson['ignored']}"
        click.echo(f"{lesson['id']}  {lesson['severity']}  {plain(lesson['usefulness'])} ({record})")
        condition = f"When {one_line(lesson['applies_when'])}: " if lesson["applies_when"] else ""
        click.echo(f"     {condition}{one_line(lesson['rule'] or lesson['content'], 400)}")
        if lesson.get("surface_id"):
            click.echo(f"     `reverie lessons outcome {lesson['surface_id']} followed` (or `ignored`) tells whether")


@lessons.command("effect")
@pass_state
def effect(state: State) -> None:
    """Tell whether telling lessons makes a difference: some are withheld at random and followed or not all the same."""
    found = state.ask(lambda client: client.call("GET", "/v1/lessons/effect"))
    state.show(found, lambda: _print_effect(found))


def _print_effect(found: dict[str, Any]) -> None:
    for name in ("told", "withheld"):
        click.echo(f"{name}: followed {found[name]['followed']} of {found[name]['answered']}")
    if found["difference"] is None:
        click.echo("not enough yet to tell a difference")
    else:
        click.echo(f"difference: {found['difference']:+.0%} ({found['low']:+.0%} to {found['high']:+.0%}, 95 %)")


@lessons.command("outcome")
@click.argument("surface_id", metavar="SURFACE", callback=options.check_name)
@click.argument("outcome", type=click.Choice(["followed", "ignored"]))
@click.option("--note", help="Why, or how it went.")
@pass_state
def outcome(state: State, surface_id: str, outcome: str, note: str | None) -> None:
    """Say whether a lesson was followed the time that SURFACE names."""
    body = {"followed": outcome == "followed"} | options.select_given_options({"note": note})
    found = state.ask(lambda client: client.answer_lesson(surface_id, body))
    state.show(found, f"lesson {found['lesson_id']} was {outcome}")
