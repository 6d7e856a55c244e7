"""The global options of a command line, and the settings, workspace and client that follow from them."""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from config.data_directory import VARIABLE
from config.operating_system import read_regular
from pipeline.kernel.errors import (
    NO_SUCH_MEMORY,
    NO_WORKSPACE,
    AnswerLost,
    InvalidField,
    NotFound,
    ReverieError,
    ServerUnreachable,
)
from web.cli.output import dump_json
from web.cli.render import Fields, View, fill, plain, print_fields, print_items

if TYPE_CHECKING:
    from config.settings import Settings
    from pipeline.features.workspaces.usecases import WorkspaceChoice
    from web.http.client import Client

T = TypeVar("T")

HOW_TO_FILL = 'Store one with `reverie remember "…"`, or index this project with `reverie index project`.'
HOW_TO_FIND = "`reverie list` shows the IDs of its memories; choose another workspace with `-w ID`."

# After this time without an answer, a command says that it waits.
PATIENCE_S = 5.0
WAITS = "The server at {} has not answered yet. Waiting for up to a minute; Ctrl-C stops."


@dataclass
class State:
    """Hold the global options of one run of the command line."""

    json: bool = False
    named_workspace: str | None = None
    """The folder and the workspace that the command has just created for its project."""
    _claim_reported: bool = field(default=False, init=False)
    _off_reported: bool = field(default=False, init=False)

    @cached_property
    def settings(self) -> "Settings":
        """Return the effective settings; warn if their data directory replaces one that agents were connected to."""
        from config.settings import environment_with, load_settings

        settings = load_settings()
        if not settings.paths.token_file.exists():
            warn_if_replaced(settings, environment_with({}), find_user_home())
        return settings

    @cached_property
    def workspace(self) -> str:
        """Return the workspace of the current folder, or the named one."""
        return self.choice(Path()).workspace

    def choice(self, folder: Path, *, to_write: bool = False) -> "WorkspaceChoice":
        """Choose the workspace of a folder; raise InvalidField for an invalid `.reverie.toml`."""
        choice = choose_for_folder(folder, self.settings, self.named_workspace, to_write=to_write)
        if choice.identity is not None and choice.identity.problem is not None:
            raise InvalidField(choice.identity.problem)
        if choice.identity is not None and choice.identity.waits and not self._claim_reported:
            self._claim_reported = True
            click.echo(f"{choice.identity.detail}; to agree, run `reverie workspace trust`", err=True)
        return choice

    def client(self, timeout_s: float = 60.0, *, to_write: bool = False) -> "Client":
        """Return a client of the configured server; `to_write` means that the command stores something new."""
        workspace = self.choice(Path(), to_write=to_write).workspace
        self._warn_if_off(workspace)
        return self.client_of(workspace, timeout_s=timeout_s)

    def _warn_if_off(self, workspace: str) -> None:
        """Report once that agents see nothing of a workspace; commands of its user still work."""
        from config.settings import load_settings
        from config.toml_files import SettingsError
        from config.workspace_configs import ConfigFiles

        if self._off_reported or self.settings.store_place:
            return
        try:
            is_on = load_settings(own=ConfigFiles(self.settings.paths).read(workspace)).enabled
        except SettingsError:
            # The server reports it.
            return
        if not is_on:
            self._off_reported = True
            click.echo(f"Reverie is off in {workspace} (setting enabled). Turn it on with `reverie on`.", err=True)

    def client_of(self, workspace: str, *, timeout_s: float = 60.0) -> "Client":
        """Return a client for a workspace; it restarts a stack that died."""
        from web.http.client import Client

        # The branch of this folder has nothing to do with another workspace.
        folder = "" if self.named_workspace else str(find_working_folder() or "")
        return Client.from_settings(self.settings, workspace, timeout_s=timeout_s, revive=self._revive, folder=folder)

    def _revive(self) -> bool:
        from web.stack.stack import Stack

        stack = Stack(self.settings)
        if not stack.has_died():
            return False
        click.echo("Reverie ended unexpectedly; starting it again …", err=True)
        stack.start()
        if (failure := stack.wait()) is not None:
            click.echo(f"Reverie did not start: {failure}", err=True)
        return failure is None

    def ask(self, question: Callable[["Client"], T], *, to_write: bool = False) -> T:
        """Return the server's answer to one request."""
        with self.client(to_write=to_write) as client:
            notice = threading.Timer(PATIENCE_S, click.echo, (WAITS.format(client.url),), {"err": True})
            notice.daemon = True
            notice.start()
            try:
                answer = question(client)
            finally:
                notice.cancel()
        return answer

    def ask_local(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        *,
        workspace: str | None = None,
    ) -> Any:
        """Return the answer of an endpoint for people, from this process if no server runs."""
        with self.client_of(workspace or self.settings.workspace) as client:
            try:
                return client.call(method, path, body, query)
            except ServerUnreachable as error:
                if isinstance(error, AnswerLost):
                    # The server may have processed the request.
                    raise
        from web.http.local_server import answer_here

        return answer_here(self.settings, client.workspace, method, path, body, query)

    def ask_about_content(self, question: Callable[["Client"], T], empty: T) -> T:
        """Return the server's answer to a read, or `empty` if nothing was ever written to the folder's workspace.

        A workspace that the user names must exist, unless it would be the first.
        """
        try:
            return self.ask(question)
        except NotFound as error:
            others = self._other_workspaces() if _names_no_workspace(error) else None
            if others is None or (self.named_workspace and others):
                raise
        if others:
            click.echo(f'Nothing is stored in workspace "{self.workspace}" yet. {_choose_of(others)}', err=True)
        return empty

    def require_named_workspace(self) -> None:
        """Raise NotFound if the user named a workspace that does not exist, unless it would be the first.

        A search there would answer from the personal memories alone.
        """
        if self.named_workspace is not None and (others := self._other_workspaces()):
            raise NotFound(f"{self.empty_text} {_choose_of(others)}")

    def list_items(self, path: str, limit: int, **filters: Any) -> dict[str, Any]:
        """Return at most `limit` items of a list as one page; it is empty if nothing was ever written here."""
        return self.ask_about_content(lambda client: client.list_items(path, limit, **filters), empty_page())

    def store(self, write: Callable[["Client"], T], team: str | None) -> T:
        """Return the answer to a write, into the memory of this machine or of a team."""
        if team is None:
            return self.ask(write, to_write=True)
        # A write to a team creates no workspace on this machine.
        with self.client(to_write=True) as client:
            return write(client)

    def warn_skipped(self, problem: ReverieError) -> None:
        """Report that a file was skipped."""
        click.echo(f"skipped: {problem}", err=True)

    def explain_not_found(self, error: Exception) -> ReverieError | None:
        """Return a helpful error if a command found no memory, or no workspace yet, else None."""
        if isinstance(error, NotFound) and str(error) == NO_SUCH_MEMORY:
            return NotFound(f'{NO_SUCH_MEMORY} in workspace "{self.workspace}". {HOW_TO_FIND}')
        others = self._other_workspaces() if _names_no_workspace(error) else None
        if others is None:
            return None
        return NotFound(f"{self.empty_text} {_choose_of(others)}" if others else self.empty_text)

    @property
    def empty_text(self) -> str:
        """Return what to say about a workspace to which nothing was ever written."""
        return f'There are no memories in workspace "{self.workspace}" yet. {HOW_TO_FILL}'

    def _other_workspaces(self) -> list[str] | None:
        """List the other workspaces if the one of the command does not exist yet, else None."""
        from pipeline.features.workspaces.config import has_workspace, list_workspaces

        return None if has_workspace(self.settings, self.workspace) else list_workspaces(self.settings)

    def show(self, answer: Any, view: str | Fields | Callable[[Any], object]) -> None:
        """Print an answer: with --json as it is, else as a text, as rows of fields, or by a function."""
        if self.json:
            click.echo(dump_json(answer, indent=2))
        elif isinstance(view, str):
            click.echo(view)
        elif isinstance(view, Mapping):
            print_fields(answer, view)
        else:
            view(answer)

    def note(self, text: str) -> None:
        """Print a remark on the answer on standard error; none with --json."""
        if not self.json:
            click.echo(plain(text), err=True)

    def show_page(self, page: Mapping[str, Any], view: View, empty: str) -> None:
        """Print the items of a page in a view, or with --json the page as it is."""
        self.show(page, lambda _: print_items(page["items"], view, empty))

    def show_list(self, path: str, limit: int, view: View, empty: str, **filters: Any) -> None:
        """Print at most `limit` items of a list in a view."""
        self.show_page(self.list_items(path, limit, **filters), view, empty)

    def act(
        self,
        method: str,
        path: str | tuple[str, ...],
        body: Any = None,
        *,
        says: str,
        to_write: bool = False,
        **query: Any,
    ) -> None:
        """Send one request and print a text with fields of the answer, or with --json the answer."""
        answer = self.ask(lambda client: client.request(method, path, body, query), to_write=to_write)
        self.show(answer, fill(says, answer))


