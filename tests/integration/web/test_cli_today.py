"""`reverie today`: each row with its sentence, and with commands that undo, edit and delete."""

import re
import shlex
from datetime import UTC, datetime

import pytest

from pipeline.kernel.store import changes
from tests.fakes.command_line import remember, run, run_json, serve_app


@pytest.fixture(autouse=True)
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield port


def undo_of(output):
    """Return the printed undo command without the name of the program."""
    (command,) = re.findall(r"undo: reverie (.+)", output)
    return shlex.split(command)


def active():
    return [memory["content"] for memory in run_json("list")["items"]]


def test_empty_day_explains_how_to_add_memories():
    told = run("today")
    assert told.stdout == ""
    assert "Nothing was learned, changed or forgotten today" in told.stderr
    assert "reverie remember" in told.stderr


def test_a_day_by_workspace_with_short_ids_and_commands():
    here = remember("Invoices are rounded to cents")
    run("-w", "blog", "remember", "Posts are written in Markdown")
    lines = run("today").stdout.splitlines()
    assert lines[0] == "blog"
    assert "default" in lines
    (row,) = [line for line in lines if "Invoices" in line]
    assert here[-8:] in row
    assert row.endswith("Invoices are rounded to cents  (user)")
    assert any("reverie -w blog forget ID" in line for line in lines)
    assert any("reverie edit ID" in line for line in lines)
    assert "Posts" not in run("-w", "default", "today").stdout
    run("edit", here[-8:], "--content", "Invoices are rounded to five cents")
    run("forget", here[-8:])
    assert "forgotten" in run("today").stdout


def test_printed_undo_command_restores_the_memory():
    memory = remember("The importer reads CSV; it's fast")
    run("forget", memory)
    run(*undo_of(run("today").stdout))
    assert active() == ["The importer reads CSV; it's fast"]


def test_an_edit_of_an_older_memory_is_undone_with_the_sentence_before(monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr(changes.time, "time_ns", lambda: int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1e9))
        memory = remember("The importer reads CSV; it's fast")
    run("edit", memory, "--content", "The importer reads TSV")
    told = run("today").stdout
    assert "The importer reads CSV; it's fast → The importer reads TSV  (edited)" in told
    run(*undo_of(told))
    assert active() == ["The importer reads CSV; it's fast"]


@pytest.mark.parametrize("value", ["10 per second", "25", "it's 5"])
def test_a_new_value_is_undone_with_the_value_before(value):
    run("facts", "set", "sms gateway", "rate", value)
    before = run_json("facts", "get", "sms gateway", "rate")
    run("facts", "set", "sms gateway", "rate", "99 per minute")
    assert "→ sms gateway rate: 99 per minute" in run("today").stdout
    run(*undo_of(run("today").stdout))
    assert run_json("facts", "get", "sms gateway", "rate")["value"] == before["value"]


def test_of_a_purged_memory_no_word_is_printed():
    gone = remember("The flumadiddle is behind the door")
    run("purge", gone, "--yes")
    told = run("today").stdout
    assert "a memory was deleted permanently" in told
    assert "flumadiddle" not in told


@pytest.mark.usefixtures("central_europe")
def test_a_day_starts_at_the_midnight_of_the_person(monkeypatch):
    for number, at in enumerate(("2026-03-10T22:30", "2026-03-10T23:30", "2026-03-11T22:59", "2026-03-11T23:01")):
        written = datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()
        monkeypatch.setattr(changes.time, "time_ns", lambda written=written: int(written * 1e9))
        remember(f"Sentence number {'abcd'[number]} of the night")
    told = run("today", "--day", "2026-03-11").stdout
    assert re.findall(r"number (\w)", told) == ["c", "b"]
    assert "00:30" in told
    assert re.findall(r"number (\w)", run("today", "--day", "2026-03-10").stdout) == ["a"]


def test_a_day_can_be_named():
    remember("Invoices are rounded to cents")
    assert "on " in run("today", "--day", "yesterday").stderr
    assert "Invoices" in run("today", "--day", "today").stdout
    run("today", "--day", "someday", code=2)
