"""The report of `reverie doctor --report`: what maintainers need to know, without what belongs to the user."""

import getpass
import platform
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from config.data_directory import find_data_directory
from config.paths import PERSONAL_WORKSPACE
from config.settings import SETTINGS, SettingOrigin, environment_with
from config.toml_files import SettingsError
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.times import utc_text
from pipeline.text.redaction import redact
from web.cli.render import one_line
from web.cli.state import State

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
