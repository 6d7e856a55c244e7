"""No code page of a terminal ends a command.

From field reports of the kind "UnicodeEncodeError: 'charmap' codec can't encode character".
"""

import io
import json
import sys

import click
import pytest

from web.cli.output import adapt_streams, dump_json
from web.cli.render import print_pairs, table

TEXT = "staging → port 5433, Größe 3 µm, 日本語, 🚀, \udcff"


def open_terminal(monkeypatch, encoding):
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding, errors="strict", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    return written


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "cp437", "gbk", "shift_jis", "koi8-r", "ascii", "utf-8"])
@pytest.mark.parametrize("named", [True, False])
def test_characters_missing_in_the_terminal_encoding_are_replaced(monkeypatch, encoding, named):
    written = open_terminal(monkeypatch, "utf-8" if named else encoding)
    adapt_streams(encoding if named else None)
    click.echo(TEXT)
    table(["id", "content"], [["1", TEXT]])
    sys.stdout.flush()
    shown = written.getvalue().decode(encoding)
    assert shown.startswith("staging ")
    assert "port 5433" in shown
    assert "?" in shown


@pytest.mark.parametrize("encoding", ["latin-1", "gbk", "ascii", "utf-8"])
def test_json_loses_nothing(monkeypatch, encoding):
    written = open_terminal(monkeypatch, encoding)
    adapt_streams(None)
    click.echo(dump_json({"content": TEXT}))
    sys.stdout.flush()
    assert json.loads(written.getvalue().decode(encoding)) == {"content": TEXT}


def test_unknown_encoding_is_ignored(monkeypatch):
    written = open_terminal(monkeypatch, "utf-8")
    adapt_streams("no-such-encoding")
    click.echo("→")
    sys.stdout.flush()
    assert written.getvalue().decode() == "→\n"


def test_a_program_without_a_console_has_no_streams(monkeypatch):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    adapt_streams("latin-1")


def test_a_narrow_terminal_cuts_no_word(monkeypatch):
    written = open_terminal(monkeypatch, "utf-8")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    ids = ["a" * 40, "b" * 40]
    table(["session", "agent", "name"], [[*ids, "a name of several words"]])
    shown = written.getvalue().decode()
    assert "…" not in shown
    assert all(word in shown for word in (*ids, "several"))


def test_further_lines_of_a_value_stand_below_the_first(capsys):
    print_pairs([("after", "one\ntwo"), ("why", None)])
    assert capsys.readouterr().out == "after  one\n       two\nwhy    -\n"
