"""Command that checks the installation and the data directory, and repairs problems."""

import getpass
import platform
import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from config.data_directory import find_data_directory
from config.paths import PERSONAL_WORKSPACE
from config.settings import SETTINGS, SettingOrigin, UnknownDataDirectory, environment_with
from config.toml_files import SettingsError
from pipeline.features.diagnostics import usecases as diagnostics
from pipeline.kernel.errors import ExtraMissing, ReverieError
from pipeline.kernel.records import CheckResult
from pipeline.kernel.times import utc_text
from pipeline.text.redaction import redact
from web.cli.command import Command, pass_state
from web.cli.local_store import refuse_read_only
from web.cli.output import explain_file_error
from web.cli.render import one_line, pick, show_progress
from web.cli.state import State
from web.features.diagnostics import checks
from web.features.diagnostics.probe import Check, list_probes

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


ERRORS_SHOWN = 10
RESULT_WIDTH = 300
# The texts of these checks contain nothing that a user wrote. Of any other check only the state is shown.
SHOWN = frozenset(
    {
        *("python", "packages", "extras", "torch", "settings", "home", "disk", "permissions", "encryption", "server"),
        *("versions", "hooks", "host", "token", "processes", "model", "reranker", "hosts", "recording"),
        *("hook probe", "MCP probe", "queue", "indexes", "languages", "snapshots"),
    }
)
# The texts of these checks are shown up to a sign. The rest has the user's names, and messages that may quote memories.
SHOWN_TO = {"jobs": ":", "errors": ","}
# Names that every installation has.
COMMON_WORKSPACES = frozenset({SETTINGS["workspace"].default, PERSONAL_WORKSPACE})
_URL = re.compile(r"\b([a-z][a-z0-9+]*://)(?!(?:127\.0\.0\.1|localhost|\[::1\])(?:[:/\s]|$))[^\s,;)]+")
# A path outside of the data directory names clients and projects; so does a part of one after a space.
_PATH = re.compile(r"(?<![\w:/\\])(?:~|[A-Za-z]:)?[/\\][^\s,;)'\"`]*")
_PART = re.compile(r"(?<![^\s(,'\"`])(?!DATA/|PATH\b|[a-z][a-z0-9+]*://)[^\s,;)'\"`]*[/\\][^\s,;)'\"`]*")
_OF_WORKSPACE = re.compile(r"\bDATA/(workspaces|servers)/(?!workspace-\d+\b|default\b|me\b)[^/\s,;)'\"`]+")
_TEAM = re.compile(r"\bteam [^\s:,]+")
_MAIL = re.compile(r"[^\s@<>()]+@[^\s@<>()]+\.\w+")


class Mask:
    """Replace secrets, paths, addresses, and the names of the user, the machine and the workspaces in texts."""

    def __init__(self, root: str | Path, workspaces: Iterable[str]) -> None:
        home = Path("~").expanduser()
        self._paths = [(str(path), mark) for path, mark in ((root, "DATA"), (home, "~")) if path != Path("/")]
        self._words = [(name, mark) for name, mark in ((home.name, "USER"), (_find_user(), "USER")) if name]
        self._words.append((socket.gethostname(), "MACHINE"))
        private = [name for name in workspaces if name not in COMMON_WORKSPACES]
        self._workspaces = {name: f"workspace-{number}" for number, name in enumerate(private, 1)}

    def workspace(self, name: str) -> str:
        """Return what the report calls a workspace."""
        return self._workspaces.get(name, name if name in COMMON_WORKSPACES else "workspace")

    def text(self, text: str, workspace: str = "") -> str:
        """Return a text on one line that cannot end a table cell."""
        masked = one_line(redact(text).text, RESULT_WIDTH)
        for path, mark in self._paths:
            masked = _replace_word(masked, path, mark)
        for name, alias in self._workspaces.items():
            masked = masked.replace(f"workspaces/{name}/", f"workspaces/{alias}/")
        masked = _MAIL.sub("ADDRESS", _URL.sub(r"\1ADDRESS", masked))
        masked = _TEAM.sub("team NAME", _OF_WORKSPACE.sub(r"DATA/\1/NAME", masked))
        masked = _PART.sub("PATH", _PATH.sub("PATH", masked))
        for word, mark in (*self._words, (workspace, self.workspace(workspace))):
            masked = _replace_word(masked, word, mark)
        return masked.replace("|", "\\|")


