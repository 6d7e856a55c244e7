"""Commands for lessons."""

from typing import Any

import click

from web.cli import options
from web.cli.command import Group, add_declared, pass_state
from web.cli.render import Record, fill, one_line
from web.cli.state import State
from web.features.sessions.commands import find_session_path


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


add_declared(lessons)
