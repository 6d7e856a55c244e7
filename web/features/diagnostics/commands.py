"""Command that checks the installation and the data directory, and repairs problems."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from config.settings import UnknownDataDirectory
from config.toml_files import SettingsError
from pipeline.features.diagnostics import usecases as diagnostics
from pipeline.kernel.errors import ExtraMissing, ReverieError
from pipeline.kernel.records import CheckResult
from web.cli.command import Command, pass_state
from web.cli.local_store import refuse_read_only
from web.cli.output import explain_file_error
from web.cli.render import one_line, pick, show_progress
from web.cli.state import State
from web.features.diagnostics import checks
from web.features.diagnostics.probe import Check, list_probes
from web.features.diagnostics.report import render_report

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(cls=Command)
@click.option("--fix", is_flag=True, help="Repair the problems that need no decision from you.")
@click.option("--probe", is_flag=True, help="Also run the hooks and MCP servers of connected agents; store no memory.")
@click.option("--deep", is_flag=True, help="Also read every byte of stores, indexes and snapshots. Takes minutes.")
@click.option("--report", is_flag=True, help="Print a report for an issue, without memories, tokens or user names.")
@pass_state
def doctor(state: State, *, fix: bool, probe: bool, deep: bool, report: bool) -> int:
    """Check the installation, settings, data directory, server, model and workspaces. Exit with 1 if a check fails."""
    if fix:
        refuse_read_only()
    results: list[dict[str, Any]] = []
    for check in _list_checks(state, probes=probe, is_deep=deep):
        for outcome, done in _run_check(check, fix=fix):
            hint = None if outcome.state == "ok" else outcome.hint
            remedy = {"hint": hint, "fixable": outcome.repair is not None, "done": done}
            results.append(pick(outcome, "check", "state", "says") | remedy)
            if not state.json and not report:
                _print(results[-1])
    failed = sum(result["state"] == "fail" for result in results)
    warned = sum(result["state"] == "warn" for result in results)
    fixable = not fix and any(result["fixable"] for result in results)
    if report:
        text = render_report(state, results)
        state.show({"report": text}, text)
    else:
        more = "; `reverie doctor --fix` repairs some of them" if fixable else ""
        counts = f"{len(results) - warned - failed} ok, {warned} warn, {failed} fail{more}"
        answer = {"ok": not failed, "failed": failed, "warned": warned, "checks": results}
        state.show(answer, lambda _: state.note(counts))
    return 1 if failed else 0


def _list_checks(state: State, *, probes: bool, is_deep: bool) -> Iterator[Check]:
    """Yield the checks; each may rely on the ones before it."""
    yield from (
        ("installation", checks.check_installation),
        ("extras", checks.check_extras),
        ("torch", checks.check_torch),
    )
    try:
        server = checks.ServerProbe(state.settings)
    except UnknownDataDirectory:
        raise
    except SettingsError as error:
        says, hint = str(error), "correct the file; `reverie config` lists all settings"
        if isinstance(error.__cause__, PermissionError):
            says, _, hint = str(explain_file_error(error.__cause__)).partition("; ")
        yield "settings", lambda: [CheckResult("settings", "fail", says, hint)]
        return
    context = server.context()
    yield from (
        ("settings", partial(checks.check_settings, context)),
        ("home", partial(diagnostics.check_home, context)),
        ("project file", partial(diagnostics.check_project_file, Path())),
        ("project memory", partial(checks.check_project_memory, server, Path())),
        ("permissions", partial(diagnostics.check_permissions, context)),
        ("encryption", partial(diagnostics.check_encryption, context)),
        ("server", partial(checks.check_server, server)),
        ("token", partial(checks.check_token, server)),
        ("processes", partial(checks.check_processes, server)),
        ("model", partial(diagnostics.check_model, context)),
        ("hosts", partial(checks.check_hosts, context)),
        ("recording", partial(checks.check_recording, context)),
        ("teams", partial(checks.check_teams, context)),
        ("store", partial(diagnostics.check_store, context)),
    )
    # With --workspace, only that workspace is checked.
    for name in diagnostics.list_checked_workspaces(context):
        if state.named_workspace in (None, name):
            yield "workspace", partial(_check_workspace, state, context, name, is_deep=is_deep)
    if probes:
        yield from list_probes(state, server)


def _check_workspace(
    state: State, context: diagnostics.CheckContext, name: str, *, is_deep: bool
) -> Iterator[CheckResult]:
    yield from diagnostics.check_workspace(context, name)
    if is_deep:
        # Imported here because it loads the indexes' libraries.
        from pipeline.features.diagnostics.deep_check import check_deeply

        with show_progress(f"reading {name}", quiet=state.json or not sys.stderr.isatty()) as progress:
            yield from check_deeply(state.settings, name, progress)


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
    click.echo(f"{state}  {result['check']}: {one_line(result['says'], None)}")
    for note in (f"done: {result['done']}" if result["done"] else None, result["hint"]):
        if note:
            click.echo(f"        {one_line(note, None)}")
