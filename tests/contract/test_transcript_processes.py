"""A file that does not end ends only the process that reads it."""

import json
import os

import pytest

from config.limited_process import LimitedProcess
from pipeline.sessions import reading
from pipeline.sessions.prepare import PreparedPart
from pipeline.sessions.readers.reader import TranscriptFile
from pipeline.sessions.reading import ENDED, TOO_LONG, FileEnd, ReadTask, read_in_process, read_transcripts


@pytest.fixture
def chat(tmp_path):
    """Return the task of reading a session of Claude Code."""
    path = tmp_path / "3b0e7d52-6f3c-4b8e-9d57-0c6f5a1e2b11.jsonl"
    record = {"type": "user", "uuid": "u", "cwd": "/w", "message": {"role": "user", "content": "use tabs"}}
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return ReadTask(TranscriptFile("claude-code", path, path.stat().st_size, 0.0), None)


@pytest.fixture
def endless(tmp_path):
    """Return the task of reading a file that never ends."""
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    return ReadTask(TranscriptFile("claude-code", path, 10, 0.0), None)


def list_words(items):
    parts = [item for _, item in items if isinstance(item, PreparedPart)]
    return [message.content for part in parts for message in part.messages]


def test_a_worker_reads_files_in_another_process(chat, monkeypatch):
    monkeypatch.setattr(reading, "read_file", None)
    items = list(read_transcripts([chat, chat], in_worker=True))
    assert list_words(items) == ["use tabs", "use tabs"]
    assert [item for _, item in items if isinstance(item, FileEnd)] == [FileEnd(), FileEnd()]


def test_a_file_that_takes_too_long_is_given_up_and_the_next_is_read(chat, endless, monkeypatch):
    child = LimitedProcess("-c", reading.PROGRAM, str(reading.MEMORY_BYTES))
    monkeypatch.setattr(reading, "PART_S", 0.1)
    assert list(read_in_process(child, endless)) == [FileEnd(TOO_LONG, is_harmful=True)]
    monkeypatch.undo()
    assert list_words((chat, item) for item in read_in_process(child, chat)) == ["use tabs"]
    child.stop()


def test_a_file_that_ends_its_process_is_given_up(chat, monkeypatch):
    monkeypatch.setattr(reading, "PROGRAM", "this")
    (task, end), *_ = read_transcripts([chat], in_worker=True)
    assert (task, end) == (chat, FileEnd(ENDED, is_harmful=True))


def test_a_reader_that_needs_too_much_memory_is_given_up(chat, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(reading, "load_reader", fail)
    ((_, end),) = read_transcripts([chat])
    assert end.is_harmful


def test_a_reading_that_is_given_up_leaves_no_process(chat):
    items = read_transcripts([chat] * 50, in_worker=True)
    next(items)
    items.close()
