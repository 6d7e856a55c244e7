"""The pages of sessions, of what was put before agents, and of what is known about the person."""

import json

import pytest

from pipeline.kernel.store import agent_sessions, conclusions, turns
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.kernel.store.conclusions import ConclusionKind, NewConclusion
from pipeline.kernel.store.turns import Message, Role
from tests.fakes.dashboard import sign_in

FACT = "The billing service uses port 8123"
AT = "2026-03-04T12:00:00.000Z"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def browser(client):
    client.write(FACT, session_id="s1")
    return sign_in(client)


def hook(client, session="s1"):
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": session,
        "cwd": "",
        "prompt": "which port is billing?",
    }
    client.post("/hooks/claude-code", event)


def test_memories_about_the_person_can_be_added_edited_and_purged(client, browser, digested):
    assert "No memories about you yet" in browser.page("/w/default/me")
    browser.post("/w/default/me", {"content": f"I like tabs {HOSTILE}"})
    page = browser.page("/w/default/me")
    assert HOSTILE not in page
    (memory,) = client.get("/v1/memories?scope=user").get_json()["items"]
    browser.post(f"/w/default/me/{memory['id']}", {"content": "I like spaces"})
    assert "I like spaces" in browser.page("/w/default/me")
    browser.post(f"/w/default/me/{memory['id']}/purge")
    assert client.get("/v1/memories?scope=user").get_json()["items"] == []
    digested("me")


def test_a_run_is_shown_as_the_agent_read_it(client, browser):
    assert "No hook events or tool calls yet" in browser.page("/w/default/hooks")
    hook(client)
    page = browser.page("/w/default/hooks")
    assert "UserPromptSubmit" in page
    assert FACT in browser.follow(page, "UserPromptSubmit")
    assert browser.get("/w/default/hooks/99999").status_code == 404


def test_hook_run_page_shows_the_prompt_and_omitted_memories(client, container, browser):
    hook(client)
    assert "Not stored. A prompt appears here" in browser.follow(browser.page("/w/default/hooks"), "UserPromptSubmit")
    said = [{"role": "user", "content": f"which port is billing? {HOSTILE}"}]
    client.post("/v1/turns", {"session_id": "s1", "messages": said})
    line = {"key": "memory:1", "source": "memory", "text": HOSTILE, "score": 0.21, "reason": "too weak"}
    with container.operations.tables.write() as db:
        db.execute("UPDATE hook_run SET trace = ?", (json.dumps({"left_out": [line]}),))
    page = browser.page("/w/default/hooks")
    assert "“which port is billing?" in page
    shown = browser.follow(page, "UserPromptSubmit")
    assert HOSTILE not in page + shown
    assert shown.index("which port is billing?") < shown.index(FACT) < shown.index("Left out") < shown.index("too weak")
    assert "Reasons for each memory" not in shown


def test_session_page_shows_turns_hook_runs_and_actions(client, browser):
    messages = [{"role": "assistant", "content": f"Hello {HOSTILE}"}]
    client.post("/v1/turns", {"session_id": "s1", "messages": messages})
    hook(client)
    browser.post("/w/default/sessions/rename/s1", {"name": "The port"})
    page = browser.follow(browser.page("/w/default/sessions"), "The port")
    assert HOSTILE not in page
    for told in ("Hello", "UserPromptSubmit", FACT, "No actions."):
        assert told in page


def test_sessions_are_searched_and_a_result_opens_at_its_message(client, container, browser):
    texts = [*(f"Filler {number}" for number in range(150)), f"The deploy key rotates {HOSTILE}"]
    with container.databases.get("default").write() as db:
        seqs = turns.add(db, [Message("s2", Role.ASSISTANT, text, "2026-03-04T12:00:00.000Z") for text in texts])
        turns.add(
            db, [Message("s2", Role.USER, f"Later {number}", "2026-03-04T12:00:00.000Z") for number in range(150)]
        )
        db.execute("UPDATE agent_session SET agent = 'codex' WHERE id = 's2'")
    page = browser.page("/w/default/sessions?q=deploy+key")
    assert HOSTILE not in page
    assert "The deploy key rotates" in page
    assert "No session contains these words" in browser.page("/w/default/sessions?q=zebra")
    session = browser.follow(page, "s2")
    assert f'id="turn-{seqs[-1]}"' in session
    assert "Later" not in session
    assert "Filler 50" in browser.follow(session, "Earlier messages")


def test_a_session_shows_its_origin_its_failures_and_its_conclusions(client, container, browser):
    failed = Action(AT, "s1", None, "Bash", ActionType.TEST, "make test", ok=False, exit_code=2, error=f"E {HOSTILE}")
    new = [
        NewConclusion("s1", 1, ConclusionKind.DECISION, f"Use port 8123 {HOSTILE}", ("billing",), AT),
        NewConclusion("s1", 1, ConclusionKind.RULE, "Ports stay below 9000", ("billing",), AT),
    ]
    with container.databases.get("default").write() as db:
        agent_sessions.name_session(db, "s1", "The port", AT)
        db.execute("UPDATE agent_session SET agent = 'codex', branch = 'feature/port' WHERE id = 's1'")
        agent_sessions.add_action(db, failed)
        stored = conclusions.replace(db, "s1", new)
        conclusions.supersede(db, [(stored[0].seq, stored[1].seq)])
    assert "codex" in browser.page("/w/default/sessions")
    page = browser.page("/w/default/sessions/s1")
    assert HOSTILE not in page
    for shown in ("codex", "branch feature/port", "failed with exit status 2", "Use port 8123", "Replaced by a later"):
        assert shown in page
    record = client.get("/v1/sessions/s1").get_json()
    assert [(one["exit_code"], one["error"]) for one in record["did"]] == [(2, f"E {HOSTILE}")]
    assert [(one["kind"], one["is_current"]) for one in record["concluded"]] == [("decision", False), ("rule", True)]
    assert (record["session"]["agent"], record["session"]["branch"]) == ("codex", "feature/port")


def test_resubmitted_archived_memory_can_be_accepted_from_the_inbox(client, browser):
    (memory,) = client.get("/v1/memories").get_json()["items"]
    client.delete(f"/v1/memories/{memory['id']}")
    client.post("/v1/memories", {"content": FACT, "source": "agent"})
    page = browser.page("/w/default/inbox?kind=refused")
    assert "You archived it; submitted again 1 time" in page
    browser.submit_in(page, "Accept")
    assert [one["id"] for one in client.get("/v1/memories").get_json()["items"]] == [memory["id"]]


def test_goal_page_lists_progress_events(client, browser):
    goal = client.post("/v1/goals", {"title": "Ship the importer"}).get_json()["id"]
    client.patch(f"/v1/goals/{goal}", {"progress": 0.5})
    (event,) = client.get(f"/v1/goals/{goal}").get_json()["events"]
    assert event["text"] == "progress 0.0 → 0.5"
    assert "progress 0.0 → 0.5" in browser.page(f"/w/default/goals/{goal}")
