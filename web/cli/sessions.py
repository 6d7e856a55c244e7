"""Commands for the sessions of agents: list, show and rename them, and keep one out of memory."""

from collections.abc import Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import NotFound
from pipeline.times import local_minute
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import Fields, fill, format_minute, one_line, plain, terminal_width
from web.cli.state import State, empty_page

if TYPE_CHECKING:
    from web.client import Client

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