def _replace_word(text: str, word: str, mark: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _match: mark, text) if word else text


def _find_user() -> str:
    """Return the name of this process's user, "" where the system has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def render_report(state: State, results: Sequence[Mapping[str, Any]]) -> str:
    """Return the report in Markdown: versions, settings that differ from the defaults, errors, and results."""
    from web.version import VERSION

    names = (_split(result["check"])[0] for result in results)
    workspaces = list(dict.fromkeys(name for name in names if name))
    mask = Mask(find_data_directory(environment_with({})), workspaces)
    settings: list[tuple[str, ...]] = []
    errors: list[tuple[str, ...]] = []
    # Of invalid settings, the results say what is wrong.
    with suppress(SettingsError):
        settings += _render_settings(state)
        errors += _render_errors(state, workspaces, mask)
    versions = (
        ("Reverie", VERSION),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("system", f"{platform.system()} {platform.release()}, {platform.machine()}"),
    )
    parts = [
        _render_table(("program", "version"), versions),
        _render_section("Settings that differ from the defaults", ("setting", "value"), settings),
        _render_section("Errors that were not repaired", ("time", "workspace", "component", "type"), errors),
        _render_section("Checks", ("check", "state", "result"), (_render_result(result, mask) for result in results)),
    ]
    return "\n\n".join(parts)


def _render_settings(state: State) -> Iterator[tuple[str, str]]:
    from pipeline.features.workspaces.config import explain_workspace

    try:
        origins = explain_workspace(state.settings, state.workspace)
    except (ReverieError, SettingsError, OSError) as error:
        yield "none can be read", type(error).__name__
        return
    for origin in origins:
        if origin.value != SETTINGS[origin.name].default and origin.name != "home":
            yield origin.name, _describe_value(origin)


def _describe_value(origin: SettingOrigin) -> str:
    """Return the value of a number, switch or choice; texts are addresses, names and paths of the user."""
    is_closed = isinstance(origin.value, int | float) or bool(SETTINGS[origin.name].choices)
    return str(origin.value) if is_closed else "set"


def _render_errors(state: State, workspaces: Sequence[str], mask: Mask) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for each error, without its message, which may quote a memory."""
    from pipeline.features.diagnostics.usecases import list_open_errors

    types = {error.__name__ for error in _list_subclasses(BaseException)}
    try:
        for error in list_open_errors(state.settings, workspaces, ERRORS_SHOWN):
            kind = error.message.partition(":")[0]
            workspace = mask.workspace(error.workspace) if error.workspace else ""
            # A user chose the name of a remote.
            component = "sync" if error.component.startswith("sync.") else error.component
            at = utc_text(datetime.fromtimestamp(error.at, UTC))
            yield at[:19], workspace, component, kind if kind in types else ""
    except (ReverieError, OSError) as error:
        yield "", "", "none can be read", type(error).__name__


def _list_subclasses(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _list_subclasses(below)


def _split(check: str) -> tuple[str, str]:
    """Return the workspace of a check, or "", and the name of the check."""
    workspace, _, name = check.rpartition(": ")
    return workspace, name


def _render_result(result: Mapping[str, Any], mask: Mask) -> tuple[str, str, str]:
    workspace, name = _split(result["check"])
    says = result["says"] if name in SHOWN else ""
    if name in SHOWN_TO:
        says = result["says"].partition(SHOWN_TO[name])[0]
    title = f"{mask.workspace(workspace)}: {name}" if workspace else name
    return title, result["state"], mask.text(says, workspace)


def _render_section(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    listed = list(rows)
    return f"### {title}\n\n{_render_table(heads, listed) if listed else 'None.'}"


def _render_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
