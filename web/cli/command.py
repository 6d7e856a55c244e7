"""What every command shares: --json and --workspace anywhere, one clear line for an error."""

import builtins
import errno
import importlib
import keyword
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from web.cli.output import dump_json

if TYPE_CHECKING:
    from config.settings import Settings
    from pipeline.errors import ReverieError
    from pipeline.services.workspaces import WorkspaceChoice
    from web.client import Client

# What a command ends with beside 0 for success, 1 for an error and 2 for wrong usage.
STILL_LOADING = 3
BROKEN_HOME = 4
INTERRUPTED = 130
T = TypeVar("T")

_NOT_OURS = "it belongs to somebody else: work as its owner, or give it back with `chown -R`"
_REMEDIES = {
    errno.ENOSPC: "make room on its disk",
    errno.EDQUOT: "make room on its disk",
    errno.EROFS: "mount its disk for writing, or let REVERIE_HOME name another home",
    errno.EACCES: _NOT_OURS,
    errno.EPERM: _NOT_OURS,
    errno.EIO: "its disk fails: `reverie snapshot list` shows the copies, if they can still be read",
}


@dataclass
class State:
    """What the global options say, and what follows from them."""

    json: bool = False
    named_workspace: str | None = None
    _told_of_claim: bool = field(default=False, init=False)

    @cached_property
    def settings(self) -> "Settings":
        """Return the effective settings."""
        from config.settings import load_settings

        return load_settings()

    @cached_property
    def workspace(self) -> str:
        """Return the workspace to work on here."""
        return self.choice(Path()).workspace

    def choice(self, folder: Path, *, to_write: bool = False) -> "WorkspaceChoice":
        """Choose the workspace of a folder; raise InvalidField for a `.reverie.toml` that cannot be taken."""
        from pipeline.errors import InvalidField

        choice = choose_for_folder(folder, self.settings, self.named_workspace, to_write=to_write)
        if choice.identity is not None and choice.identity.problem is not None:
            raise InvalidField(choice.identity.problem)
        if choice.identity is not None and choice.identity.waits and not self._told_of_claim:
            self._told_of_claim = True
            click.echo(f"{choice.identity.detail}; if you do: reverie workspace trust", err=True)
        return choice

    def client(self, timeout_s: float = 60.0, *, to_write: bool = False) -> "Client":
        """Return a client of the configured server; `to_write` says that something new is to be stored."""
        choice = self.choice(Path(), to_write=to_write)
        return self.client_of(choice.workspace, timeout_s=timeout_s, project=choice.project)

    def client_of(self, workspace: str, *, timeout_s: float = 60.0, project: str | None = None) -> "Client":
        """Return a client for a workspace; a stack that died since it was started is started again."""
        from web.client import Client

        return Client.from_settings(
            self.settings, workspace, timeout_s=timeout_s, revive=self._revive, project=project or ""
        )

    def _revive(self) -> bool:
        from web.cli.lifecycle import revive

        return revive(self)

    def ask(self, question: Callable[["Client"], T], *, to_write: bool = False) -> T:
        """Return what the server answers to one question."""
        with self.client(to_write=to_write) as client:
            is_first = to_write and self.makes(client.workspace)
            answer = question(client)
        if is_first:
            self.offer_adoption(Path(), client.workspace)
        return answer

    def store(self, write: Callable[["Client"], T], team: str | None) -> T:
        """Return what the server answers to a write, into this machine's memory or into a team's."""
        if team is None:
            return self.ask(write, to_write=True)
        # Nothing is made on this machine by it.
        with self.client(to_write=True) as client:
            return write(client)

    def tell_left_out(self, problem: "ReverieError") -> None:
        """Say of a file that it is left out."""
        click.echo(f"left out: {problem}", err=True)

    def makes(self, workspace: str) -> bool:
        """Tell whether what is stored now makes a project's own workspace."""
        from pipeline.services.existing import has_workspace

        is_chosen_by_folder = self.named_workspace is None and workspace != self.settings.workspace
        return is_chosen_by_folder and not has_workspace(self.settings, workspace)

    def offer_adoption(self, folder: Path, workspace: str) -> None:
        """Say once, when a project's workspace was made, what of the project stands in the one that was used before."""
        from web.cli.adoption import offer

        offer(self, folder, workspace)

    def print_json(self, value: Any) -> None:
        """Print an answer as JSON."""
        click.echo(dump_json(value, indent=2))

    def show(self, answer: Any, shown: str | Callable[[], object]) -> None:
        """Print an answer: as JSON where that is wanted, else the text that is given, or what the function prints."""
        if self.json:
            self.print_json(answer)
        elif isinstance(shown, str):
            click.echo(shown)
        else:
            shown()


