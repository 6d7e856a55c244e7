"""Commands that answer from past sessions: what fixed an error, which command works, who changed a file."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pipeline.services.file_lines import find_line_commit, locate_file
from pipeline.times import local_date
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import Record, View, count_of, fill, headline, one_line, plain, print_items
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
    answer = _ask(state, ask="fix", about=short, limit=limit)
    times = answer["occurrences"]
    problem = f"occurred {count_of(times, 'time')}, but no remedy is known" if times else "did not occur before"
    state.show(answer, lambda _: print_items(answer["remedies"], REMEDY, f"This error {problem}."))


@click.command(cls=Command)
@options.words("task", "TASK...")
@options.limit(5, 50)
@pass_state
def how(state: State, task: str, limit: int) -> None:
    """Show the commands that work here for TASK, such as tests, deploy or docker compose."""
    _answer(
        state,
        "commands",
        COMMAND,
        "No command for this succeeded in past sessions.",
        ask="how",
        about=task,
        limit=limit,
    )


@click.command(cls=Command)
@click.argument("path", metavar="PATH[:LINE]")
@options.limit(5, 50)
@pass_state
def blame(state: State, path: str, limit: int) -> None:
    """Show the sessions and decisions behind the file PATH, or behind one LINE of it."""
    match = None if Path(path).exists() else _LINE.fullmatch(path)
    file, name = locate_file(Path.cwd(), path if match is None else match[1])
    commit: dict[str, str] = {}
    if match is not None:
        changed = find_line_commit(file, int(match[2]))
        if changed is None:
            click.echo("This line is not committed; this is the history of the file.", err=True)
        else:
            click.echo(f"commit {changed.id[:10]}  {local_date(changed.at)}  {one_line(changed.subject)}", err=True)
            commit = {"commit_at": changed.at, "commit_subject": changed.subject[:500]}
    state.show(_ask(state, ask="blame", about=name, limit=limit, **commit), _print_file)


def _print_file(answer: Mapping[str, Any]) -> None:
    empty = None if answer["memories"] else "No session edited this file or decided about it."
    print_items(answer["sessions"], SESSION, empty)
    print_items(answer["memories"], MEMORY)


@click.command(cls=Command)
@options.limit(10, 50)
@pass_state
def friction(state: State, limit: int) -> None:
    """List the errors that occurred in three or more sessions, with what fixed them."""
    _answer(state, "errors", ERROR, "No error occurred in three or more sessions.", ask="friction", limit=limit)


def _ask(state: State, **query: Any) -> dict[str, Any]:
    return state.ask_about_content(lambda client: client.call("GET", "/v1/history", query=query), NO_HISTORY)


def _answer(state: State, part: str, view: View, empty: str, **query: Any) -> None:
    state.show(_ask(state, **query), lambda answer: print_items(answer[part], view, empty))


def _describe_steps(remedy: Mapping[str, Any]) -> str:
    steps = (f"{'edit ' if step['type'] == 'edit' else ''}{plain(step['target'])}" for step in remedy["steps"])
    return ", then ".join(steps) or "run it again: it succeeded without a change"


def _describe_success(remedy: Mapping[str, Any]) -> str:
    worked = "worked" if remedy["confirmed"] else "the error did not come back"
    name = one_line(remedy["session_name"] or remedy["session_id"], 60)
    return f"{worked} in {count_of(remedy['sessions'], 'session')}, last {local_date(remedy['at'])} in {name}"


def _describe_session(session: Mapping[str, Any]) -> str:
    name = one_line(session["session_name"] or session["session_id"], 60)
    wrote = ", made the commit of this line" if session["wrote_line"] else ""
    return f"{local_date(session['last_at'])}  {name}  ({count_of(session['edits'], 'edit')}{wrote})"


REMEDY = Record(
    _describe_steps,
    {
        "result": _describe_success,
        "for a similar error": lambda remedy: remedy["error"] if remedy["likeness"] < SIMILAR else None,
        "after": "command",
        "why": lambda remedy: remedy["explanation"] and f"“{remedy['explanation']}”",
    },
)
COMMAND = Record(
    "command",
    {"succeeded": lambda found: count_of(found["successes"], "time"), "last": "last_at", "session": "session_id"},
)
SESSION = Record(
    _describe_session,
    {"decisions": lambda session: [fill("{kind}: {text}", decision) for decision in session["decisions"]]},
)
MEMORY = Record(headline, {"text": "content"})
ERROR = Record(
    lambda error: one_line(error["error"]),
    {
        "occurred": lambda error: (
            f"{count_of(error['occurrences'], 'time')} in {count_of(error['sessions'], 'session')}"
        ),
        "first": "first_at",
        "last": "last_at",
        "fixed by": lambda error: "no remedy is known" if error["remedy"] is None else _describe_steps(error["remedy"]),
    },
)
