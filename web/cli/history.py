"""Commands that answer from past sessions: what fixed an error, which command works, who changed a file."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from pipeline.times import local_date
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import count_of, headline, one_line, plain, print_if_none, print_items
from web.cli.state import State

# The answer of a workspace to which nothing was ever written.
NO_HISTORY: dict[str, Any] = {
    "occurrences": 0,
    "remedies": [],
    "commands": [],
    "sessions": [],
    "memories": [],
    "errors": [],
}
# The server reads no more of an error text.
MAX_ERROR_CHARS = 8000
SIMILAR = 0.999
INDENT = "     "
_LINE = re.compile(r"(.+?):(\d+)(?::\d+)?")


@click.command(cls=Command)
@options.words("error", "ERROR...")
@options.limit(3, 50)
@pass_state
def fix(state: State, error: str, limit: int) -> None:
    """Show what fixed ERROR in past sessions. `-` reads standard input."""
    text = options.read_text(error, is_log=True)
    half = MAX_ERROR_CHARS // 2
    short = text if len(text) <= MAX_ERROR_CHARS else f"{text[: half - 1]}\n{text[-half:]}"
    _answer(state, _print_fixes, ask="fix", about=short, limit=limit)


@click.command(cls=Command)
@options.words("task", "TASK...")
@options.limit(5, 50)
@pass_state
def how(state: State, task: str, limit: int) -> None:
    """Show the commands that work here for TASK, such as tests, deploy or docker compose."""

    def show(answer: Mapping[str, Any]) -> None:
        print_items(answer["commands"], _print_command, "No command for this succeeded in past sessions.")

    _answer(state, show, ask="how", about=task, limit=limit)


@click.command(cls=Command)
@click.argument("path", metavar="PATH[:LINE]")
@options.limit(5, 50)
@pass_state
def blame(state: State, path: str, limit: int) -> None:
    """Show the sessions and decisions behind the file PATH, or behind one LINE of it."""
    from pipeline.services.file_lines import locate_line

    match = None if Path(path).exists() else _LINE.fullmatch(path)
    named, line = (path, None) if match is None else (match[1], int(match[2]))
    name, changed = locate_line(Path.cwd(), named, line)
    commit: dict[str, str] = {}
    if match is not None:
        if changed is None:
            click.echo("This line is not committed; this is the history of the file.", err=True)
        else:
            click.echo(f"commit {changed.id[:10]}  {local_date(changed.at)}  {one_line(changed.subject)}", err=True)
            commit = {"commit_at": changed.at, "commit_subject": changed.subject[:500]}
    _answer(state, _print_file, ask="blame", about=name, limit=limit, **commit)


@click.command(cls=Command)
@options.limit(10, 50)
@pass_state
def friction(state: State, limit: int) -> None:
    """List the errors that occurred in three or more sessions, with what fixed them."""
    empty = "No error occurred in three or more sessions."
    _answer(state, lambda answer: print_items(answer["errors"], _print_error, empty), ask="friction", limit=limit)


def _answer(state: State, show: Callable[[Mapping[str, Any]], None], **query: Any) -> None:
    answer: dict[str, Any] = state.ask_about_content(
        lambda client: client.call("GET", "/v1/history", query=query), NO_HISTORY
    )
    state.show(answer, lambda: show(answer))


def _print_fixes(answer: Mapping[str, Any]) -> None:
    times = answer["occurrences"]
    problem = f"occurred {count_of(times, 'time')}, but no remedy is known" if times else "did not occur before"
    print_items(answer["remedies"], _print_remedy, f"This error {problem}.")


def _print_remedy(remedy: Mapping[str, Any]) -> None:
    click.echo(_describe_steps(remedy))
    worked = "worked" if remedy["confirmed"] else "the error did not come back"
    name = one_line(remedy["session_name"] or remedy["session_id"], 60)
    click.echo(
        f"{INDENT}{worked} in {count_of(remedy['sessions'], 'session')}, last {local_date(remedy['at'])} in {name}"
    )
    if remedy["likeness"] < SIMILAR:
        click.echo(f"{INDENT}for a similar error: {one_line(remedy['error'] or '')}")
    click.echo(f"{INDENT}after: {one_line(remedy['command'])}")
    if remedy["explanation"]:
        click.echo(f"{INDENT}“{plain(remedy['explanation'])}”")


def _describe_steps(remedy: Mapping[str, Any]) -> str:
    if not remedy["steps"]:
        return "run it again: it succeeded without a change"
    steps = (f"{'edit ' if step['type'] == 'edit' else ''}{plain(step['target'])}" for step in remedy["steps"])
    return ", then ".join(steps)


def _print_command(found: Mapping[str, Any]) -> None:
    click.echo(plain(found["command"]))
    times, session = count_of(found["successes"], "time"), plain(found["session_id"])
    click.echo(f"{INDENT}succeeded {times}, last {local_date(found['last_at'])} in {session}")


def _print_file(answer: Mapping[str, Any]) -> None:
    print_if_none([*answer["sessions"], *answer["memories"]], "No session edited this file or decided about it.")
    for session in answer["sessions"]:
        name = one_line(session["session_name"] or session["session_id"], 60)
        wrote = ", made the commit of this line" if session["wrote_line"] else ""
        click.echo(f"{local_date(session['last_at'])}  {name}  ({count_of(session['edits'], 'edit')}{wrote})")
        for decision in session["decisions"]:
            click.echo(f"{INDENT}{decision['kind']}: {one_line(decision['text'])}")
    for memory in answer["memories"]:
        click.echo(f"{headline(memory)}\n{INDENT}{one_line(memory['content'])}")


def _print_error(error: Mapping[str, Any]) -> None:
    click.echo(one_line(error["error"]))
    counts = f"{count_of(error['occurrences'], 'time')} in {count_of(error['sessions'], 'session')}"
    click.echo(f"{INDENT}{counts}, {local_date(error['first_at'])} to {local_date(error['last_at'])}")
    remedy = error["remedy"]
    click.echo(f"{INDENT}{'no remedy is known' if remedy is None else f'fixed by: {_describe_steps(remedy)}'}")
