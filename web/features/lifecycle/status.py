"""Commands that show the processes, the server, queues and recent errors, and open the dashboard."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from config.paths import list_problems
from config.settings import SWITCHES, Settings
from pipeline.features.workspaces.config import read_switches
from pipeline.features.workspaces.usecases import describe_earlier, list_earlier
from pipeline.kernel.errors import ReverieError, ServerUnreachable
from pipeline.kernel.times import format_duration, local_second, utc_text_at
from web.cli.command import Command, pass_state
from web.cli.output import BROKEN_HOME
from web.cli.render import Fields, count_of, describe_encoder, fill, plain, print_fields, print_table
from web.cli.state import State, choose_for_folder

if TYPE_CHECKING:
    from web.http.client import Client

ERRORS_SHOWN = 5
# The queue of a workspace that cannot be read.
NO_QUEUE: dict[str, Any] = {"pending": {}, "dead": {}}


@click.command(cls=Command)
@pass_state
def status(state: State) -> int:
    """Show the running processes, pending work and recent errors."""
    from web.http.client import Client
    from web.stack.processes import list_running

    choice = choose_for_folder(Path(), state.settings, state.named_workspace)
    rule = None if choice.identity is None else choice.identity.rule
    report: dict[str, Any] = {
        "url": state.settings.url,
        "home": str(state.settings.paths.root),
        "encrypted": state.settings.paths.store_key.exists(),
        "here": {"workspace": choice.workspace, "rule": rule, "detail": choice.detail, "switches": None},
        "spool": _describe_spool(state.settings),
        "hosts": _describe_hosts(state.settings),
        "processes": [
            {"name": p.name, "pid": p.pid, "uptime_s": round(p.uptime_s, 1), "children": p.children}
            for p in list_running(state.settings)
        ],
    }
    with Client.from_settings(state.settings) as client:
        report |= _ask_server(client, state.settings)
        report["here"]["switches"] = _find_switches(state, client, report)
    counts = {item["id"]: item["memories"] for item in report["workspaces"]}
    report["here"]["earlier"] = [
        {"workspace": name, "memories": counts.get(name)}
        for name in list_earlier(state.settings, choice)
        if counts.get(name) != 0
    ]
    report["problems"] = list_problems(state.settings.paths.root) + report["problems"]
    state.show(report, _print_status)
    return BROKEN_HOME if report["problems"] else 0


def _describe_spool(settings: Settings) -> dict[str, Any]:
    """Describe the requests that wait for the server, and those that it refused."""
    from web.hooks.spool.files import describe_spool

    spool = describe_spool(str(settings.paths.root))
    oldest = None if spool.oldest_ns is None else utc_text_at(spool.oldest_ns / 1e9)
    return {"waiting": spool.files, "bytes": spool.bytes, "oldest": oldest, "refused": spool.refused}


def _describe_hosts(settings: Settings) -> list[dict[str, Any]]:
    """Describe when each connected host was last seen, and why it is not recorded, if it is not."""
    from pipeline.features.diagnostics.recording_check import describe_problem
    from web.http.recording import check_hosts

    return [
        {
            "name": found.host.name,
            "prompt": _format_seconds(found.prompt_at),
            "hook": _format_seconds(found.hook_at),
            "turn": _format_seconds(found.turn_at),
            "shown": _format_seconds(found.shown_at),
            "problem": None if found.problem is None else describe_problem(found),
            "remedy": found.remedy,
        }
        for found in check_hosts(settings.paths)
    ]


def _format_seconds(at: float | None) -> str | None:
    return None if at is None else utc_text_at(at)


def _find_switches(state: State, client: "Client", report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the switches of this workspace on the server, or after a start; None if the server reports none."""
    workspace = report["here"]["workspace"]
    if not report["answers"]:
        return read_switches(state.settings, workspace)
    try:
        switches = client.switches(workspace)
    except ReverieError as error:
        if str(error) not in report["problems"]:
            report["problems"].append(str(error))
        return None
    return {name: switches[name] for name in SWITCHES}


