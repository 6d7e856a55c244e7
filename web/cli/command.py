"""The classes of commands: options that every command takes, lazy imports, suggestions and errors."""

import builtins
import difflib
import importlib
import keyword
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import click

from web.cli.output import INTERRUPTED, dump_json, explain_error, report_error
from web.cli.state import State

# Words that mean the same as a command.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "add": ("remember",),
    "capture": ("config", "set", "capture"),
    "find": ("recall",),
    "search": ("recall",),
    "show": ("get",),
    "start": ("up",),
    "stop": ("down",),
    "ui": ("dashboard",),
    "web": ("dashboard",),
}

# Words that may mean several things: the answer names each of them.
_DELETE = "To archive a memory, run `reverie forget ID`. To delete it permanently, run `reverie purge ID`."
SUGGESTIONS: Mapping[str, str] = {
    "delete": _DELETE,
    "disable": "To stop Reverie, run `reverie down`. To store nothing new, run `reverie config set capture off`.",
    "help": "Run `reverie --help` to list the commands, and `reverie COMMAND --help` for one of them.",
    "install": "To connect your coding agents, run `reverie setup`. To start Reverie at login, run "
    "`reverie service install`.",
    "remove": _DELETE,
    "restart": "Run `reverie down`, then `reverie up --daemon`.",
    "rm": _DELETE,
    "run": "To start Reverie, run `reverie up`. To run maintenance jobs, run `reverie jobs run JOB`.",
    "undo": "To undo an automatic change, run `reverie logs audit`, then `reverie logs audit undo ID`. To bring back "
    "an archived memory, run `reverie restore ID`.",
    "uninstall": "To disconnect your coding agents, run `reverie setup --remove`. To stop starting Reverie at login, "
    "run `reverie service remove`.",
}


# Two columns of commands fit into a terminal of this width.
TWO_COLUMNS_WIDTH = 78
NAME_WIDTH = 12

pass_state = click.make_pass_decorator(State, ensure=True)


def _state(context: click.Context) -> State:
    return context.find_root().ensure_object(State)


def _set_json(context: click.Context, _parameter: click.Parameter, is_set: bool) -> None:
    state = _state(context)
    state.json = state.json or is_set


def _set_workspace(context: click.Context, _parameter: click.Parameter, workspace: str | None) -> None:
    from config.paths import WORKSPACE_ID, is_workspace_id

    if workspace is None:
        return
    if not is_workspace_id(workspace):
        raise click.BadParameter(f"{workspace!r} is not a workspace ID. An ID matches {WORKSPACE_ID.pattern}.")
    _state(context).named_workspace = workspace


