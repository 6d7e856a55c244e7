"""A memory that is opened, confirmed or followed after it was shown counts as useful for that question."""

import pytest
import tomlkit

from pipeline.store import useful_questions
from tests.fakes.dashboard import sign_in
from tests.fakes.in_process import flush_notes

QUESTION = "Which port does billing listen on?"
SIMILAR = "what port is billing on"


def count(container, workspace_id="default", person=None):
    flush_notes(container)
    with container.databases.get(workspace_id).read() as db:
        return useful_questions.count(db, person)


@pytest.fixture
def ids(client):
    return [client.write(f"Billing listens on the port that {place} names") for place in ("the wiki", "the runbook")]


def open_memory(client, memory_id, **options):
    return client.get(f"/v1/memories/{memory_id}", **options)


def test_an_opened_memory_comes_first_for_a_similar_question(client, container, ids):
    older, newer = ids
    assert client.find_ids(QUESTION)[0] == newer
    open_memory(client, older)
    assert count(container) == 1
    assert client.find_ids(SIMILAR)[0] == older
    part = client.recall(SIMILAR, explain=True)["results"][0]["signals"]["parts"]["useful_before"]
    assert 0 < part <= 0.05


def test_a_memory_that_was_not_shown_for_a_question_is_of_no_use(client, container, ids):
    open_memory(client, ids[0])
    client.recall("")
    open_memory(client, ids[0])
    assert count(container) == 0


def test_what_prepare_and_hooks_showed_counts(client, container, ids, digested):
    digested()
    client.post("/v1/prepare", {"message": QUESTION})
    open_memory(client, ids[0])
    assert count(container) == 1
    event = {"hook_event_name": "UserPromptSubmit", "prompt": f"{SIMILAR}, please", "session_id": "s1"}
    client.post("/hooks/claude-code", event, headers={"X-Reverie-Workspace": "default"})
    open_memory(client, ids[1])
    assert count(container) == 2


def test_a_confirmed_memory_counts(client, container):
    browser = sign_in(client)
    imported = client.write("Billing listens on port 8133", source="import")
    client.recall(QUESTION)
    browser.submit(f"/w/default/memories/{imported}", "Confirm")
    assert count(container) == 1


def test_a_followed_lesson_counts_and_an_ignored_one_does_not(client, container, digested):
    client.write(
        "Bump the port of billing only with a migration",
        kind="lesson",
        details={"rule": "Bump the port of billing only with a migration", "applies_when": "billing port"},
    )
    digested()
    for followed in (False, True):
        answer = client.post("/v1/prepare", {"message": "bump the port of billing"}).get_json()
        [lesson] = answer["lessons"]
        client.post(f"/v1/lessons/surfaces/{lesson['surface_id']}", {"followed": followed})
        assert count(container) == int(followed)


def test_incognito_and_read_only_nothing_is_stored(client, container, ids):
    client.post("/v1/incognito", {"session_id": "quiet"})
    client.recall(QUESTION, session_id="quiet")
    client.recall(QUESTION, viewer={"session": "quiet"})
    open_memory(client, ids[0])
    client.recall(QUESTION)
    open_memory(client, ids[0], headers={"X-Reverie-Incognito": "on"})
    assert count(container) == 0
    for switch in ("incognito", "read_only"):
        container.settings.paths.workspace("default").config.write_text(tomlkit.dumps({switch: True}))
        client.recall(QUESTION)
        open_memory(client, ids[0])
        assert count(container) == 0


def test_a_question_with_a_secret_is_not_stored(client, container, ids):
    client.recall("Is AKIAIOSFODNN7EXAMPLE the key of billing on this port?")
    open_memory(client, ids[0])
    assert count(container) == 0


def test_it_can_be_forgotten(client, container, ids):
    client.recall(QUESTION)
    open_memory(client, ids[0])
    assert client.delete("/v1/recall/useful").get_json() == {"forgotten": 1}
    assert client.find_ids(SIMILAR)[0] == ids[1]
    open_memory(client, ids[1])
    assert client.delete("/v1/recall/useful").get_json() == {"forgotten": 1}
    assert count(container) == 0
