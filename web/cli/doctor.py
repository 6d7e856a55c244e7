"""Whether everything is as it should be, what is not, and what helps."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from pipeline.errors import ExtraMissing, ReverieError
from pipeline.records import CheckResult
from web.cli.command import Command, State, explain_failed_access, pass_state
from web.cli.render import plain

# A check by its name, under which a failure of the check itself is reported.
Check = tuple[str, Callable[[], Iterable[CheckResult]]]

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(cls=Command)
@click.option("--fix", is_flag=True, help="Repair what can be repaired without a choice of yours.")
@pass_state
def doctor(state: State, *, fix: bool) -> int:
    """Check installation, settings, home, server, model, and every workspace; exit with 1 if a check fails."""
    results: list[dict[str, Any]] = []
    for check in _list_checks(state):
        for result, done in _run_check(check, fix=fix):
            results.append(
                {
                    "check": result.check,
                    "state": result.state,
                    "says": result.says,
                    "hint": None if result.state == "ok" else result.hint,
                    "fixable": result.repair is not None,
                    "done": done,
                }
            )
            if not state.json:
                _print(results[-1])
    failed = sum(one["state"] == "fail" for one in results)
    warned = sum(one["state"] == "warn" for one in results)
    if state.json:
        state.print_json({"ok": not failed, "failed": failed, "warned": warned, "checks": results})
    else:
        fixable = not fix and any(one["fixable"] for one in results)
        more = "; `reverie doctor --fix` repairs what it can" if fixable else ""
        click.echo(f"{len(results) - warned - failed} ok, {warned} warn, {failed} fail{more}", err=True)
    return 1 if failed else 0


def _list_checks(state: State) -> Iterator[Check]:
    """Yield the checks in an order in which each may rely on those before."""
    from config.settings import HomeUnknown, SettingsError
    from web.cli import checks

    yield "installation", checks.check_installation
    yield "extras", checks.check_extras
    yield "torch", checks.check_torch
    # Not earlier: what is missing of the installation could not be reported.
    from pipeline.services import diagnostics

    try:
        probe = checks.ServerProbe(state.settings)
    except HomeUnknown:
        raise
    except SettingsError as error:
        says, hint = str(error), "correct it; `reverie config` lists what there is"
        if isinstance(error.__cause__, PermissionError):
            says, _, hint = str(explain_failed_access(error.__cause__)).partition("; ")
        yield "settings", lambda: [CheckResult("settings", "fail", says, hint)]
        return
    context = probe.context()
    file = context.paths.config
    says = str(file) if file.exists() else "all at their defaults, or from the environment"
    yield "settings", lambda: [CheckResult("settings", "ok", says)]
    yield "home", lambda: diagnostics.check_home(context)
    yield "project file", lambda: diagnostics.check_project_file(Path())
    yield "permissions", lambda: diagnostics.check_permissions(context)
    yield "encryption", lambda: diagnostics.check_encryption(context)
    yield "server", lambda: checks.check_server(probe)
    yield "token", lambda: checks.check_token(probe)
    yield "processes", lambda: checks.check_processes(probe)
    yield "model", lambda: diagnostics.check_model(context)
    yield "hosts", lambda: checks.check_hosts(context)
    yield "teams", lambda: checks.check_teams(context)
    yield "store", lambda: diagnostics.check_store(context)
    # One that is named is looked at alone.
    for name in diagnostics.list_checked_workspaces(context):
        if state.named_workspace in (None, name):
            yield "workspace", partial(diagnostics.check_workspace, context, name)


def _run_check(check: Check, *, fix: bool) -> Iterator[tuple[CheckResult, str | None]]:
    """Yield what a check finds and what was done about it; after a repair, what it finds then."""
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
    """Return what a check finds; that it could not be made is a result too, and the other checks go on."""
    name, run = check
    results: list[CheckResult] = []
    try:
        results.extend(run())
    except (ReverieError, OSError) as error:
        more = "`reverie errors` and `reverie status` may tell more"
        # Its message says what to do.
        hint = "" if isinstance(error, ExtraMissing) else more
        results.append(CheckResult(name, "fail", str(error), hint))
    return results


def _repair(repair: Callable[[], str]) -> str:
    try:
        return repair()
    except (ReverieError, OSError) as error:
        return f"could not be repaired: {error}"


def _print(one: dict[str, Any]) -> None:
    state = click.style(f"{one['state']:4}", fg=COLOURS[one["state"]])
    click.echo(f"{state}  {one['check']}: {_one_line(one['says'])}")
    if one["done"]:
        click.echo(f"        done: {_one_line(one['done'])}")
    if one["hint"]:
        click.echo(f"        {_one_line(one['hint'])}")


def _one_line(text: str) -> str:
    return " ".join(plain(text).split())