def empty_page() -> dict[str, Any]:
    """Return a list's page without items."""
    return {"items": [], "next_cursor": None}


def _names_no_workspace(error: Exception) -> bool:
    return isinstance(error, NotFound) and NO_WORKSPACE in str(error)


def _choose_of(others: list[str]) -> str:
    return f"Other workspaces: {', '.join(others)}; choose one with `-w ID`."


def find_working_folder() -> Path | None:
    """Return the working folder, None if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def choose_for_folder(
    folder: Path | None, settings: "Settings", named: str | None = None, *, to_write: bool = False
) -> "WorkspaceChoice":
    """Choose the workspace of a folder; ignore an invalid `.reverie.toml`.

    With `to_write`, record the workspace that the project's file claims.
    """
    from config.settings import environment_workspace
    from pipeline.features.workspaces.usecases import choose_workspace, note_claim

    choice = choose_workspace(
        folder,
        settings,
        explicit=named,
        environment=environment_workspace(),
    )
    if to_write and choice.identity is not None:
        note_claim(settings, choice.identity, to_write=True)
    return choice


def find_user_home() -> Path:
    """Return the user's home folder; raise ReverieError if neither HOME nor the system names it."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise ReverieError(
            "Cannot find your home folder: neither HOME nor the system's user database names it. Set HOME."
        ) from error