def _ask_server(client: "Client", settings: Settings) -> dict[str, Any]:
    """Return the server's report on itself and every workspace; errors are listed as problems."""
    from pipeline.features.indexing.usecases import describe_waiting_turns

    report: dict[str, Any] = {"answers": False, "version": None, "encoder": None}
    report |= {"workspaces": [], "sessions": None, "errors": [], "problems": []}
    try:
        health = client.health()
    except ServerUnreachable:
        return report
    except ReverieError as error:
        return report | {"problems": [str(error)]}
    try:
        report |= {name: health[name] for name in ("version", "encoder", "uptime_s")} | {"answers": True}
        for item in client.workspaces()["items"]:
            queue = NO_QUEUE if item["problem"] else client.queue(item["id"])
            waiting = describe_waiting_turns(settings, queue["pending"].get("capture", 0))
            report["workspaces"].append(item | {name: queue[name] for name in NO_QUEUE} | {"waiting": waiting})
            report["problems"] += [item["problem"]] if item["problem"] else []
        report["sessions"] = client.request("GET", "/v1/sessions/import")
        report["errors"] = client.errors(ERRORS_SHOWN, open_only=True)["items"]
    except ReverieError as error:
        report["problems"].append(str(error))
    return report


def _print_status(report: dict[str, Any]) -> None:
    for problem in [
        *report["problems"],
        *(f"{host['problem']}; {host['remedy']}" for host in report["hosts"] if host["problem"]),
    ]:
        click.echo(f"problem  {plain(problem)}")
    for earlier in report["here"]["earlier"]:
        click.echo(describe_earlier(**earlier, current=report["here"]["workspace"]))
    if not report["processes"] and not report["answers"]:
        print_fields(report, {"spool": _describe_waiting})
        click.echo(f"nothing runs on {report['home']}; start Reverie with `reverie up`")
        return
    print_fields(report, STATUS)
    for items, columns in (
        (report["processes"], PROCESS),
        (report["workspaces"], WORKSPACE),
        (report["errors"], ERROR),
    ):
        if items:
            click.echo()
            print_table(items, columns)
    for workspace in report["workspaces"]:
        if workspace["waiting"]:
            click.echo(f"{workspace['id']}: {plain(workspace['waiting'])}")
    if report["sessions"] is not None and report["sessions"]["text"]:
        click.echo(f"\n{plain(report['sessions']['text'])}")


def _describe_waiting(report: Mapping[str, Any]) -> str:
    spool = report["spool"]
    parts = [f"{spool['refused']} refused"] if spool["refused"] else []
    if spool["waiting"]:
        parts.insert(0, f"{count_of(spool['waiting'], 'request')}, the oldest from {local_second(spool['oldest'])}")
    return "; ".join(parts)


def _list_switches(report: Mapping[str, Any]) -> str:
    switches = report["here"]["switches"] or {}
    return ", ".join(f"{name} {str(value).lower()}" for name, value in switches.items())


STATUS: Fields = {
    "spool": _describe_waiting,
    "server": lambda report: (
        f"{report['url']} answers (version {report['version']})"
        if report["answers"]
        else f"{report['url']} does not answer"
    ),
    "encoder": "encoder",
    "data": lambda report: f"{report['home']}{', encrypted' if report['encrypted'] else ''}",
    "here": lambda report: fill("{workspace}: {detail}", report["here"]),
    "switches": _list_switches,
}
PROCESS: Fields = {
    "process": "name",
    "pid": "pid",
    "uptime": lambda process: format_duration(process["uptime_s"]),
    "children": lambda process: process["children"] or "",
}
WORKSPACE: Fields = {
    "workspace": "id",
    "memories": "memories",
    "pending": lambda workspace: sum(workspace["pending"].values()),
    "failed": lambda workspace: sum(workspace["dead"].values()),
    "encoder": describe_encoder,
}
ERROR: Fields = {
    "recent errors": lambda error: local_second(error["at"]),
    "": lambda error: fill("{component}: {message}", error),
}


@click.command(cls=Command)
@click.option("--print-url", is_flag=True, help="Print the link without opening a browser.")
@pass_state
def dashboard(state: State, *, print_url: bool) -> None:
    """Open the dashboard in your browser with a link that works once and expires after two minutes."""
    link = state.ask(lambda client: client.request("POST", "/v1/dashboard/links"))
    is_opened = not (state.json or print_url) and click.launch(link["url"]) == 0
    state.show(link, "opening the dashboard in your browser" if is_opened else link["url"])
