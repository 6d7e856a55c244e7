"""The table and the question of a setup that imports existing sessions."""

import pytest

from pipeline.services.session_discovery import StoredSessions
from web.cli.setup_import import ImportOffer, list_connections, show_table
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hosts import BY_NAME
from web.hosts.setup_plan import FileChange

CLAUDE = StoredSessions("claude-code", "Claude Code", 1204, 0, 310 * 1024**2, "2025-11-02T10:00:00.000Z")
GOOSE = StoredSessions("goose", "Goose", 3, 1, 2048, "2026-02-03T10:00:00.000Z")
BROKEN = StoredSessions("aider", "aider", problem="permission denied")
AGENTS = [BY_NAME["claude-code"], BY_NAME["cursor"]]


def test_every_agent_has_one_row(capsys):
    show_table(AGENTS, ["hooks, tools, rules", "up to date"], ImportOffer((CLAUDE, GOOSE, BROKEN)))
    output, errors = capsys.readouterr()
    assert [line.split() for line in output.splitlines() if line] == [
        ["agent", "connect", "sessions", "size", "oldest"],
        ["Claude", "Code", "hooks,", "tools,", "rules", "1,204", "310.0", "MiB", "2025-11-02"],
        ["Cursor", "up", "to", "date", "-", "-", "-"],
        ["Goose", "-", "3", "+", "1", "database", "2.0", "KiB", "2026-02-03"],
        ["aider", "-", "-", "-", "-"],
    ]
    assert errors == "Cannot list the sessions of aider: permission denied\n"


def test_nothing_is_printed_without_agents_and_sessions(capsys):
    show_table([], [], ImportOffer())
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
def test_a_connection_is_named_by_what_setup_writes(tmp_path, changes, connection):
    host_env = HostEnvironment(tmp_path, "linux", lambda _name: None, lambda _name: None)
    assert list_connections([BY_NAME["codex"]], host_env, Installation(tmp_path), changes) == [connection]
