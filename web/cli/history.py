"""Commands that answer from past sessions: what fixed an error, which command works, who changed a file."""

from collections.abc import Mapping
from typing import Any

import click

from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import count_of, one_line, plain
from web.cli.state import State

NO_HISTORY: dict[str, Any] = {"occurrences": 0, "remedies": []}
SIMILAR = 0.999


@click.command(cls=Command)
@options.words("error", "ERROR...")
@options.limit(3, 50)
@pass_state
def fix(state: State, error: str, limit: int) -> None:
    """Show what fixed ERROR in past sessions. With `-`, read the error from standard input."""
    answer = _ask(state, "fix", options.read_text(error), limit)
    state.show(answer, lambda: _print_fixes(answer))


def _ask(state: State, ask: str, about: str, limit: int) -> dict[str, Any]:
    query = {"ask": ask, "about": about, "limit": limit}
    answer: dict[str, Any] = state.ask_about_content(
        lambda client: client.call("GET", "/v1/history", query=query), NO_HISTORY
    )
    return answer


def _print_fixes(answer: Mapping[str, Any]) -> None:
    if not answer["remedies"]:
        times = count_of(answer["occurrences"], "time")
        known = f"This error occurred {times}, but" if answer["occurrences"] else "This error is new:"
        click.echo(f"{known} no remedy is known.", err=True)
    for remedy in answer["remedies"]:
        _print_remedy(remedy)


def _print_remedy(remedy: Mapping[str, Any]) -> None:
    click.echo(f"{describe_steps(remedy)}")
    worked = "worked" if remedy["confirmed"] else "the error did not come back"
    name = one_line(remedy["session_name"] or remedy["session_id"], 60)
    click.echo(f"     {worked} in {count_of(remedy['sessions'], 'session')}, last {remedy['at'][:10]} in {name}")
    if remedy["likeness"] < SIMILAR:
        click.echo(f"     for a similar error: {one_line(remedy['error'] or '')}")
    click.echo(f"     after: {one_line(remedy['command'])}")
    if remedy["explanation"]:
        click.echo(f"     “{plain(remedy['explanation'])}”")


def describe_steps(remedy: Mapping[str, Any]) -> str:
    """Return the steps of a remedy as one line."""
    if not remedy["steps"]:
        return "run it again: it succeeded without a change"
    verbs = {"edit": "edit "}
    return ", then ".join(f"{verbs.get(step['type'], '')}{plain(step['target'])}" for step in remedy["steps"])
