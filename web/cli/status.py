"""How it fares: processes, server, queues, last errors; the way to the dashboard; memories as they are written."""

import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from config.access import list_problems
from config.settings import SWITCHES
from pipeline.errors import NotFound, ReverieError, ServerUnreachable
from pipeline.services.workspace_config import read_switches
from pipeline.times import format_duration
from web.cli.command import BROKEN_HOME, Command, State, choose_for_folder, pass_state
from web.cli.output import dump_json
from web.cli.render import plain, print_memory, print_pairs, table

if TYPE_CHECKING:
    from web.client import Client

ERRORS_SHOWN = 5
# Of a workspace that cannot be read.
NO_QUEUE: dict[str, Any] = {"pending": {}, "dead": {}}


@click.command(cls=Command)
@pass_state
def status(state: State) -> int:
    """Show what runs, what waits and what went wrong last."""
    from web.cli.processes import list_running
    from web.client import Client

    found: dict[str, Any] = {
        "url": state.settings.url,
        "home": str(state.settings.paths.root),
        "encrypted": state.settings.paths.store_key.exists(),
        "here": _describe_here(state),
        "processes": [
            {"name": p.name, "pid": p.pid, "uptime_s": round(p.uptime_s, 1), "children": p.children}
            for p in list_running(state.settings)
        ],
    }
    with Client.from_settings(state.settings) as client:
        found |= _ask_server(client)
        found["here"]["switches"] = _find_switches(state, client, found)
    found["problems"] = list_problems(state.settings.paths.root) + found["problems"]
    state.show(found, lambda: _print_status(found))
    return BROKEN_HOME if found["problems"] else 0


def _describe_here(state: State) -> dict[str, Any]:
    """Tell which workspace answers in this folder, and why."""
    choice = choose_for_folder(Path(), state.settings, state.named_workspace)
    rule = None if choice.identity is None else choice.identity.rule
    return {"workspace": choice.workspace, "rule": rule, "detail": choice.detail, "switches": None}


