import contextlib

import pytest

from pipeline.store import transcripts
from pipeline.store.home_file import HomeFile
from pipeline.store.transcripts import MIGRATIONS, Transcripts


@pytest.fixture
def known(tmp_path):
    return Transcripts(HomeFile(tmp_path / "transcripts.sqlite", MIGRATIONS))


def add(known, *records, session="s1"):
    with known.reading(session) as reading:
        return reading.add(records)


def test_a_record_is_new_once_by_whichever_of_its_names_it_comes_back(known):
    assert add(known, [("id", "u1"), ("said", "10:00", "Hello")], [("id", "u2")]) == [True, True]
    assert add(known, [("id", "u1")], [("id", "u3"), ("said", "10:00", "Hello")], session="s2") == [False, False]
    assert add(known, [("id", "u4")], [("id", "u4")], [("id", "\ud800")]) == [True, False, True]


def test_what_has_no_name_is_always_new(known):
    assert add(known, [], []) == [True, True]


def test_what_was_forgotten_or_rolled_back_is_new_again(known):
    with contextlib.suppress(ValueError), known.reading("s1") as reading:
        reading.add([[("id", "u1")]])
        raise ValueError
    with known.reading("s1") as reading:
        assert reading.add([[("id", "u1")]]) == [True]
        reading.forget([[("id", "u1")]])
    assert add(known, [("id", "u1")]) == [True]


def test_each_transcript_has_its_mark(known):
    with known.reading("s1") as reading:
        assert reading.mark is None
        reading.set_mark("a mark", 1.0)
    with known.reading("s2") as reading:
        assert reading.mark is None
    with known.reading("s1") as reading:
        assert reading.mark == "a mark"


def test_no_word_and_no_name_is_in_the_file(known, tmp_path):
    # No clock shows this time: the file also says when its tables were made.
    add(known, [("id", "u1"), ("said", "25:61", "The customer is Okapi Ltd")], session="session-okapi")
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"kapi" not in stored
    assert b"25:61" not in stored


def test_the_tables_do_not_grow_for_ever(known, monkeypatch):
    monkeypatch.setattr(transcripts, "KEPT_RECORDS", 3)
    monkeypatch.setattr(transcripts, "KEPT_TRANSCRIPTS", 2)
    for number in range(5):
        with known.reading(f"s{number}") as reading:
            reading.add([[("id", str(number))]])
            reading.set_mark("a mark", float(number))
    assert add(known, [("id", "4")], [("id", "0")]) == [False, True]
    with known.reading("s0") as reading:
        assert reading.mark is None
    with known.reading("s4") as reading:
        assert reading.mark is not None


def test_a_file_that_is_put_in_its_place_is_made_ready_too(known, tmp_path):
    assert add(known, [("id", "u1")]) == [True]
    empty = tmp_path / "empty"
    empty.touch()
    for log in tmp_path.glob("transcripts.sqlite-*"):
        log.unlink()
    empty.replace(tmp_path / "transcripts.sqlite")
    assert add(known, [("id", "u1")]) == [True]
