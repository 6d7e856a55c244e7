"""What every command shares: --json and --workspace anywhere, one clear line for an error."""

import importlib
import json
import keyword
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from config.settings import Settings
    from pipeline.services.workspaces import WorkspaceChoice
    from web.client import Client

INTERRUPTED = 130
T = TypeVar("T")


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
        from web.client import Client

        workspace = self.choice(Path(), to_write=True).workspace if to_write else self.workspace
        return Client.from_settings(self.settings, workspace, timeout_s=timeout_s)

    def ask(self, question: Callable[["Client"], T], *, to_write: bool = False) -> T:
        """Return what the server answers to one question."""
        with self.client(to_write=to_write) as client:
            return question(client)

    def print_json(self, value: Any) -> None:
        """Print an answer as JSON."""
        click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))

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

    Once a host is set up, its hooks write to a project's own workspace: so does everything else then.
    """
    from config.settings import environment_workspace
    from pipeline.services.workspaces import choose_workspace, note_claim

    choice = choose_workspace(
        folder,
        settings,
        explicit=named,
        environment=environment_workspace(),
        to_write=to_write and _is_a_host_set_up(settings),
    )
    if to_write and choice.identity is not None:
        note_claim(settings, choice.identity, to_write=True)
    return choice


def _is_a_host_set_up(settings: "Settings") -> bool:
    # Imported by what stores something new alone: every command chooses a workspace.
    from web.hosts import files

    return bool(files.read_state(settings.paths.root))


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


class Root(Group):
    """The whole command line: imports a command when it is called, and answers for every error."""

    def __init__(self, name: str, *, modules: Mapping[str, str], **rest: Any) -> None:
        super().__init__(name, **rest)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order in which they are of use."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return a command, imported now."""
        module = self._modules.get(cmd_name)
        if module is None:
            return None
        attribute = cmd_name.replace("-", "_") + ("_" if keyword.iskeyword(cmd_name) else "")
        found: click.Command = getattr(importlib.import_module(f"web.cli.{module}"), attribute)
        return found

    def main(  # type: ignore[override]  # always ends the process, as click's standalone mode does
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a command and exit: 0 for success, 1 for an error, 2 for wrong usage."""
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
            if not _is_for_the_user(error):
                raise
            _report(error, str(error), as_json=as_json)
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)


def _is_for_the_user(error: Exception) -> bool:
    """Tell whether an error was raised to be read by the user."""
    # Imported once there is an error: most commands need neither the settings nor pydantic under them.
    from config.process import RoleTaken
    from config.settings import SettingsError
    from pipeline.errors import ReverieError

    return isinstance(error, (ReverieError, SettingsError, RoleTaken))


def _report(error: Exception, message: str, *, as_json: bool, show: Callable[[], None] | None = None) -> None:
    if as_json:
        shown: dict[str, Any] = {"type": type(error).__name__, "message": message}
        fields = getattr(error, "errors", ())
        if fields:
            shown["errors"] = [{"loc": field.loc, "msg": field.msg} for field in fields]
        click.echo(json.dumps({"error": shown}, ensure_ascii=False, indent=2))
    if show is not None:
        show()
    else:
        click.echo(f"error: {' '.join(message.split())}", err=True)
