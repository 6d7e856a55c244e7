"""One suite over all readers of transcripts. A reader needs no test of its own to be checked here, only a fixture.

`tests/data/transcripts/<agent>/` contains `home/`, a small made-up home folder, and `expected.json`:

- `sessions`: what is read of each file, in order of the paths. `file` is the path within the home; `id`, `cwd`,
  `branch`, `title`, `started_at` and `parent` are those of the last part, if not empty. `entries` are
  `{"user": TEXT}`, `{"assistant": TEXT}` and `{"tool": NAME, "arguments": {}}`, each with what else is not empty:
  `at`, `id`, `ok`, `exit_code`, `error`, `replaced`. `left_out` counts records by reason. Several sessions of one
  file are several items. `READERS_WRITE_EXPECTED=1` writes the file anew: read the difference before you commit it.
- `environment` (optional): variables. In them, and in a `cwd`, `{home}` stands for the home folder.

A file of the home whose name ends in `.sql` becomes an SQLite database of the name before it. Files that end in
`.jsonl` and `.md` are logs: they are also read in parts, with garbage between their lines, and repeated many times.
The word PLANTED-INJECTION stands in every place of which nothing may be imported.
"""

import json
import os
import random
import shutil
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pipeline.kernel.store.turns import Role
from pipeline.kernel.times import parse
from pipeline.sessions.readers import session_log
from pipeline.sessions.readers.reader import (
    ERROR_CHARS,
    READERS,
    Entry,
    Places,
    Said,
    SessionPart,
    ToolUse,
    TranscriptFile,
    TranscriptReader,
    load_reader,
)

DATA = Path(__file__).parents[1] / "data" / "transcripts"
PLANTED = "PLANTED-INJECTION"
LOGS = (".jsonl", ".md")
# Files of a fixture did not change for a long time.
LONG_AGO = 1_767_225_600
MOST_ENTRIES_OF_A_PART = 5000
MOST_CHARS_OF_A_PART = 4_000_000
GARBAGE = (
    b"",
    b"\x00\xff\xfe{",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"{}",
    b'{"type":5,"message":7,"payload":[],"data":"x"}',
    b'{"type":"user","message":{"role":"user","content":{"a":1}}}',
    b'{"type":"unheard-of","message":{"content":[[]]}}',
    b"[" * 5000,
)
AGENTS = sorted(READERS)
FUZZED = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@dataclass(frozen=True)
class Home:
    """A copy of an agent's fixture."""

    agent: str
    reader: TranscriptReader
    places: Places
    expected: dict[str, Any]

    def files(self) -> list[TranscriptFile]:
        return list(self.reader.discover(self.places))

    def logs(self) -> list[TranscriptFile]:
        return [file for file in self.files() if file.path.suffix in LOGS]

    def name(self, file: TranscriptFile) -> str:
        return file.path.relative_to(self.places.home).as_posix()


@pytest.fixture(params=AGENTS)
def home(request, tmp_path) -> Home:
    return open_home(request.param, tmp_path / "home")


def open_home(agent: str, folder: Path) -> Home:
    shutil.copytree(DATA / agent / "home", folder)
    for script in sorted(folder.rglob("*.sql")):
        with sqlite3.connect(script.with_suffix("")) as db:
            db.executescript(script.read_text(encoding="utf-8"))
        db.close()
        script.unlink()
    for path in folder.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    file = DATA / agent / "expected.json"
    expected = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    environment = {name: value.format(home=folder) for name, value in expected.get("environment", {}).items()}
    return Home(agent, load_reader(agent), Places(folder, environment, "linux"), expected)


def read(home: Home, file: TranscriptFile, mark: str | None = None) -> list[SessionPart]:
    return list(home.reader.read(file, mark))


def list_entries(parts: list[SessionPart]) -> list[tuple[str, Entry]]:
    """Return the entries. Whether a message was answered is only known if its answer is in the same part."""
    entries = [(part.session.id, entry) for part in parts for entry in part.entries]
    return [
        (name, replace(entry, is_unanswered=False) if isinstance(entry, Said) else entry) for name, entry in entries
    ]


