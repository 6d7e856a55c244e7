"""Commands for the sessions of agents: list and show them, keep one out of memory, and answer from past ones."""

import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from pipeline.kernel.errors import NotFound
from pipeline.kernel.times import local_date, local_minute
from web.cli import options
from web.cli.command import Command, Group, pass_state
from web.cli.render import (
    Fields,
    Record,
    View,
    count_of,
    fill,
    format_minute,
    headline,
    one_line,
    plain,
    print_items,
    terminal_width,
)
from web.cli.state import State, empty_page

if TYPE_CHECKING:
    from web.http.client import Client

# The newest sessions, among which a prefix is looked up.
SEARCHED_SESSIONS = 1000
NO_SESSIONS = "There are no sessions here yet. They appear once a connected agent works in this workspace."
SESSION: Fields = {
    "last active": "last_at",
    "session": "id",
    "name": "name",
    "messages": "turns",
    "actions": "actions",
    "memories": "memories",
}


@click.group(cls=Group, bare_command="list", default_command="show")
def sessions() -> None:
    """List, show and rename the sessions of agents. Without a command, list them; with the start of an ID, show one."""


@sessions.command("list")
@options.limit(20)
@pass_state
def list_sessions(state: State, limit: int) -> None:
    """List sessions, the most recently active first."""
    state.show_list("/v1/sessions", limit, SESSION, NO_SESSIONS)


def find_session_path(client: "Client", prefix: str) -> tuple[str, str]:
    """Return the path of the only session whose ID starts with a prefix, else of the prefix itself.

    Raises NotFound if several sessions match.
    """
    ids = [item["id"] for item in client.items("/v1/sessions", SEARCHED_SESSIONS) if item["id"].startswith(prefix)]
    if prefix not in ids and len(ids) > 1:
        shown = ", ".join(plain(session_id) for session_id in ids[:5])
        raise NotFound(f'{len(ids)} sessions start with "{prefix}": {shown}. Type more of the ID.')
    return "sessions", prefix if prefix in ids or not ids else ids[0]


@sessions.command("search")
@options.words("query", "QUERY...")
@options.limit(10)
@pass_state
def search_sessions(state: State, query: str, limit: int) -> None:
    """Search sessions for QUERY in what was said in them, best match first."""
    question = {"query": query, "limit": limit}
    answer: dict[str, Any] = state.ask_about_content(
        lambda client: client.call("GET", "/v1/sessions/search", query=question), {"items": []}
    )
    state.show_page(answer, print_found_session, "No session contains these words.")


def print_found_session(session: Mapping[str, Any], *, with_relevance: bool = False) -> None:
    """Print a session that a search found, and its quote."""
    agent = f"  {plain(session['agent'])}" if session["agent"] else ""
    relevance = f"  relevance {session['relevance']:.2f}" if with_relevance else ""
    title = f"  {one_line(session['title'], 60)}" if session["title"] else ""
    click.echo(f"{format_minute(session['at'])}{agent}  {plain(session['session_id'])}{title}{relevance}")
    for line in wrap(f"{session['role']}: {plain(' '.join(session['quote'].split()))}", max(20, terminal_width() - 2)):
        click.echo(f"  {line}")


@sessions.command("show")
@click.argument("session", metavar="SESSION", callback=options.check_name)
@pass_state
def show_session(state: State, session: str) -> None:
    """Show the messages, injected texts, actions and memories of SESSION. The start of its ID is enough."""
    record = state.ask(lambda client: client.request("GET", find_session_path(client, session)))
    state.show(record, _print_session)


