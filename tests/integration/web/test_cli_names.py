"""The tree of commands: sections, synonyms, suggestions, and the imports behind them."""

import ast
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from web.cli import HIDDEN, cli
from web.cli.command import SUGGESTIONS, SYNONYMS

PACKAGE = Path(__file__).parents[3] / "web" / "cli"


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
    for section in cli.sections.values():
        for entry in section:
            assert any(f" {entry.name} " in line for line in lines), entry.name


def test_the_help_is_one_column_in_a_narrow_terminal():
    lines = run("--help", terminal_width=50).stdout.splitlines()
    assert max(len(line) for line in lines if line.startswith("  ")) <= 50


def test_the_help_names_no_synonym():
    visible = {entry.name for section in cli.sections.values() for entry in section}
    assert visible & (set(SYNONYMS) | set(SUGGESTIONS)) == set()
    assert visible & {entry.name for entry in HIDDEN} == set()
    assert set(cli.list_commands(click.Context(cli))) == visible


@pytest.mark.parametrize(("name", "path"), SYNONYMS.items())
def test_a_synonym_runs_the_command_that_it_names(name, path):
    words = [word for word in path if not word.startswith("-")]
    assert resolve(name, *(["setting"] if name == "capture" else [])) is resolve(
        *words, *(["x"] if name == "capture" else [])
    )


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
        (["logs", "audt"], "Did you mean `reverie logs audit`?"),
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
