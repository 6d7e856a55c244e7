"""Command that checks the installation and the data directory, and repairs problems."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from config.settings import UnknownDataDirectory
from config.toml_files import SettingsError
from pipeline.errors import ExtraMissing, ReverieError
from pipeline.records import CheckResult
from web.cli.command import Command, pass_state
from web.cli.errors import explain_file_error
from web.cli.local_store import refuse_read_only
from web.cli.render import plain
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.services.diagnostics import CheckContext
    from web.cli.doctor_checks import ServerProbe

# A check and its name, which is also used to report an error of the check itself.
Check = tuple[str, Callable[[], Iterable[CheckResult]]]

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(cls=Command)
@click.option("--fix", is_flag=True, help="Repair the problems that need no decision from you.")
@click.option("--probe", is_flag=True, help="Also run the hooks and MCP servers of connected agents; store no memory.")
@click.option("--report", is_flag=True, help="Print a report for an issue, without memories, tokens or user names.")
@pass_state
def doctor(state: State, *, fix: bool, probe: bool, report: bool) -> int:
    """Check the installation, settings, data directory, server, model and workspaces. Exit with 1 if a check fails."""
    if fix:
        refuse_read_only()
    results: list[dict[str, Any]] = []
    for check in _list_checks(state, probes=probe):
        for outcome, done in _run_check(check, fix=fix):
            results.append(
                {
                    "check": outcome.check,
                    "state": outcome.state,
                    "says": outcome.says,
                    "hint": None if outcome.state == "ok" else outcome.hint,
                    "fixable": outcome.repair is not None,
                    "done": done,
                }
            )
            if not state.json and not report:
                _print(results[-1])
    failed = sum(result["state"] == "fail" for result in results)
    if report:
        from web.cli.doctor_report import render_report

        text = render_report(state, results)
        state.show({"report": text}, text)
    else:
        _summarize(state, results, failed, fix=fix)
    return 1 if failed else 0


def _summarize(state: State, results: Sequence[Mapping[str, Any]], failed: int, *, fix: bool) -> None:
    warned = sum(result["state"] == "warn" for result in results)
    if state.json:
        state.print_json({"ok": not failed, "failed": failed, "warned": warned, "checks": results})
        return
    fixable = not fix and any(result["fixable"] for result in results)
    more = "; `reverie doctor --fix` repairs some of them" if fixable else ""
    click.echo(f"{len(results) - warned - failed} ok, {warned} warn, {failed} fail{more}", err=True)


def _list_checks(state: State, *, probes: bool) -> Iterator[Check]:
    """Yield the checks; each may rely on the ones before it."""
    from web.cli import doctor_checks as checks

    yield "installation", checks.check_installation
    yield "extras", checks.check_extras
    yield "torch", checks.check_torch
    try:
        probe = checks.ServerProbe(state.settings)
    except UnknownDataDirectory:
        raise
    except SettingsError as error:
        says, hint = str(error), "correct the file; `reverie config` lists all settings"
        if isinstance(error.__cause__, PermissionError):
            says, _, hint = str(explain_file_error(error.__cause__)).partition("; ")
        yield "settings", lambda: [CheckResult("settings", "fail", says, hint)]
        return
    context = probe.context()
    file = context.paths.config
    where = str(file) if file.exists() else "all at their defaults, or from the environment"
    yield "settings", lambda: [CheckResult("settings", "ok", where)]
    yield from _list_checks_of(state, context, probe)
    if probes:
        from web.cli.doctor_probe import list_probes

        yield from list_probes(state, probe)


def _list_checks_of(state: State, context: "CheckContext", probe: "ServerProbe") -> Iterator[Check]:
    """Yield the checks of a data directory whose settings are valid."""
    from pipeline.services import diagnostics
    from web.cli import doctor_checks as checks

    yield "home", lambda: diagnostics.check_home(context)
    yield "project file", lambda: diagnostics.check_project_file(Path())
    yield "project memory", lambda: checks.check_project_memory(probe, Path())
    yield "permissions", lambda: diagnostics.check_permissions(context)
    yield "encryption", lambda: diagnostics.check_encryption(context)
    yield "server", lambda: checks.check_server(probe)
    yield "token", lambda: checks.check_token(probe)
    yield "processes", lambda: checks.check_processes(probe)
    yield "model", lambda: diagnostics.check_model(context)
    yield "hosts", lambda: checks.check_hosts(context)
    yield "recording", lambda: checks.check_recording(context)
    yield "teams", lambda: checks.check_teams(context)
    yield "store", lambda: diagnostics.check_store(context)
    # With --workspace, only that workspace is checked.
    for name in diagnostics.list_checked_workspaces(context):
        if state.named_workspace in (None, name):
            yield "workspace", partial(diagnostics.check_workspace, context, name)


def _run_check(check: Check, *, fix: bool) -> Iterator[tuple[CheckResult, str | None]]:
    """Yield the results of a check, after a repair the new results, each with what was repaired."""
    results = _collect_results(check)
    done: dict[str, list[str]] = {}
    if fix:
        for result in results:
            if result.state != "ok" and result.repair is not None:
                done.setdefault(result.check, []).append(_repair(result.repair))
        if done:
            results = _collect_results(check)
    for result in results:
        yield result, "; ".join(done.pop(result.check, ())) or None


def _collect_results(check: Check) -> list[CheckResult]:
    """Return the results of a check; an error of the check itself becomes a result."""
    name, run = check
    results: list[CheckResult] = []
    try:
        results.extend(run())
    except (ReverieError, OSError) as error:
        more = "see `reverie logs errors` and `reverie status`"
        # Its message says what to do.
        hint = "" if isinstance(error, ExtraMissing) else more
        results.append(CheckResult(name, "fail", str(error), hint))
    return results


def _repair(repair: Callable[[], str]) -> str:
    try:
        return repair()
    except (ReverieError, OSError) as error:
        return f"not repaired: {error}"


def _print(result: dict[str, Any]) -> None:
    state = click.style(f"{result['state']:4}", fg=COLOURS[result["state"]])
    click.echo(f"{state}  {result['check']}: {_one_line(result['says'])}")
    if result["done"]:
        click.echo(f"        done: {_one_line(result['done'])}")
    if result["hint"]:
        click.echo(f"        {_one_line(result['hint'])}")


def _one_line(text: str) -> str:
    return " ".join(plain(text).split())
