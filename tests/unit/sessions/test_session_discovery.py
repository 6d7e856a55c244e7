"""Sessions on this machine are counted without reading them all."""

import os

import pytest

from pipeline.kernel.store.turns import Role
from pipeline.sessions import discovery as session_discovery
from pipeline.sessions.discovery import StoredSessions, find_stored_sessions
from pipeline.sessions.readers.reader import Said, SessionHead, SessionPart, TranscriptFile

DAY_S = 86_400


class FakeReader:
    """An agent whose sessions are files `*.txt` with a start time, and databases `*.db`."""

    def __init__(self, agent, error=None):
        self.agent, self.error = agent, error
        self.read_paths = []

    def discover(self, places):
        if self.error is not None:
            raise self.error
        for path in sorted((places.home / self.agent).glob("*")):
            yield TranscriptFile(self.agent, path, path.stat().st_size, path.stat().st_mtime)

    def read(self, file, _mark):
        self.read_paths.append(file.path.name)
        text = file.path.read_text()
        if text == "damaged":
            raise ValueError("damaged")
        said = Said(Role.USER, "hello", at=text)
        yield SessionPart(SessionHead(self.agent, file.path.stem), (said,), "1")
        pytest.fail("only the first part is needed")


@pytest.fixture
def find(tmp_path, monkeypatch):
    def find_with(*readers, agents=None):
        named = {reader.agent: reader for reader in readers}
        monkeypatch.setattr(session_discovery, "READERS", {agent: (agent.title(), "") for agent in named})
        monkeypatch.setattr(session_discovery, "load_reader", named.__getitem__)
        return find_stored_sessions(tmp_path, {}, "linux", agents)

    return find_with


def write(folder, name, text, day):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    os.utime(folder / name, (day * DAY_S, day * DAY_S))


def test_files_and_databases_are_counted_and_the_oldest_agent_comes_first(find, tmp_path):
    write(tmp_path / "pen", "a.txt", "2026-03-01T10:00:00.000Z", 20_600)
    write(tmp_path / "pen", "b.txt", "2026-03-05T10:00:00.000Z", 20_610)
    write(tmp_path / "quill", "all.db", "2025-11-02T10:00:00.000Z", 20_620)
    assert find(FakeReader("pen"), FakeReader("quill"), FakeReader("unused")) == [
        StoredSessions("quill", "Quill", 0, 1, 24, "2025-11-02T10:00:00.000Z"),
        StoredSessions("pen", "Pen", 2, 0, 48, "2026-03-01T10:00:00.000Z"),
    ]


def test_a_copied_folder_has_the_age_of_its_records_and_few_files_are_read(find, tmp_path):
    for number in range(20):
        write(tmp_path / "pen", f"{number:02}.txt", f"2026-01-{number + 1:02}T10:00:00.000Z", 20_700 + number)
    reader = FakeReader("pen")
    [sessions] = find(reader)
    assert sessions.oldest_at == "2026-01-01T10:00:00.000Z"
    assert len(reader.read_paths) == session_discovery.OLDEST_READ


def test_a_file_that_cannot_be_read_has_the_time_of_its_change(find, tmp_path):
    write(tmp_path / "pen", "a.txt", "damaged", 20_000)
    [sessions] = find(FakeReader("pen"))
    assert (sessions.files, sessions.oldest_at) == (1, "2024-10-04T00:00:00.000Z")


def test_unlistable_agent_is_reported_and_other_agents_are_found(find, tmp_path):
    write(tmp_path / "pen", "a.txt", "2026-03-01T10:00:00.000Z", 20_600)
    found = find(FakeReader("pen"), FakeReader("ink", OSError("permission denied")))
    assert [(sessions.agent, sessions.problem) for sessions in found] == [("pen", None), ("ink", "permission denied")]


def test_other_agents_are_not_searched(find, tmp_path):
    write(tmp_path / "pen", "a.txt", "2026-03-01T10:00:00.000Z", 20_600)
    assert [sessions.agent for sessions in find(FakeReader("pen"), FakeReader("ink", OSError()), agents={"pen"})] == [
        "pen"
    ]