def _global_options() -> list[click.Option]:
    return [
        click.Option(
            ["--json"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_set_json,
            help="Print the answer as JSON.",
        ),
        click.Option(
            ["-w", "--workspace"],
            metavar="ID",
            expose_value=False,
            callback=_set_workspace,
            help="Workspace to use. `reverie workspace why` shows the default.",
        ),
    ]


class Command(click.Command):
    """A command that also takes the global options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_global_options())


class Group(click.Group):
    """A group whose commands also take the global options.

    An argument that is no command goes to the `default_command`, if there is one. Without any argument, the
    `bare_command` runs.
    """

    command_class = Command

    def __init__(
        self, *args: Any, default_command: str | None = None, bare_command: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **{"invoke_without_command": bare_command is not None, **kwargs})
        self.default_command = default_command
        self.bare_command = bare_command
        self.params.extend(_global_options())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; fail with a suggestion if there is none."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            if self.default_command is None:
                ctx.fail(f'There is no command "{args[0]}". {self.suggest(ctx, args[0])}')
            args = [self.default_command, *args]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the arguments name, or the bare command."""
        answer = super().invoke(ctx)
        if self.bare_command is not None and ctx.invoked_subcommand is None:
            return ctx.invoke(self.commands[self.bare_command])
        return answer

    def suggest(self, ctx: click.Context, word: str) -> str:
        """Return a sentence that names the most similar command."""
        similar = difflib.get_close_matches(word, self.list_commands(ctx), n=1, cutoff=0.6)
        if similar:
            return f"Did you mean `{ctx.command_path} {similar[0]}`?"
        return f"Run `{ctx.command_path} --help` to list the commands."


Group.group_class = Group


class Entry(NamedTuple):
    """A command: its name, the module that defines it, its description in `reverie --help`, its section and place."""

    name: str
    module: str
    help: str
    section: str = ""
    place: float = 0


def add_declared(group: click.Group) -> None:
    """Add the commands that features declare for a group."""
    for entry in list_declared():
        if entry.name.rpartition(" ")[0] == group.name:
            group.add_command(load_command(entry))


def list_declared() -> list[Entry]:
    """List the commands of features."""
    # Imported on demand: an agent waits for `reverie mcp`, which belongs to no feature.
    from pipeline.kernel.registry import features

    return [Entry(*command) for feature in features() for command in feature.commands]


def load_command(entry: Entry) -> click.Command:
    """Import a command."""
    name = entry.name.rpartition(" ")[2]
    is_reserved = keyword.iskeyword(name) or hasattr(builtins, name)
    attribute = name.replace("-", "_") + ("_" if is_reserved else "")
    command: click.Command = getattr(importlib.import_module(entry.module), attribute)
    return command


def _show_version(context: click.Context, _parameter: click.Parameter, is_set: bool) -> None:
    if is_set:
        from web.version import VERSION

        click.echo(dump_json({"version": VERSION}, indent=2) if _state(context).json else f"reverie {VERSION}")
        context.exit()


class Root(Group):
    """The top-level command: import a command when it runs, resolve aliases, and report every error."""

    def __init__(
        self, name: str, *, sections: Mapping[str, Sequence[Entry]], hidden: Sequence[Entry], **kwargs: Any
    ) -> None:
        super().__init__(name, **kwargs)
        self._own_sections = sections
        self._own = {entry.name: entry for section in (*sections.values(), hidden) for entry in section}
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

    @cached_property
    def sections(self) -> Mapping[str, Sequence[Entry]]:
        """Return the visible commands by section: those of the command line itself, and those of features."""
        from pipeline.kernel.registry import arrange

        return {
            title: arrange(own, (entry for entry in list_declared() if entry.section == title))
            for title, own in self._own_sections.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the visible commands in the order of their sections."""
        return [entry.name for section in self.sections.values() for entry in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import a command and return it."""
        entry = self._own.get(cmd_name) or next((entry for entry in list_declared() if entry.name == cmd_name), None)
        return None if entry is None else load_command(entry)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name, also by a synonym."""
        return super().resolve_command(ctx, [*SYNONYMS.get(args[0], (args[0],)), *args[1:]])

    def suggest(self, ctx: click.Context, word: str) -> str:
        """Return a sentence that names the most similar command."""
        if word in SUGGESTIONS:
            return SUGGESTIONS[word]
        similar = difflib.get_close_matches(word, [*self.list_commands(ctx), *SYNONYMS], n=1, cutoff=0.6)
        if not similar:
            return super().suggest(ctx, word)
        path = SYNONYMS.get(similar[0], (similar[0],))
        return f"Did you mean `reverie {' '.join(path)}`?"

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help: the commands by section, in two columns where the terminal is wide enough."""
        formatter.write(f"{ctx.get_usage()}\n\n{self.help}\n")
        columns = 2 if formatter.width >= TWO_COLUMNS_WIDTH else 1
        for title, section in self.sections.items():
            formatter.write(f"\n{title}:\n")
            cells = [f"{entry.name:<{NAME_WIDTH}}{entry.help}" for entry in section]
            height = -(-len(cells) // columns)
            for row in range(height):
                line = "  ".join(f"{cell:<37}" for cell in cells[row::height])
                formatter.write(f"  {line.rstrip()}\n")
        formatter.write(
            "\nOptions of every command: --json, -w/--workspace ID, --help. `reverie --version`\n"
            "shows the version. `reverie COMMAND --help` explains a command.\n"
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; explain an answer that names nothing."""
        state = _state(ctx)
        try:
            answer = super().invoke(ctx)
        except Exception as error:
            explained = state.explain_not_found(error)
            if explained is None:
                raise
            raise explained from error
        return answer

    def main(  # type: ignore[override]  # always ends the process, as click's standalone mode does
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a command and exit with a documented exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in arguments
        try:
            code = super().main(arguments, prog_name or "reverie", **(extra | {"standalone_mode": False}))
        except click.ClickException as error:
            report_error(error, error.format_message(), as_json=as_json, show=error.show)
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)
        except Exception as error:
            message, code = explain_error(error)
            if message is None:
                raise
            report_error(error, message, as_json=as_json)
            sys.exit(code)
        sys.exit(code if isinstance(code, int) else 0)
