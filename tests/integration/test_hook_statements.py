"""How many statements an agent's event runs: each costs more than most of the code around it."""

from contextlib import contextmanager

import pytest

from pipeline.kernel.store.sqlite import SqliteFile
from tests.fakes.in_process import flush_notes

PROMPT = {"hook_event_name": "UserPromptSubmit", "session_id": "s1"}
CALL = {"session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "make lint"}, "cwd": "/srv/api"}
DONE = CALL | {"hook_event_name": "PostToolUse", "tool_response": {"stdout": "ok"}}


@pytest.fixture
def list_statements(container, monkeypatch):
    """Return a function that lists the statements of the stores while another one runs, also in the background."""
    statements = []
    take = SqliteFile._taken

    @contextmanager
    def taken(self, *, writes):
        with take(self, writes=writes) as connection:
            connection.set_trace_callback(statements.append)
            try:
                yield connection
            finally:
                connection.set_trace_callback(None)

    def run(ask):
        flush_notes(container)
        statements.clear()
        ask()
        flush_notes(container)
        return list(statements)

    monkeypatch.setattr(SqliteFile, "_taken", taken)
    return run


@pytest.mark.files
@pytest.mark.parametrize(
    ("event", "most"),
    [
        (PROMPT | {"prompt": "Which port does billing listen on?"}, 100),
        (DONE | {"tool_use_id": "t2"}, 18),
        (CALL | {"hook_event_name": "PreToolUse", "tool_use_id": "t3"}, 18),
    ],
    ids=lambda value: value["hook_event_name"] if isinstance(value, dict) else "",
)
def test_an_event_runs_few_statements(client, digested, list_statements, event, most):
    client.write("Billing listens on port 8123")
    digested()
    for number, first in enumerate((PROMPT | {"prompt": "Where does billing run?"}, DONE)):
        client.post("/hooks/claude-code", first | {"tool_use_id": f"w{number}"})
    statements = list_statements(lambda: client.post("/hooks/claude-code", event))
    assert 0 < len(statements) <= most, "\n".join(statements)
