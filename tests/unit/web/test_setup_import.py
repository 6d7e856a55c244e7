"""The description and the question of a setup that imports existing sessions."""

import pytest

from pipeline.sessions.discovery import StoredSessions
from web.features.hosts.report import ImportOffer, list_connections
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hosts import BY_NAME
from web.hosts.setup_plan import FileChange

CLAUDE = StoredSessions("claude-code", "Claude Code", 1204, 0, 310 * 1024**2, "2025-11-02T10:00:00.000Z")
GOOSE = StoredSessions("goose", "Goose", 3, 1, 2048, "2026-02-03T10:00:00.000Z")
BROKEN = StoredSessions("aider", "aider", problem="permission denied")


def test_the_sessions_of_all_agents_are_described_in_one_line(capsys):
    ImportOffer((CLAUDE, GOOSE, BROKEN)).show()
    output, errors = capsys.readouterr()
    assert output == "Past sessions: Claude Code 1,204, Goose 3 + 1 database (310.0 MiB, since 2025-11-02)\n"
    assert errors == "Cannot list the sessions of aider: permission denied\n"


def test_nothing_is_printed_without_sessions(capsys):
    ImportOffer().show()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("sessions", "pending", "question"),
    [
        ((), True, "Write these changes?"),
        ((CLAUDE,), True, "Write these changes and import 1,204 sessions?"),
        ((CLAUDE, GOOSE), False, "Import 1,207 sessions and the sessions in 1 database?"),
        ((BROKEN,), True, "Write these changes?"),
    ],
)
def test_one_question_names_all_that_happens(sessions, pending, question):
    assert ImportOffer(sessions).ask(pending=pending) == question


@pytest.mark.parametrize(
    ("changes", "connection"),
    [
        ([FileChange(path, ("codex",), b"", b"x") for path in ("a", "b")], "hooks, tools, rules"),
        ([FileChange("a", ("codex",), b"x", b"x")], "up to date"),
        (
            [FileChange("a", ("codex",), b"x", b"x"), FileChange("b", ("codex",), error="not valid")],
            "cannot be changed",
        ),
    ],
)
def test_connection_is_named_after_the_written_setup(tmp_path, changes, connection):
    host_env = HostEnvironment(tmp_path, "linux", lambda _name: None, lambda _name: None)
    assert list_connections([BY_NAME["codex"]], host_env, Installation(tmp_path), changes) == [connection]
