"""Whether everything is as it should be, what is not, and what helps."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import ReverieError
from web.cli.command import Command, State, pass_state
from web.cli.render import plain

if TYPE_CHECKING:
    from web.cli.checks import Finding, Patient

Look = Callable[[], Iterable["Finding"]]
COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(cls=Command)
@click.option("--fix", is_flag=True, help="Repair what can be repaired without a choice of yours.")
@pass_state
def doctor(state: State, *, fix: bool) -> int:
    """Check installation, settings, home, server, model, and every workspace; exit with 1 if a check fails."""
    told: list[dict[str, Any]] = []
    for look in _looks(state):
        for finding, done in _treated(look, fix=fix):
            told.append(
                {
                    "check": finding.check,
                    "state": finding.state,
                    "says": finding.says,
                    "hint": None if finding.state == "ok" else finding.hint,
                    "fixable": finding.mend is not None,
                    "done": done,
                }
            )
            if not state.json:
                _print(told[-1])
    failed = sum(one["state"] == "fail" for one in told)
    warned = sum(one["state"] == "warn" for one in told)
    if state.json:
        state.print_json({"ok": not failed, "failed": failed, "warned": warned, "checks": told})
    else:
        more = "" if fix or not any(one["fixable"] for one in told) else "; `reverie doctor --fix` repairs what it can"
        click.echo(f"{len(told) - warned - failed} ok, {warned} warn, {failed} fail{more}", err=True)
    return 1 if failed else 0


def _looks(state: State) -> Iterator[Look]:
    """Yield the checks in an order in which each may rely on those before."""
    from config.settings import SettingsError
    from web.cli import checks

    yield checks.installation
    try:
        patient = checks.Patient(state.settings)
    except SettingsError as error:
        yield partial(_unreadable, str(error))
        return
    yield partial(_readable, patient)
    for check in (
        checks.home,
        checks.permissions,
        checks.server,
        checks.token,
        checks.processes,
        checks.model,
        checks.hosts,
    ):
        yield partial(check, patient)
    # One that is named is looked at alone.
    names = patient.paths.workspace_ids()
    if state.named_workspace is not None:
        names = [name for name in names if name == state.named_workspace]
    from web.cli import ward

    for name in names:
        yield partial(ward.workspace, patient, name)


def _unreadable(problem: str) -> Iterator["Finding"]:
    from web.cli.checks import Finding

    yield Finding("settings", "fail", problem, "correct it; `reverie config` lists what there is")


def _readable(patient: "Patient") -> Iterator["Finding"]:
    from web.cli.checks import Finding

    file = patient.paths.config
    yield Finding("settings", "ok", str(file) if file.exists() else "all at their defaults, or from the environment")


def _treated(look: Look, *, fix: bool) -> Iterator[tuple["Finding", str | None]]:
    """Yield what a check finds and what was done about it; after a repair, what it finds then."""
    findings = _findings(look)
    done: dict[str, list[str]] = {}
    if fix:
        for finding in findings:
            if finding.state != "ok" and finding.mend is not None:
                done.setdefault(finding.check, []).append(_mended(finding.mend))
        if done:
            findings = _findings(look)
    for finding in findings:
        yield finding, "; ".join(done.pop(finding.check, ())) or None


def _findings(look: Look) -> list["Finding"]:
    """Return what a check finds; that it could not be made is a finding too, and the other checks go on."""
    from web.cli.checks import Finding

    found: list[Finding] = []
    try:
        found.extend(look())
    except (ReverieError, OSError) as error:
        name = look.func.__name__ if isinstance(look, partial) else getattr(look, "__name__", "check")
        found.append(Finding(name, "fail", str(error), "`reverie errors` and `reverie status` may tell more"))
    return found


def _mended(mend: Callable[[], str]) -> str:
    try:
        return mend()
    except (ReverieError, OSError) as error:
        return f"could not be repaired: {error}"


def _print(one: dict[str, Any]) -> None:
    state = click.style(f"{one['state']:4}", fg=COLOURS[one["state"]])
    click.echo(f"{state}  {one['check']}: {_line(one['says'])}")
    if one["done"]:
        click.echo(f"        done: {_line(one['done'])}")
    if one["hint"]:
        click.echo(f"        {_line(one['hint'])}")


def _line(text: str) -> str:
    return " ".join(plain(text).split())