# The settings of an agent are smaller.
MOST_SETTINGS_BYTES = 64 * 1024 * 1024


def warn_if_replaced(settings: "Settings", environment: Mapping[str, str], home: Path) -> None:
    """Warn if a data directory is about to be created to which agents on this machine were connected earlier."""
    from web.hosts.installed_files import STATE_FILE

    paths = settings.paths
    if paths.token_file.exists() or (paths.root / STATE_FILE).exists():
        return
    files = list(dict.fromkeys(_list_connected_files(settings, environment, home)))
    if files:
        click.echo(
            f"{paths.root} is a new, empty data directory, but agents were connected to it earlier "
            f"({', '.join(map(str, files))}). If you moved it, run `reverie down`, then move it back or set "
            f"{VARIABLE}.",
            err=True,
        )


def _list_connected_files(settings: "Settings", environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the files of agents that have entries of Reverie for the data directory."""
    from web.hosts.environment import HostEnvironment, Installation, programs_folder
    from web.hosts.hosts import HOSTS

    root = str(settings.paths.root).lower()
    is_default = settings.paths.root == home / ".reverie"
    host_env = HostEnvironment(home, sys.platform, lambda _program: None, lambda _program: None, environment)
    installation = Installation(programs_folder(), {}, None)
    for host in HOSTS:
        for target in host.targets(host_env, installation):
            text = read_lowered(target.path)
            names_other = VARIABLE.lower() in text
            if "reverie" in text and (root in text if names_other else is_default):
                yield target.path


def read_lowered(file: Path) -> str:
    """Return a file of an agent's settings in lower case, "" if it cannot be read."""
    try:
        return read_regular(file, MOST_SETTINGS_BYTES).decode("utf-8", "replace").lower()
    except OSError:
        return ""
