"""Commands that show the processes, the server, queues and recent errors, and open the dashboard."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from config.data_directory_checks import list_problems
from config.settings import SWITCHES, Settings
from pipeline.errors import ReverieError, ServerUnreachable
from pipeline.services.workspace_config import read_switches
from pipeline.services.workspaces import describe_earlier, list_earlier
from pipeline.times import format_duration, local_second, utc_text
from web.cli.command import Command, pass_state
from web.cli.errors import BROKEN_HOME
from web.cli.render import count_of, describe_encoder, plain, print_pairs, table
from web.cli.state import State, choose_for_folder

if TYPE_CHECKING:
    from web.client import Client

ERRORS_SHOWN = 5
# The queue of a workspace that cannot be read.
NO_QUEUE: dict[str, Any] = {"pending": {}, "dead": {}}


@click.command(cls=Command)
@pass_state
def status(state: State) -> int:
    """Show the running processes, pending work and recent errors."""
    from web.client import Client
    from web.stack.processes import list_running

    report: dict[str, Any] = {
        "url": state.settings.url,
        "home": str(state.settings.paths.root),
        "encrypted": state.settings.paths.store_key.exists(),
        "here": _describe_here(state),
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
    report["here"]["earlier"] = _describe_earlier(state, report["workspaces"])
    report["problems"] = list_problems(state.settings.paths.root) + report["problems"]
    state.show(report, lambda: _print_status(report))
    return BROKEN_HOME if report["problems"] else 0


def _describe_here(state: State) -> dict[str, Any]:
    """Describe which workspace this folder uses, and why."""
    choice = choose_for_folder(Path(), state.settings, state.named_workspace)
    rule = None if choice.identity is None else choice.identity.rule
    return {"workspace": choice.workspace, "rule": rule, "detail": choice.detail, "switches": None}


def _describe_earlier(state: State, workspaces: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Describe the other workspaces that may contain earlier memories of this folder's project."""
    choice = choose_for_folder(Path(), state.settings, state.named_workspace)
    counts = {item["id"]: item["memories"] for item in workspaces}
    names = list_earlier(state.settings, choice)
    return [{"workspace": name, "memories": counts.get(name)} for name in names if counts.get(name) != 0]


def _describe_spool(settings: Settings) -> dict[str, Any]:
    """Describe the requests that wait for the server, and those that it refused."""
    from web.spool.files import describe_spool

    spool = describe_spool(str(settings.paths.root))
    oldest = None if spool.oldest_ns is None else utc_text(datetime.fromtimestamp(spool.oldest_ns / 1e9, UTC))
    return {"waiting": spool.files, "bytes": spool.bytes, "oldest": oldest, "refused": spool.refused}


def _describe_hosts(settings: Settings) -> list[dict[str, Any]]:
    """Describe when each connected host was last seen, and why it is not recorded, if it is not."""
    from pipeline.services.recording_check import describe_problem
    from web.recording import check_hosts

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
    return None if at is None else utc_text(datetime.fromtimestamp(at, UTC))


def _print_problems(report: Mapping[str, Any]) -> None:
    for problem in report["problems"]:
        click.echo(f"problem  {plain(problem)}")
    for host in report["hosts"]:
        if host["problem"] is not None:
            click.echo(f"problem  {host['problem']}; {host['remedy']}")
    for earlier in report["here"]["earlier"]:
        click.echo(describe_earlier(**earlier, current=report["here"]["workspace"]))


def _print_spool(spool: Mapping[str, Any]) -> None:
    parts = []
    if spool["waiting"]:
        parts.append(
            f"{count_of(spool['waiting'], 'request', 'requests')}, the oldest from {local_second(spool['oldest'])}"
        )
    if spool["refused"]:
        parts.append(f"{spool['refused']} refused")
    if parts:
        click.echo(f"spool    {'; '.join(parts)}")


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
    from pipeline.services.encoder import describe_waiting_turns

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
    _print_problems(report)
    _print_spool(report["spool"])
    if not report["processes"] and not report["answers"]:
        click.echo(f"nothing runs on {report['home']}; start Reverie with `reverie up`")
        return
    answer = f"answers (version {report['version']})" if report["answers"] else "does not answer"
    here = f"{report['here']['workspace']}: {report['here']['detail']}"
    switches = ", ".join(f"{name} {str(value).lower()}" for name, value in (report["here"]["switches"] or {}).items())
    pairs = [
        ("server", f"{report['url']} {answer}"),
        ("encoder", report["encoder"]),
        ("data", f"{report['home']}{', encrypted' if report['encrypted'] else ''}"),
        ("here", here),
    ]
    print_pairs([*pairs, ("switches", switches or None)])
    click.echo()
    table(
        ["process", "pid", "uptime", "children"],
        [[p["name"], p["pid"], format_duration(p["uptime_s"]), p["children"] or ""] for p in report["processes"]],
        right=["pid", "uptime", "children"],
    )
    if report["workspaces"]:
        click.echo()
        table(
            ["workspace", "memories", "pending", "failed", "encoder"],
            [
                [w["id"], w["memories"], sum(w["pending"].values()), sum(w["dead"].values()), describe_encoder(w)]
                for w in report["workspaces"]
            ],
            right=["memories", "pending", "failed"],
        )
    _print_waiting_turns(report)
    if report["sessions"] is not None and report["sessions"]["text"]:
        click.echo(f"\n{plain(report['sessions']['text'])}")
    if report["errors"]:
        click.echo("\nrecent errors")
        for error in report["errors"]:
            click.echo(f"  {local_second(error['at'])}  {error['component']}: {plain(error['message'])}")


def _print_waiting_turns(report: Mapping[str, Any]) -> None:
    for workspace in report["workspaces"]:
        if workspace["waiting"]:
            click.echo(f"{workspace['id']}: {plain(workspace['waiting'])}")


@click.command(cls=Command)
@click.option("--print-url", is_flag=True, help="Print the link without opening a browser.")
@pass_state
def dashboard(state: State, *, print_url: bool) -> None:
    """Open the dashboard in your browser with a link that works once and expires after two minutes."""
    link = state.ask(lambda client: client.request("POST", "/v1/dashboard/links"))
    if state.json:
        state.print_json(link)
    elif print_url or click.launch(link["url"]) != 0:
        click.echo(link["url"])
    else:
        click.echo("opening the dashboard in your browser")
