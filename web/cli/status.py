"""How it fares: processes, server, queues, last errors; and the way to the dashboard."""

from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import ServerUnreachable
from pipeline.times import format_duration
from web.cli.command import Command, State, pass_state
from web.cli.render import plain, print_pairs, table

if TYPE_CHECKING:
    from web.client import Client

ERRORS_SHOWN = 5


@click.command(cls=Command)
@pass_state
def status(state: State) -> None:
    """Show what runs, what waits and what went wrong last."""
    from web.cli.processes import list_running
    from web.client import Client, server_url

    found: dict[str, Any] = {
        "url": server_url(state.settings),
        "home": str(state.settings.paths.root),
        "processes": [
            {"name": p.name, "pid": p.pid, "uptime_s": round(p.uptime_s, 1), "children": p.children}
            for p in list_running(state.settings)
        ],
    }
    try:
        with Client.from_settings(state.settings) as client:
            found |= {"answers": True} | _ask_server(client)
    except ServerUnreachable:
        found |= {"answers": False, "version": None, "encoder": None, "workspaces": [], "errors": []}
    if state.json:
        state.print_json(found)
    else:
        _print(found)


def _ask_server(client: "Client") -> dict[str, Any]:
    health = client.health()
    workspaces = []
    for item in client.workspaces()["items"]:
        queue = client.queue(item["id"])
        workspaces.append(item | {"pending": queue["pending"], "dead": queue["dead"]})
    errors = client.errors(ERRORS_SHOWN)["items"]
    return {
        "version": health["version"],
        "encoder": health["encoder"],
        "uptime_s": health["uptime_s"],
        "workspaces": workspaces,
        "errors": errors,
    }


def _print(found: dict[str, Any]) -> None:
    if not found["processes"] and not found["answers"]:
        click.echo(f"nothing runs on {found['home']}; `reverie up` starts it")
        return
    answer = f"answers (version {found['version']})" if found["answers"] else "does not answer"
    print_pairs([("server", f"{found['url']} {answer}"), ("encoder", found["encoder"]), ("home", found["home"])])
    click.echo()
    table(
        ["process", "pid", "uptime", "children"],
        [[p["name"], p["pid"], format_duration(p["uptime_s"]), p["children"] or ""] for p in found["processes"]],
        right=["pid", "uptime", "children"],
    )
    if found["workspaces"]:
        click.echo()
        table(
            ["workspace", "memories", "pending", "dead"],
            [
                [w["id"], w["memories"], sum(w["pending"].values()), sum(w["dead"].values())]
                for w in found["workspaces"]
            ],
            right=["memories", "pending", "dead"],
        )
    if found["errors"]:
        click.echo("\nlast errors")
        for error in found["errors"]:
            click.echo(f"  {error['at'][:19]}  {error['component']}: {plain(error['message'])}")


@click.command(cls=Command)
@click.option("--print-url", is_flag=True, help="Print the link instead of opening a browser.")
@pass_state
def dashboard(state: State, *, print_url: bool) -> None:
    """Open the dashboard in the browser, by a link that works once within two minutes."""
    with state.client() as client:
        link = client.dashboard_link()
    if state.json:
        state.print_json(link)
    elif print_url or click.launch(link["url"]) != 0:
        click.echo(link["url"])
    else:
        click.echo("the dashboard opens in your browser")
