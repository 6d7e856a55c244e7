"""Databases of agents are read in rounds; each round reads what changed."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.kernel.store import foreign_database
from pipeline.sessions.readers.database_rounds import Round
from pipeline.sessions.readers.reader import Places, Said, load_reader

DATA = Path(__file__).parents[3] / "data" / "transcripts"
AGENTS = ("cursor", "opencode", "goose")
MESSAGE = {"type": "text", "text": "also test it on Windows"}


@pytest.fixture(params=AGENTS)
def agent(request):
    return request.param


@pytest.fixture
def file(agent, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(DATA / agent / "home", home)
    for script in home.rglob("*.sql"):
        with closing(sqlite3.connect(script.with_suffix(""))) as db:
            db.executescript(script.read_text(encoding="utf-8"))
    (found,) = [
        file
        for file in load_reader(agent).discover(Places(home, {}, "linux"))
        if file.path.suffix not in {".jsonl", ".txt"}
    ]
    return found


def read(file, mark=None):
    return list(load_reader(file.agent).read(file, mark))


def list_texts(parts):
    return [entry.content for part in parts for entry in part.entries if isinstance(entry, Said)]


def change(file, *statements):
    with closing(sqlite3.connect(file.path)) as db, db:
        for statement, *values in statements:
            db.execute(statement, values)


def add_message(file):
    text = json.dumps(MESSAGE)
    later = 1_900_000_000_000
    user = json.dumps({"role": "user", "time": {"created": later}})
    bubble = json.dumps({"type": 1, "text": MESSAGE["text"]})
    statements = {
        "cursor": [("INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b8', ?)", bubble)],
        "opencode": [
            ("INSERT INTO message VALUES ('msg_19', 'ses_1', ?, ?, ?)", later, later, user),
            ("INSERT INTO part VALUES ('prt_19', 'msg_19', 'ses_1', ?, ?, ?)", later, later, text),
        ],
        "goose": [("INSERT INTO messages VALUES (10, 'g9', '20251229_1', 'user', ?, 1900000000, NULL)", f"[{text}]")],
    }
    change(file, *statements[file.agent])


def test_next_read_returns_only_new_messages(file):
    first = read(file)
    assert list_texts(first)
    add_message(file)
    assert list_texts(read(file, first[-1].mark)) == [MESSAGE["text"]]


def test_an_interrupted_reading_continues_with_the_next_session(file):
    parts = read(file)
    assert len({part.session.id for part in parts}) == 3
    rest = read(file, parts[0].mark)
    assert [part.session.id for part in rest] == [part.session.id for part in parts[1:]]
    assert rest[-1].mark == parts[-1].mark


def test_older_database_copy_is_read_again(file):
    first = read(file)
    assert list_texts(read(file, json.dumps({"since": 2**40 * 2}))) == list_texts(first)


@pytest.mark.parametrize("statement", ["DROP TABLE {}", "ALTER TABLE {} RENAME TO migrating"])
def test_a_database_during_a_migration_is_a_problem(file, statement):
    table = {"cursor": "cursorDiskKV", "opencode": "part", "goose": "messages"}[file.agent]
    change(file, (statement.format(table),))
    (part,) = read(file, '{"since": 3}')
    assert part.entries == ()
    assert part.mark == '{"since": 3}'
    assert len(part.problems) == 1


def test_a_locked_database_is_a_problem_and_the_mark_stays(file, monkeypatch):
    monkeypatch.setattr(foreign_database, "BUSY_S", 0.02)
    with closing(sqlite3.connect(file.path, isolation_level=None)) as program:
        program.execute("BEGIN EXCLUSIVE")
        (part,) = read(file, '{"since": 3}')
    assert part.mark == '{"since": 3}'
    assert "locked" in part.problems[0]


def test_the_file_that_grows_while_the_agent_runs_counts(file):
    with closing(sqlite3.connect(file.path)) as program:
        program.execute("PRAGMA journal_mode=wal")
        program.execute("CREATE TABLE other (a)")
        home = next(path for path in file.path.parents if path.name == "home")
        sizes = [
            found.size
            for found in load_reader(file.agent).discover(Places(home, {}, "linux"))
            if found.path == file.path
        ]
        assert sizes == [file.path.stat().st_size + file.path.with_name(f"{file.path.name}-wal").stat().st_size]


def test_a_message_of_cursor_that_grew_in_the_last_row_is_read_again(tmp_path):
    file = _cursor(tmp_path)
    change(file, ("INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b9', ?)", json.dumps({"type": 2, "text": "It is"})))
    mark = read(file)[-1].mark
    assert list_texts(read(file, mark)) == []
    # The row is replaced, and gets the same number.
    change(
        file, ("INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b9', ?)", json.dumps({"type": 2, "text": "It is done."}))
    )
    assert list_texts(read(file, mark)) == ["It is done."]


def test_cursor_reads_no_row_of_a_token(tmp_path, monkeypatch):
    file = _cursor(tmp_path)
    values = []
    monkeypatch.setattr(
        "pipeline.sessions.readers.cursor.parse_json",
        lambda text: values.append(text) or json.loads(text or "null"),
    )
    assert list_texts(read(file))
    assert values
    assert not [value for value in values if "token" in str(value)]


def _cursor(tmp_path):
    path = tmp_path / ".config/Cursor/User/globalStorage/state.vscdb"
    path.parent.mkdir(parents=True)
    script = DATA / "cursor/home/.config/Cursor/User/globalStorage/state.vscdb.sql"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script.read_text(encoding="utf-8"))
    (file,) = load_reader("cursor").discover(Places(tmp_path, {}, "linux"))
    return file


def test_a_round_ends_where_it_began_although_more_is_written():
    round_ = Round.resume(None, 10)
    again = Round.resume(round_.after("s1"), 25)
    assert (again.since, again.until, again.session) == (0, 10, "s1")
    assert Round.resume(again.end, 25) == Round(10, 25)