def choose_for_folder(
    folder: Path | None, settings: "Settings", named: str | None = None, *, to_write: bool = False
) -> "WorkspaceChoice":
    """Choose the workspace of a folder by the settings given; a `.reverie.toml` that cannot be taken is left out.

    To write, a git project's own workspace is chosen even before there is one.
    """
    from config.settings import environment_workspace
    from pipeline.services.workspaces import choose_workspace, note_claim

    choice = choose_workspace(
        folder,
        settings,
        explicit=named,
        environment=environment_workspace(),
        to_write=to_write,
    )
    if to_write and choice.identity is not None:
        note_claim(settings, choice.identity, to_write=True)
    return choice


def find_user_home() -> Path:
    """Return the user's home folder; raise ReverieError where neither HOME nor the system names it."""
    from pipeline.errors import ReverieError

    try:
        return Path.home()
    except RuntimeError as error:
        raise ReverieError("neither HOME nor the system's list of users names your home folder; set HOME") from error


pass_state = click.make_pass_decorator(State, ensure=True)


def _state(context: click.Context) -> State:
    return context.find_root().ensure_object(State)


def _note_json(context: click.Context, _parameter: click.Parameter, given: bool) -> None:
    if given:
        _state(context).json = True
    else:
        _state(context)


def _note_workspace(context: click.Context, _parameter: click.Parameter, given: str | None) -> None:
    from config.paths import WORKSPACE_ID, is_workspace_id

    if given is None:
        return
    if not is_workspace_id(given):
        raise click.BadParameter(f"a workspace is named by {WORKSPACE_ID.pattern}")
    _state(context).named_workspace = given


def _global_options() -> list[click.Option]:
    return [
        click.Option(
            ["--json"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_note_json,
            help="Answer in JSON.",
        ),
        click.Option(
            ["-w", "--workspace"],
            metavar="ID",
            expose_value=False,
            callback=_note_workspace,
            help="The workspace to use; otherwise as `workspace why` tells.",
        ),
    ]


class Command(click.Command):
    """A command that takes the global options too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_global_options())


class Group(click.Group):
    """A group whose commands take the global options too."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_global_options())


Group.group_class = Group


def _show_version(context: click.Context, _parameter: click.Parameter, given: bool) -> None:
    if given:
        from web.version import VERSION

        click.echo(f"reverie {VERSION}")
        context.exit()


class Root(Group):
    """The whole command line: imports a command when it is called, and answers for every error."""

    def __init__(self, name: str, *, modules: Mapping[str, str], **rest: Any) -> None:
        super().__init__(name, **rest)
        self._modules = modules
        self.params.append(
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_version,
                help="Show the version and exit.",
            )
        )

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order in which they are of use."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return a command, imported now."""
        module = self._modules.get(cmd_name)
        if module is None:
            return None
        is_taken = keyword.iskeyword(cmd_name) or hasattr(builtins, cmd_name)
        attribute = cmd_name.replace("-", "_") + ("_" if is_taken else "")
        found: click.Command = getattr(importlib.import_module(f"web.cli.{module}"), attribute)
        return found

    def main(  # type: ignore[override]  # always ends the process, as click's standalone mode does
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a command and exit with a code of docs/cli.md."""
        arguments = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in arguments
        try:
            code = super().main(arguments, prog_name or "reverie", **(extra | {"standalone_mode": False}))
        except click.ClickException as error:
            _report(error, error.format_message(), as_json=as_json, show=error.show)
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)
        except Exception as error:
            message, code = _explain(error)
            if message is None:
                raise
            _report(error, message, as_json=as_json)
            sys.exit(code)
        sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> tuple[str | None, int]:
    """Return what to tell the user of an error, None for one that nobody expects, and what the command ends with."""
    # Imported once there is an error: most commands need neither the settings nor pydantic under them.
    from config.process import RoleTaken
    from config.settings import HomeUnknown, SettingsError
    from pipeline.errors import ReverieError, StoreBusy, StoreUnavailable, WrongServer
    from web.client import TokenRefused

    if isinstance(error, SettingsError) and isinstance(error.__cause__, PermissionError):
        error = error.__cause__
    if isinstance(error, OSError):
        return explain_failed_access(error), BROKEN_HOME
    misplaced = HomeUnknown | TokenRefused | WrongServer | StoreUnavailable
    if isinstance(error, misplaced) and not isinstance(error, StoreBusy):
        return str(error), BROKEN_HOME
    return (str(error) if isinstance(error, ReverieError | SettingsError | RoleTaken) else None), 1


def explain_failed_access(error: OSError) -> str | None:
    """Say which file cannot be used, why, and what helps; None for an error that is no file's."""
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy is None:
        return None
    return f"{error.filename or 'the disk'}: {error.strerror}; {remedy}"


def _report(error: Exception, message: str, *, as_json: bool, show: Callable[[], None] | None = None) -> None:
    if as_json:
        shown: dict[str, Any] = {"type": type(error).__name__, "message": message}
        fields = getattr(error, "errors", ())
        if fields:
            shown["errors"] = [{"loc": field.loc, "msg": field.msg} for field in fields]
        click.echo(dump_json({"error": shown}, indent=2))
    if show is not None:
        show()
    else:
        click.echo(f"error: {' '.join(message.split())}", err=True)
