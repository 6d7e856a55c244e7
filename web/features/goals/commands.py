"""Commands for goals."""

from typing import Any

import click

from pipeline.kernel.enums import GoalStatus
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import Fields, Record, fill
from web.cli.state import State

STATUSES = tuple(status.value for status in GoalStatus)
STATUS_HELP = "Status: open, in_progress, done or dropped."
PROGRESS_HELP = "Progress from 0 to 1."
DUE_HELP = "Due date, such as tomorrow, 2w or 2026-03-01."
NO_GOALS = "There are no goals here yet. Add one with `reverie goals add TITLE`."
GOAL: Fields = {"goal": "id", "status": "status", "progress": "progress", "due": "due_at", "title": "title"}


def _describe_goal(goal: dict[str, Any]) -> str:
    due = ", due {due_at}" if goal["due_at"] else ""
    return fill(f"{{id}}: {{title}} ({{status}}, {{progress}}{due})", goal)


SHOWN_GOAL = Record(_describe_goal, lists={"events": {"at": "at", "event": "text"}})


@click.group(cls=Group, bare_command="list")
def goals() -> None:
    """List, add and change goals with status, progress and due date. Without a command, list them."""


@goals.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only list goals with this status.")
@options.viewer
@options.limit(50)
@pass_state
def list_goals(state: State, /, limit: int, **filters: Any) -> None:
    """List goals, newest first."""
    state.show_list("/v1/goals", limit, GOAL, NO_GOALS, **filters)


@goals.command("add")
@options.words("title", "TITLE...")
@click.option("--status", type=click.Choice(STATUSES), help=f"{STATUS_HELP}  [default: open]")
@click.option("--progress", type=click.FloatRange(0, 1), help=f"{PROGRESS_HELP}  [default: 0]")
@click.option("--due", "due_at", type=options.FUTURE, metavar="TIME", help=DUE_HELP)
@click.option("--importance", type=click.FloatRange(0, 1), help="Importance from 0 to 1.")
@click.option("--tag", "tags", multiple=True, help="Add a tag of a-z, 0-9 and -. Can be repeated.")
@click.option(
    "--scope", callback=options.parse_scope, metavar="KIND[:ID]", help="Who sees the goal.  [default: workspace]"
)
@click.option("--session", "session_id", metavar="ID", help="Session that the goal belongs to.")
@click.option("--source", type=options.SOURCE, help="Source of the goal.")
@pass_state
def add_goal(state: State, /, title: str, **fields: Any) -> None:
    """Add a goal with TITLE, or update the goal that has this title."""
    body = {"title": title} | options.select_given_options(fields)
    goal = state.ask(lambda client: client.request("POST", "/v1/goals", body), to_write=True)
    state.show(goal, f"{goal['outcome']} {_describe_goal(goal)}")


@goals.command("show")
@click.argument("goal_id", metavar="ID", callback=options.check_name)
@pass_state
def show_goal(state: State, goal_id: str) -> None:
    """Show the goal ID with the events that changed it."""
    goal = state.ask(lambda client: client.request("GET", ("goals", goal_id)))
    state.show(goal, SHOWN_GOAL)


@goals.command("set")
@click.argument("goal_id", metavar="ID", callback=options.check_name)
@click.option("--title", help="New title.")
@click.option("--status", type=click.Choice(STATUSES), help=STATUS_HELP)
@click.option("--progress", type=click.FloatRange(0, 1), help=PROGRESS_HELP)
@click.option("--due", "due_at", type=options.FUTURE, metavar="TIME", help=DUE_HELP)
@click.option("--no-due", is_flag=True, help="Remove the due date.")
@pass_state
def set_goal(state: State, /, goal_id: str, *, no_due: bool, **fields: Any) -> None:
    """Change the goal ID."""
    changes = options.select_given_options(fields)
    if no_due and "due_at" in changes:
        raise click.UsageError("--due and --no-due exclude each other.")
    if no_due:
        changes["due_at"] = None
    if not changes:
        raise click.UsageError("Name a change: --title, --status, --progress, --due or --no-due.")
    goal = state.ask(lambda client: client.request("PATCH", ("goals", goal_id), changes))
    state.show(goal, _describe_goal(goal))