def render(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON, without what is empty."""
    fields = asdict(entry)
    if isinstance(entry, Said):
        first = {str(fields.pop("role")): fields.pop("content")}
    else:
        first = {"tool": fields.pop("tool"), "arguments": fields.pop("arguments")}
    empty = (None, "", *([False] if isinstance(entry, Said) else []))
    return first | {name: value for name, value in sorted(fields.items()) if value not in empty}


def describe(home: Home) -> list[dict[str, Any]]:
    """Return what is read of all files of a home, in the form of `expected.json`."""
    sessions: list[dict[str, Any]] = []
    for file in home.files():
        parts = read(home, file)
        for session_id in dict.fromkeys(part.session.id for part in parts):
            own = [part for part in parts if part.session.id == session_id]
            head = {name: value for name, value in asdict(own[-1].session).items() if value and name != "agent"}
            if cwd := head.get("cwd"):
                head["cwd"] = cwd.replace(str(home.places.home), "{home}")
            left_out: Counter[str] = sum((part.left_out for part in own), Counter())
            sessions.append(
                {"file": home.name(file)}
                | head
                | {"entries": [render(entry) for part in own for entry in part.entries]}
                | {"left_out": {str(reason): left_out[reason] for reason in sorted(left_out)}}
            )
    return sessions


def test_every_reader_has_a_fixture_and_every_fixture_a_reader():
    assert sorted(path.name for path in DATA.iterdir() if path.is_dir()) == AGENTS
    assert [agent for agent in AGENTS if load_reader(agent).agent != agent] == []


def test_transcript_reader_returns_the_expected_sessions(home):
    found = describe(home)
    if os.environ.get("READERS_WRITE_EXPECTED"):
        text = json.dumps(home.expected | {"sessions": found}, ensure_ascii=False, indent=1)
        (DATA / home.agent / "expected.json").write_text(text + "\n", encoding="utf-8")
    assert found == json.loads((DATA / home.agent / "expected.json").read_text(encoding="utf-8"))["sessions"]
    assert any(session["entries"] for session in found)


def test_host_injected_transcript_text_is_not_imported(home):
    stored = [path for path in (DATA / home.agent / "home").rglob("*") if path.is_file()]
    assert any(PLANTED in path.read_text(encoding="utf-8", errors="replace") for path in stored)
    for file in home.files():
        for part in read(home, file):
            assert PLANTED not in repr(part.session)
            assert [entry for entry in part.entries if PLANTED in repr(entry)] == []


_OPENED: list[str] | None = None


def _note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    if _OPENED is not None and event in ("os.scandir", "os.listdir", "open", "sqlite3.connect", "glob.glob"):
        _OPENED.append(f"{event} {arguments[0]}")


sys.addaudithook(_note_opened)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_an_agent_that_was_never_used_costs_nothing(agent, platform, tmp_path):
    for number in range(30):
        (tmp_path / f"project-{number}" / "src").mkdir(parents=True)
    reader = load_reader(agent)
    globals()["_OPENED"] = opened = []
    try:
        files = list(reader.discover(Places(tmp_path, {}, platform)))
    finally:
        globals()["_OPENED"] = None
    assert files == []
    assert len(opened) <= 15, opened


def test_nothing_is_changed(home):
    before = list(_list_states(home.places.home))
    for file in home.files():
        read(home, file)
    assert list(_list_states(home.places.home)) == before


def _list_states(folder: Path) -> Iterator[tuple[str, int, bytes]]:
    for path in sorted(folder.rglob("*")):
        yield str(path), path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b""


def test_a_file_that_did_not_change_is_read_once(home):
    for file in home.files():
        parts = read(home, file)
        assert parts
        assert list_entries(read(home, file, parts[-1].mark)) == []


@pytest.mark.parametrize("is_torn", [False, True])
def test_a_log_that_grows_is_read_as_if_at_once(home, is_torn):
    rng = random.Random(7)
    for file in home.logs():
        data = file.path.read_bytes()
        full = list_entries(read(home, file))
        lines = data.splitlines(keepends=True)
        for count in range(len(lines) + 1):
            torn = lines[count][: rng.randrange(len(lines[count]))] if is_torn and count < len(lines) else b""
            # The session still runs.
            first = _read_grown(home, file, b"".join(lines[:count]) + torn, None, time.time())
            mark = first[-1].mark if first else None
            second = _read_grown(home, file, data, mark, LONG_AGO)
            assert list_entries(first) + list_entries(second) == full, (home.name(file), count, torn)
            assert (second or first)[-1].session == read(home, file)[-1].session


def _read_grown(home: Home, file: TranscriptFile, data: bytes, mark: str | None, modified: float) -> list[SessionPart]:
    file.path.write_bytes(data)
    return read(home, replace(file, size=len(data), modified=modified), mark)


def test_a_log_that_grows_line_by_line_is_read_as_if_at_once(home):
    for file in home.logs():
        data = file.path.read_bytes()
        full = list_entries(read(home, file))
        entries, mark, grown = [], None, b""
        for line in data.splitlines(keepends=True):
            grown += line
            parts = _read_grown(home, file, grown, mark, time.time())
            entries += list_entries(parts)
            mark = parts[-1].mark if parts else mark
        entries += list_entries(_read_grown(home, file, data, mark, LONG_AGO))
        assert entries == full


def test_replaced_file_is_read_again(home):
    for file in home.logs():
        data = file.path.read_bytes()
        mark = read(home, file)[-1].mark
        lines = data.splitlines(keepends=True)
        shorter = b"".join(lines[: len(lines) // 2])
        again = _read_grown(home, file, shorter, mark, LONG_AGO)
        assert list_entries(again) == list_entries(_read_grown(home, file, shorter, None, LONG_AGO))
        other = data.replace(b"0", b"1")
        assert len(list_entries(_read_grown(home, file, other, mark, LONG_AGO))) > 0 or not list_entries(
            _read_grown(home, file, other, None, LONG_AGO)
        )


def test_garbage_between_lines_adds_and_loses_nothing(home):
    for file in home.logs():
        if file.path.suffix != ".jsonl":
            continue
        lines = file.path.read_bytes().splitlines()
        full = list_entries(read(home, file))
        for garbage in GARBAGE:
            mixed = b"\n".join(part for line in lines for part in (line, garbage)) + b"\n"
            parts = _read_grown(home, file, mixed, None, LONG_AGO)
            assert list_entries(parts) == full, garbage


def test_objects_glued_on_one_line_are_all_read(home):
    for file in home.logs():
        if file.path.suffix == ".jsonl":
            lines = file.path.read_bytes().splitlines()
            full = list_entries(read(home, file))
            glued = b"".join(line + (b"" if number % 2 else b"\n") for number, line in enumerate(lines))
            assert list_entries(_read_grown(home, file, glued, None, LONG_AGO)) == full


def test_a_file_without_a_final_line_feed_is_read_completely(home):
    for file in home.logs():
        full = list_entries(read(home, file))
        data = file.path.read_bytes().rstrip(b"\n")
        assert list_entries(_read_grown(home, file, data, None, LONG_AGO)) == full


def check_parts(parts: list[SessionPart]) -> None:
    for part in parts:
        assert isinstance(part.mark, str)
        assert part.session.id
        json.dumps(asdict(part.session)).encode()
        _check_time(part.session.started_at)
        for entry in part.entries:
            text = json.dumps(asdict(entry), ensure_ascii=False)
            text.encode()
            assert "\\u0000" not in text
            _check_time(entry.at)
            if isinstance(entry, Said):
                assert entry.content.strip()
                assert entry.role in (Role.USER, Role.ASSISTANT)
            else:
                assert isinstance(entry, ToolUse)
                assert entry.tool
                assert entry.ok in (None, True, False)
                assert len(entry.error) <= ERROR_CHARS


def _check_time(at: str | None) -> None:
    assert at is None or parse(at)


@contextmanager
def changed(file: TranscriptFile, content: bytes) -> Iterator[None]:
    """Let a file have another content during a block: the examples of a property share one home."""
    before = file.path.read_bytes()
    file.path.write_bytes(content)
    try:
        yield
    finally:
        file.path.write_bytes(before)


@FUZZED
@given(data=st.data())
def test_damaged_files_are_problems_and_never_errors(home, data):
    file = data.draw(st.sampled_from(home.files()))
    content = bytearray(file.path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        begin = data.draw(st.integers(0, len(content)))
        end = begin + data.draw(st.integers(0, 40))
        content[begin:end] = data.draw(st.one_of(st.binary(max_size=20), st.sampled_from(GARBAGE)))
    with changed(file, bytes(content)):
        check_parts(read(home, replace(file, size=len(content)), data.draw(st.none() | st.text(max_size=20))))


_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("\ud800\0x")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@FUZZED
@given(data=st.data())
def test_fields_of_other_types_are_no_errors(home, data):
    files = [file for file in home.files() if file.path.suffix in (".jsonl", ".json")]
    if not files:
        pytest.skip("the agent has no files of JSON")
    file = data.draw(st.sampled_from(files))
    text = file.path.read_text(encoding="utf-8")
    lines = text.splitlines() if file.path.suffix == ".jsonl" else [text]
    number = data.draw(st.integers(0, len(lines) - 1))
    record = json.loads(lines[number])
    paths = list(_list_paths(record))
    for path in data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3)):
        record = _replaced_at(record, path, data.draw(_VALUES))
    lines[number] = json.dumps(record)
    with changed(file, ("\n".join(lines) + "\n").encode()):
        check_parts(read(home, file))


def _list_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _list_paths(inner, (*path, key))


def _replaced_at(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, dict) and path[0] in value:
        return value | {path[0]: _replaced_at(value[path[0]], path[1:], new)}
    if isinstance(value, list) and isinstance(path[0], int) and path[0] < len(value):
        changed = list(value)
        changed[path[0]] = _replaced_at(value[path[0]], path[1:], new)
        return changed
    return value


def test_parts_are_bounded(home, monkeypatch):
    assert session_log.PART_ENTRIES < MOST_ENTRIES_OF_A_PART
    assert session_log.PART_CHARS < MOST_CHARS_OF_A_PART
    # A hundredth of both, so that a short log has several parts.
    monkeypatch.setattr(session_log, "PART_ENTRIES", session_log.PART_ENTRIES // 100)
    monkeypatch.setattr(session_log, "PART_CHARS", session_log.PART_CHARS // 100)
    for file in home.logs():
        data = file.path.read_bytes()
        once = len(list_entries(read(home, file)))
        if not once:
            continue
        parts = _read_grown(home, file, data * (3 * MOST_ENTRIES_OF_A_PART // 100 // once + 1), None, LONG_AGO)
        assert max(len(part.entries) for part in parts) <= MOST_ENTRIES_OF_A_PART // 100
        assert max(sum(len(repr(entry)) for entry in part.entries) for part in parts) <= MOST_CHARS_OF_A_PART // 100


def test_a_file_that_is_gone_is_a_problem(home):
    for file in home.files():
        file.path.unlink()
        parts = read(home, file)
        assert [problem for part in parts for problem in part.problems]
        assert list_entries(parts) == []


def test_links_in_circles_are_not_followed(home):
    files = home.files()
    for folder in {file.path.parent for file in files}:
        (folder / "circle").symlink_to(folder, target_is_directory=True)
        (folder / "itself.jsonl").symlink_to(folder / "itself.jsonl")
    assert home.files() == files


@FUZZED
@given(
    mark=st.text(max_size=60) | st.sampled_from(["null", "[]", "{}", '{"offset":-1,"digest":"","state":{}}', "0", "7"])
)
def test_a_mark_that_does_not_fit_counts_as_none(home, mark):
    file = home.files()[0]
    assert list_entries(read(home, file, mark)) == list_entries(read(home, file))
