"""Imported sessions in the API, on the dashboard, and in the brief of the first session after them."""

import pytest

from pipeline.kernel.store import agent_sessions, conclusions, session_archive, turns
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.kernel.store.conclusions import ConclusionKind, NewConclusion
from pipeline.kernel.store.session_archive import ArchivedSession
from pipeline.kernel.store.turns import Message, Role
from tests.fakes.dashboard import sign_in

DECISION = "We store sessions in PostgreSQL because we already back it up."
AT = "2026-03-05T10:03:00.000Z"


@pytest.fixture
def imported(container):
    """A session of Codex, as an import stores it."""
    with container.workspace("default").create().write() as db:
        session_archive.put_session(db, ArchivedSession("s1", "codex", "", None, "Fix the login", AT, AT))
        asked = "The login is lost behind the load balancer"
        seqs = turns.add(db, [Message("s1", Role.USER, text, AT) for text in (asked, DECISION)])
        agent_sessions.add_action(db, Action(AT, "s1", None, "Bash", ActionType.TEST, "make test", True))
        decided = NewConclusion("s1", seqs[1], ConclusionKind.DECISION, DECISION, ("postgresql",), AT)
        conclusions.replace(db, "s1", [decided])


def test_nothing_is_reported_before_an_import(client):
    client.write("A memory")
    told = client.get("/v1/sessions/import").get_json()
    assert (told["text"], told["sessions"], told["workspaces"]) == (None, 0, {})
    assert client.get("/v1/sessions/questions").get_json() == {"questions": []}
    assert "Past sessions" not in sign_in(client).page("/w/default/")


@pytest.mark.usefixtures("imported")
def test_api_and_dashboard_report_imported_sessions(client):
    told = client.get("/v1/sessions/import").get_json()
    assert told["text"] == "sessions imported: 1 (2026-03-05 to 2026-03-05)"
    assert (told["running"], told["workspaces"]) == (False, {"default": 1})
    assert "Sessions imported: 1 (2026-03-05 to 2026-03-05)" in sign_in(client).page("/w/default/")


@pytest.mark.usefixtures("imported")
def test_questions_are_those_that_the_sessions_answer(client):
    answer = client.get("/v1/sessions/questions").get_json()
    assert answer["questions"] == [
        {"ask": "recall", "text": "Why do we store sessions in PostgreSQL?"},
        {"ask": "how", "text": "tests"},
    ]


@pytest.mark.usefixtures("imported")
def test_question_answered_by_another_sessions_memory_is_not_suggested(client):
    client.write("We store sessions in PostgreSQL, not in Redis", session_id="other", kind="decision")
    questions = client.get("/v1/sessions/questions").get_json()["questions"]
    assert [question["ask"] for question in questions] == ["how"]


@pytest.mark.usefixtures("imported")
def test_only_the_first_session_is_shown_the_history(client, container):
    def start(session_id):
        event = {"hook_event_name": "SessionStart", "source": "startup", "session_id": session_id, "cwd": "/tmp"}
        answer = client.post("/hooks/claude-code", event).get_json(silent=True) or {}
        container.feedback.flush()
        return answer.get("hookSpecificOutput", {}).get("additionalContext", "")

    first = start("first")
    assert DECISION.rstrip(".") in first
    assert "make test" in first
    assert first.count(DECISION.rstrip(".")) == 1
    assert start("second") == ""