def _find_switches(state: State, client: "Client", found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the switches that the server has in force here, or would have if it started; None if it does not say."""
    workspace = found["here"]["workspace"]
    if not found["answers"]:
        return read_switches(state.settings, workspace)
    try:
        switches = client.switches(workspace)
    except ReverieError as error:
        if str(error) not in found["problems"]:
            found["problems"].append(str(error))
        return None
    return {name: switches[name] for name in SWITCHES}


def _ask_server(client: "Client") -> dict[str, Any]:
    """Return what the server says of itself and of every workspace; what it cannot say becomes a problem."""
    found: dict[str, Any] = {"answers": False, "version": None, "encoder": None}
    found |= {"workspaces": [], "errors": [], "problems": []}
    try:
        health = client.health()
    except ServerUnreachable:
        return found
    except ReverieError as error:
        return found | {"problems": [str(error)]}
    try:
        found |= {name: health[name] for name in ("version", "encoder", "uptime_s")} | {"answers": True}
        for item in client.workspaces()["items"]:
            queue = NO_QUEUE if item["problem"] else client.queue(item["id"])
            found["workspaces"].append(item | {"pending": queue["pending"], "dead": queue["dead"]})
            found["problems"] += [item["problem"]] if item["problem"] else []
        found["errors"] = client.errors(ERRORS_SHOWN, open_only=True)["items"]
    except ReverieError as error:
        found["problems"].append(str(error))
    return found


def _name_home(found: Mapping[str, Any]) -> str:
    return f"{found['home']}, encrypted" if found["encrypted"] else str(found["home"])


def _print_status(found: dict[str, Any]) -> None:
    for problem in found["problems"]:
        click.echo(f"problem  {plain(problem)}")
    if not found["processes"] and not found["answers"]:
        click.echo(f"nothing runs on {found['home']}; `reverie up` starts it")
        return
    answer = f"answers (version {found['version']})" if found["answers"] else "does not answer"
    here = f"{found['here']['workspace']}: {found['here']['detail']}"
    server = f"{found['url']} {answer}"
    switches = ", ".join(f"{name} {str(value).lower()}" for name, value in (found["here"]["switches"] or {}).items())
    pairs = [("server", server), ("encoder", found["encoder"]), ("home", _name_home(found)), ("here", here)]
    print_pairs([*pairs, ("switches", switches or None)])
    click.echo()
    table(
        ["process", "pid", "uptime", "children"],
        [[p["name"], p["pid"], format_duration(p["uptime_s"]), p["children"] or ""] for p in found["processes"]],
        right=["pid", "uptime", "children"],
    )
    if found["workspaces"]:
        click.echo()
        table(
            ["workspace", "memories", "pending", "dead", "encoder"],
            [
                [w["id"], w["memories"], sum(w["pending"].values()), sum(w["dead"].values()), describe_encoder(w)]
                for w in found["workspaces"]
            ],
            right=["memories", "pending", "dead"],
        )
    if found["errors"]:
        click.echo("\nlast errors")
        for error in found["errors"]:
            click.echo(f"  {error['at'][:19]}  {error['component']}: {plain(error['message'])}")


def describe_encoder(progress: Mapping[str, Any]) -> str:
    """Say which model answers, why it is not the usual one, and how far another has come."""
    says: str = progress["model"]
    if progress["next_model"]:
        says += f"; {progress['next_model']} has embedded {progress['embedded']}"
    return f"{says}; {progress['languages']} not in English" if progress["languages"] else says


@click.command(cls=Command)
@click.option("--print-url", is_flag=True, help="Print the link instead of opening a browser.")
@pass_state
def dashboard(state: State, *, print_url: bool) -> None:
    """Open the dashboard in the browser, by a link that works once within two minutes."""
    link = state.ask(lambda client: client.dashboard_link())
    if state.json:
        state.print_json(link)
    elif print_url or click.launch(link["url"]) != 0:
        click.echo(link["url"])
    else:
        click.echo("the dashboard opens in your browser")


POLL_S = 1.0
# What is shown after one look, and how many ids are remembered as shown.
PAGE = 50
MOST_AT_ONCE = 200
REMEMBERED = 1000


class Feed:
    """Know which memories were seen; each look returns the others, the oldest first."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        # Several, as the newest may be archived or purged between two looks.
        self._seen: deque[str] = deque(maxlen=REMEMBERED)

    def look(self, most: int = MOST_AT_ONCE) -> list[dict[str, Any]]:
        """Return what is new since the last look, at most so many."""
        new: list[dict[str, Any]] = []
        try:
            for memory in self._client.items("/v1/memories", max(most, PAGE), page=PAGE):
                if memory["id"] in self._seen:
                    break
                new.append(memory)
        except NotFound:
            # Nobody has written to this workspace yet.
            return []
        new.reverse()
        self._seen.extend(memory["id"] for memory in new)
        return new[-most:] if most else []


@click.command(cls=Command)
@click.option(
    "-n", "--lines", type=click.IntRange(0, MOST_AT_ONCE), default=10, show_default=True, help="How many old."
)
@click.option("--once", is_flag=True, help="Show these and return.")
@pass_state
def tail(state: State, lines: int, *, once: bool) -> None:
    """Show the newest memories, and each new one as it is written, until Ctrl-C; --json prints one a line."""
    with state.client() as client:
        feed = Feed(client)
        _print_memories(state, feed.look(lines))
        if not once:
            _follow(state, feed)


def _follow(state: State, feed: Feed) -> None:
    pause = threading.Event()
    away = False
    while not pause.wait(POLL_S):
        try:
            new = feed.look()
        except ServerUnreachable as error:
            # A server that is started again goes on where it was.
            if not away:
                click.echo(f"{plain(error)}; waiting for it", err=True)
            away = True
        else:
            away = False
            _print_memories(state, new)


def _print_memories(state: State, memories: list[dict[str, Any]]) -> None:
    for memory in memories:
        if state.json:
            click.echo(dump_json(memory))
        else:
            print_memory(memory)
