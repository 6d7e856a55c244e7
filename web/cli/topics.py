"""Commands for facts, goals, lessons, and memories about the user."""

import json
from typing import Any

import click

from pipeline.enums import GoalStatus
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import Fields, Record, count_of, fill, format_value, one_line, plain, print_memory
from web.cli.sessions import find_session_path
from web.cli.state import State
from web.client import EVERYTHING

AS_OF = "Time of the value, such as yesterday or 2026-03-01.  [default: now]"
SCOPE = "Scope of the fact.  [default: workspace]"
NO_FACTS = "There are no facts here yet. Set one with `reverie facts set SUBJECT ATTRIBUTE VALUE`."
FACT: Fields = {
    "subject": "subject",
    "attribute": "attribute",
    "value": "value",
    "from": "valid_from",
    "until": "valid_to",
    "source": "source",
    "scope": "scope",
}


@click.group(cls=Group, bare_command="list")
def facts() -> None:
    """Set and look up facts whose values change over time. Without a command, list them."""


@facts.command("list")
@click.option("--subject", help="Only list facts about this subject.")
@click.option("--as-of", type=options.PAST, metavar="TIME", help="Only list values that were valid at this time.")
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@options.limit(50)
@pass_state
def list_facts(state: State, /, limit: int, **filters: Any) -> None:
    """List facts with all their values, or with the values of one time."""
    state.show_list("/v1/facts", limit, FACT, NO_FACTS, **filters)


@facts.command("get")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option("--as-of", type=options.PAST, metavar="TIME", help=AS_OF)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def get_fact(state: State, /, subject: str, attribute: str, **filters: Any) -> None:
    """Print the value of ATTRIBUTE of SUBJECT."""
    fact = state.ask(lambda client: client.request("GET", ("facts", subject, attribute), query=filters))
    state.show(fact, plain(format_value(fact["value"])))
    until = " until {valid_to}" if fact["valid_to"] else ""
    state.note(fill(f"{{subject}}/{{attribute}}, from {{valid_from}}{until}, {{id}}", fact))


@facts.command("set")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@options.words("value", "VALUE...")
@click.option(
    "--from", "valid_from", type=options.PAST, metavar="TIME", help="When the value becomes valid.  [default: now]"
)
@click.option("--text", is_flag=True, help="Store VALUE as text, even if it looks like a number, true or false.")
@click.option("--scope", callback=options.parse_scope, metavar="KIND[:ID]", help=SCOPE)
@click.option("--source", type=options.SOURCE, help="Source of the fact.")
@click.option("--session", "session_id", metavar="ID", help="Session that the fact belongs to.")
@click.option("--to", metavar="TEAM", help="Store the fact for this team.  [default: local, this machine]")
@pass_state
def set_fact(state: State, /, subject: str, attribute: str, value: str, *, text: bool, **fields: Any) -> None:
    """Set ATTRIBUTE of SUBJECT to VALUE; the history keeps the earlier value."""
    body = {"value": value if text else parse_value(value)} | options.select_given_options(fields)
    fact = state.store(lambda client: client.request("PUT", ("facts", subject, attribute), body), fields["to"])
    replaced = ", replaces {replaced}" if fact.get("replaced") else ""
    reason = ": {reason}" if fact.get("reason") else ""
    state.show(fact, fill(f"{{outcome}} {{subject}}/{{attribute}} = {{value}}{replaced}{reason}", fact))
    for other in fact["similar"]:
        state.note(fill("{subject}/{attribute} may mean the same", other))


@facts.command("end")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option(
    "--at", "valid_to", type=options.PAST, metavar="TIME", help="When the value stops being valid.  [default: now]"
)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def end_fact(state: State, /, subject: str, attribute: str, **filters: Any) -> None:
    """End the current value of ATTRIBUTE of SUBJECT without a new value."""
    state.act(
        "DELETE", ("facts", subject, attribute), says="{subject}/{attribute} was {value} until {valid_to}", **filters
    )


@facts.command("history")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def history(state: State, /, subject: str, attribute: str, **filters: Any) -> None:
    """List all values that ATTRIBUTE of SUBJECT had, oldest first."""
    page = state.ask(lambda client: client.request("GET", ("facts", subject, attribute, "history"), query=filters))
    state.show_page(page, FACT, NO_FACTS)


def parse_value(text: str) -> Any:
    """Return the number or truth value that a text spells exactly, else the text: 3.10 is a version, not 3.1."""
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, float)) and json.dumps(value) == text else text


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


def _name_rule(lesson: dict[str, Any]) -> str:
    condition = f"When {one_line(lesson['applies_when'])}: " if lesson["applies_when"] else ""
    return f"{condition}{one_line(lesson['rule'] or lesson['content'], 400)}"


def _name_outcomes(lesson: dict[str, Any]) -> str | None:
    surface = lesson.get("surface_id")
    return surface and f"`reverie lessons outcome {surface} followed|ignored` records the outcome"


LESSON = Record(
    _name_rule,
    {
        "lesson": lambda lesson: f"{lesson['id']}  {lesson['severity']}",
        "effect": lambda lesson: fill("{usefulness} (shown {shown}, followed {followed}, ignored {ignored})", lesson),
        "now": _name_outcomes,
    },
)


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
    state.show_list(
        "/v1/lessons",
        limit,
        LESSON,
        'There are no lessons here yet. Store one with `reverie remember "…" --kind lesson`.',
        **filters,
    )


@lessons.command("outcome")
@click.argument("surface_id", metavar="SURFACE", callback=options.check_name)
@click.argument("outcome", type=click.Choice(["followed", "ignored"]))
@click.option("--note", help="Note on the reason or the result.")
@pass_state
def outcome(state: State, surface_id: str, outcome: str, note: str | None) -> None:
    """Record whether a lesson was followed. SURFACE is the ID of one time that it was shown."""
    body = {"followed": outcome == "followed"} | options.select_given_options({"note": note})
    state.act("POST", ("lessons", "surfaces", surface_id), body, says=f"lesson {{lesson_id}} was {outcome}")


@lessons.command("distill")
@click.argument("session", metavar="SESSION", callback=options.check_name)
@pass_state
def distill(state: State, session: str) -> None:
    """Propose lessons from SESSION for your review. The start of its ID is enough."""
    answer = state.ask(
        lambda client: client.request("POST", (*find_session_path(client, session), "distill")), to_write=True
    )
    count = sum(proposal["outcome"] == "candidate" for proposal in answer["proposed"])
    state.show(answer, f"{count} proposed; list them with `reverie review candidates`")


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