def _print_session(record: dict[str, Any]) -> None:
    session = record["session"]
    times = f"{local_minute(session['first_at'])} to {local_minute(session['last_at'])}"
    origin = [plain(session[name]) for name in ("agent", "branch") if session[name]]
    click.echo("  ".join([one_line(session["name"] or session["id"]), times, *origin]))
    replaced = {True: "", False: " (replaced later)"}
    parts = {
        "messages": [f"{turn['role']}: {turn['content']}" for turn in record["said"]],
        "injected": [f"{run['event']}: {run['chars']} characters, {run['outcome']}" for run in record["told"]],
        "actions": [f"{action['type']} {action['target']}{describe_failure(action)}" for action in record["did"]],
        "conclusions": [
            f"{item['kind']} {item['content']}{replaced[item['is_current']]}" for item in reversed(record["concluded"])
        ],
        "memories": [f"{memory['kind']} {memory['content']}" for memory in record["learnt"]],
        "subagents": record["subagents"],
    }
    for title, rows in parts.items():
        click.echo(f"\n{title}:" if rows else f"\n{title}: none")
        for row in reversed(rows):
            click.echo(f"  {one_line(row, max(20, terminal_width() - 2))}")


def describe_failure(action: Mapping[str, Any]) -> str:
    """Return how an action failed, nothing for a successful one."""
    if action["ok"]:
        return ""
    code = f" with exit status {action['exit_code']}" if action.get("exit_code") is not None else ""
    return f" (failed{code}{': ' if action.get('error') else ''}{action.get('error') or ''})"


@sessions.command("rename")
@click.argument("session", metavar="SESSION", callback=options.check_name)
@options.words("name", "NAME...")
@pass_state
def rename_session(state: State, session: str, name: str) -> None:
    """Rename SESSION to NAME. The start of its ID is enough."""
    answer = state.ask(
        lambda client: client.request("PATCH", find_session_path(client, session), {"name": name}), to_write=True
    )
    state.show(answer, fill("renamed {id} to {name}", answer))


@sessions.group(cls=Group)
def incognito() -> None:
    """Keep sessions out of memory: nothing from an incognito session is stored."""


@incognito.command()
@click.option("--session", "session_id", metavar="ID", help="Session to make incognito.  [default: newest one here]")
@pass_state
def on(state: State, session_id: str | None) -> None:
    """Make a session incognito: store nothing more from it."""
    _set_incognito(state, session_id, on=True)


@incognito.command()
@click.option("--session", "session_id", metavar="ID", help="Session to store again.  [default: newest one here]")
@pass_state
def off(state: State, session_id: str | None) -> None:
    """End incognito for a session: store its memories again."""
    _set_incognito(state, session_id, on=False)


@incognito.command("list")
@pass_state
def list_incognito(state: State) -> None:
    """List the incognito sessions."""
    answer = state.ask_about_content(lambda client: client.request("GET", "/v1/incognito"), empty_page())
    state.show_page(
        answer,
        {"session": "session_id", "since": "since"},
        "No session is incognito. Turn it on with `reverie sessions incognito on`.",
    )


def _set_incognito(state: State, session_id: str | None, *, on: bool) -> None:
    answer = state.ask(
        lambda client: client.request(
            "POST", "/v1/incognito", {"session_id": session_id or _find_newest(client), "on": on}
        )
    )
    is_now = "is no longer incognito" if answer["since"] is None else "is incognito since {since}"
    state.show(answer, fill(f"session {{session_id}} {is_now}", answer))


def _find_newest(client: "Client") -> str:
    newest = next(client.items("/v1/sessions", 1), None)
    if newest is None:
        raise NotFound(
            f'Workspace "{client.workspace}" has no session yet. Name a session with `--session ID`, '
            "or start your agent with REVERIE_INCOGNITO=true."
        )
    return str(newest["id"])


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
    from pipeline.kernel.git.line_commit import locate_line

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
    state.show(_ask(state, ask="blame", about=name, limit=limit, **commit), _print_file)


def _print_file(answer: Mapping[str, Any]) -> None:
    empty = None if answer["memories"] else "No session edited this file or decided about it."
    print_items(answer["sessions"], EDITING_SESSION, empty)
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
        "for a similar error": lambda remedy: one_line(remedy["error"] or "") if remedy["likeness"] < SIMILAR else None,
        "after": lambda remedy: one_line(remedy["command"]),
        "why": lambda remedy: remedy["explanation"] and f"“{remedy['explanation']}”",
    },
)
COMMAND = Record(
    "command",
    {"succeeded": lambda found: count_of(found["successes"], "time"), "last": "last_at", "session": "session_id"},
)
EDITING_SESSION = Record(
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
