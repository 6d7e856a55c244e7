"""The tree of commands: sections, earlier names, synonyms, suggestions, and the imports behind them."""

import ast
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from web.cli import HIDDEN, SECTIONS, cli
from web.cli.aliases import ALIASES, SUGGESTIONS

PACKAGE = Path(__file__).parents[3] / "web" / "cli"
# The top-level commands of earlier versions.
# fmt: off
EARLIER = [
    "up", "serve", "down", "status", "doctor", "setup", "service", "codex-notify", "remember", "recall",
    "explain", "list", "get", "edit", "move", "forget", "restore", "share", "purge", "dashboard", "tail", "facts",
    "goals", "lessons", "me", "sessions", "distill", "hooks", "arcs", "entities", "graph", "duplicates",
    "candidates", "refused", "why-not-saved", "audit", "index", "import", "mcp", "incognito", "stats", "queue",
    "jobs", "errors", "journal", "rebuild", "sleep", "consolidate", "snapshot", "sync", "team", "export",
    "encrypt", "decrypt", "migrate", "model", "workspace", "config", "token", "user", "completion", "version",
]
# fmt: on
# Those whose first arguments were names of other commands.
EARLIER_PATHS = [
    (["queue", "retry"], ["jobs", "queue", "retry"]),
    (["snapshot", "take"], ["store", "snapshot", "take"]),
    (["snapshot", "restore"], ["store", "snapshot", "restore"]),
    (["candidates", "accept"], ["review", "candidates", "accept"]),
    (["audit", "undo"], ["logs", "audit", "undo"]),
    (["audit", "access"], ["logs", "audit", "access"]),
    (["hooks", "log"], ["logs", "hooks", "log"]),
    (["entities", "show"], ["graph", "entities", "show"]),
    (["incognito", "on"], ["sessions", "incognito", "on"]),
]


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(cli, arguments, **options)
    assert result.exit_code == code, result.output
    return result


def resolve(*arguments):
    """Return the command that a command line runs."""
    context = click.Context(cli, info_name="reverie")
    words, command = list(arguments), cli
    while isinstance(command, click.Group) and words:
        _, command, words = command.resolve_command(context, words)
        context = click.Context(command, parent=context)
    return command


def test_the_help_fits_one_screen():
    lines = run("--help", terminal_width=80).stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    for section in SECTIONS.values():
        for name in section:
            assert any(f" {name} " in line for line in lines), name


def test_the_help_is_one_column_in_a_narrow_terminal():
    lines = run("--help", terminal_width=50).stdout.splitlines()
    assert max(len(line) for line in lines if line.startswith("  ")) <= 50


def test_the_help_names_no_earlier_name():
    visible = {name for section in SECTIONS.values() for name in section}
    assert visible & (set(ALIASES) | set(SUGGESTIONS)) == set()
    assert visible & set(HIDDEN) == set()
    assert set(cli.list_commands(click.Context(cli))) == visible


@pytest.mark.parametrize("name", EARLIER)
def test_every_earlier_name_still_works(name):
    assert run(name, "--help").stdout


@pytest.mark.parametrize(("name", "path"), [(n, p) for n, p in ALIASES.items() if n != "version"])
def test_an_alias_runs_the_command_that_it_names(name, path):
    words = [word for word in path if not word.startswith("-")]
    assert resolve(name, *(["setting"] if name == "capture" else [])) is resolve(
        *words, *(["x"] if name == "capture" else [])
    )


@pytest.mark.parametrize(("old", "new"), EARLIER_PATHS, ids=" ".join)
def test_the_commands_below_an_earlier_name_still_work(old, new):
    assert resolve(*old) is resolve(*new)


def test_an_entity_after_graph_is_shown_as_before():
    assert resolve("graph", "postgres") is resolve("graph", "show")


def test_sleep_runs_the_same_command_as_jobs_run():
    assert resolve("sleep") is resolve("jobs", "run")


@pytest.mark.parametrize("name", SUGGESTIONS)
def test_words_with_several_meanings_are_answered_with_the_commands(name):
    assert "`reverie " in run(name, code=2).stderr


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        (["delete"], "`reverie purge ID`"),
        (["restart"], "`reverie up --daemon`"),
        (["remeber"], "Did you mean `reverie remember`?"),
        (["entitis"], "Did you mean `reverie graph entities`?"),
        (["serch"], "Did you mean `reverie recall`?"),
        (["facts", "sett"], "Did you mean `reverie facts set`?"),
        (["review", "candidate"], "Did you mean `reverie review candidates`?"),
        (["frobnicate"], "Run `reverie --help`"),
    ],
)
def test_an_unknown_command_is_answered_with_the_nearest(typed, suggested):
    error = run(*typed, code=2).stderr
    assert f'There is no command "{typed[-1]}".' in error
    assert suggested in error


def imports(file):
    """Yield the modules of the command line that a module imports, at its top or in a function."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "web.cli":
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("web.cli."):
            yield node.module.removeprefix("web.cli.")


def test_no_modules_of_the_command_line_import_each_other_in_a_circle():
    names = {file.stem: set(imports(file)) for file in PACKAGE.glob("*.py") if file.stem != "__main__"}
    left = dict(names)
    while free := [name for name, needed in left.items() if not needed & set(left)]:
        for name in free:
            del left[name]
    assert left == {}
