import pytest

from pipeline.kernel.store import transcripts
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.transcripts import FileMark, Transcripts, hash_name, name_file

FILE = name_file("claude-code", "/home/ann/okapi.jsonl")


@pytest.fixture
def known(tmp_path):
    return Transcripts(HomeFile(tmp_path / "home.sqlite"))


def test_transcript_names_read_before_are_known(known):
    assert known.list_known(["u1"]) == set()
    known.note_read(["u2", "u1"])
    known.note_read(["u1", "u3"])
    assert known.list_known(["u1", "u3", "u4"]) == {"u1", "u3"}


def test_a_name_may_have_any_characters():
    assert hash_name(("id", "\ud800")) != hash_name(("id", "\ud801"))


def test_each_file_has_its_mark(known):
    assert known.find_mark(FILE) is None
    known.note_read([], {FILE: ("claude-code", FileMark("a mark"))})
    known.note_read([], {FILE: ("claude-code", FileMark("a later mark", 7, 1.0))})
    assert known.find_mark(FILE) == "a later mark"
    assert known.find_mark(name_file("codex", "/home/ann/okapi.jsonl")) is None
    assert known.list_file_marks("claude-code") == {FILE: FileMark("a later mark", 7, 1.0)}


def test_no_word_and_no_path_is_in_the_file(known, tmp_path):
    # No clock shows this time: the file also says when its tables were made.
    names = [hash_name(("id", "u1")), hash_name(("at", "25:61", "The customer is Okapi Ltd"))]
    known.note_read(names, {FILE: ("claude-code", FileMark("a mark"))})
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"kapi" not in stored
    assert b"25:61" not in stored


def test_the_names_do_not_grow_for_ever(known, monkeypatch):
    monkeypatch.setattr(transcripts, "KEPT_RECORDS", 3)
    for number in range(5):
        known.note_read([f"u{number}"])
    assert known.list_known(["u4", "u0"]) == {"u4"}


def test_a_file_that_is_put_in_its_place_is_made_ready_too(known, tmp_path):
    known.note_read(["u1"])
    empty = tmp_path / "empty"
    empty.touch()
    for log in tmp_path.glob("home.sqlite-*"):
        log.unlink()
    empty.replace(tmp_path / "home.sqlite")
    assert known.list_known(["u1"]) == set()
