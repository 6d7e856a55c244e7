"""The pages of sessions, of what was put before agents, and of what is known about the person."""

import pytest

from tests.fakes.dashboard import sign_in

FACT = "The billing service uses port 8123"
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


def test_what_is_known_about_the_person_is_kept_changed_and_purged(client, browser, digested):
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


def test_a_session_tells_what_was_said_told_done_and_learnt(client, browser):
    messages = [{"role": "assistant", "content": f"Hello {HOSTILE}"}]
    client.post("/v1/turns", {"session_id": "s1", "messages": messages})
    hook(client)
    browser.post("/w/default/sessions/rename/s1", {"name": "The port"})
    page = browser.follow(browser.page("/w/default/sessions"), "The port")
    assert HOSTILE not in page
    for told in ("Hello", "UserPromptSubmit", FACT, "No actions."):
        assert told in page


def test_what_was_offered_again_may_be_let_in(client, browser):
    (memory,) = client.get("/v1/memories").get_json()["items"]
    client.delete(f"/v1/memories/{memory['id']}")
    client.post("/v1/memories", {"content": FACT, "source": "agent"})
    page = browser.page("/w/default/inbox?kind=refused")
    assert "You archived it; submitted again 1 time" in page
    browser.submit_in(page, "Accept")
    assert [one["id"] for one in client.get("/v1/memories").get_json()["items"]] == [memory["id"]]


def test_lessons_tell_whether_they_help(client, browser):
    client.write("Take the lock first", kind="lesson")
    assert "More answers are needed" in browser.page("/w/default/lessons")


def test_a_goal_knows_what_advanced_it(client, browser):
    goal = client.post("/v1/goals", {"title": "Ship the importer"}).get_json()["id"]
    client.patch(f"/v1/goals/{goal}", {"progress": 0.5})
    (event,) = client.get(f"/v1/goals/{goal}").get_json()["events"]
    assert event["text"] == "progress 0.0 → 0.5"
    assert "progress 0.0 → 0.5" in browser.page(f"/w/default/goals/{goal}")
