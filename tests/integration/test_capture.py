"""What is said in sessions: from a turn to a memory, as the workspace's switch has it."""

import json

import pytest

from config.settings import load_settings
from config.settings_edits import save_setting, save_workspace_setting
from config.workspace_configs import ConfigFiles
from pipeline.workspace import WorkspaceSettings
from tests.fakes.in_process import digest_all
from tests.fakes.model_server import model_server, says
from tests.fakes.statements import MarkedStatements

RULE = "Rule: never force-push to main."
LIKES = "Preference: I like small commits."


@pytest.fixture
def worker(worker):
    worker._statements = MarkedStatements()
    worker._classifier = lambda: worker._statements
    return worker


@pytest.fixture
def capture(worker):
    def run():
        # What is captured is digested like any other memory.
        for workspace in ("default", "default", "me"):
            if worker.settings.paths.workspace(workspace).events.is_file():
                digest_all(worker, workspace)

    return run


@pytest.fixture
def say(client, capture):
    def run(*said, session="s1", role="user", workspace=None):
        messages = [{"role": role, "content": one} for one in said]
        answer = client.post("/v1/turns", {"session_id": session, "messages": messages}, workspace=workspace)
        assert answer.status_code == 202, answer.get_json()
        capture()
        return answer.get_json()

    return run


@pytest.fixture
def switch(home):
    def run(**values):
        for name, value in values.items():
            save_workspace_setting(ConfigFiles(home.paths), "default", name, value)

    return run


def listed(client, path="/v1/memories", **rest):
    return [one["content"] for one in client.get(path, **rest).get_json()["items"]]


def test_what_lasts_becomes_evidence_that_names_its_turn(client, say):
    assert say("Add a test please. " + RULE)["queued"] == 1
    (memory,) = client.get("/v1/memories").get_json()["items"]
    assert (memory["content"], memory["kind"]) == (RULE, "lesson")
    assert (memory["source"], memory["trust"], memory["session_id"]) == ("ambient", "evidence", "s1")
    assert memory["metadata"]["turn"] == 1
    assert client.find_ids("force-push") == [memory["id"]]


def test_what_an_agent_says_is_kept_and_read_for_nothing(client, say):
    assert say(RULE, role="assistant")["queued"] == 1
    assert listed(client) == []
    (said,) = client.get("/v1/sessions/s1").get_json()["said"]
    assert (said["role"], said["content"]) == ("assistant", RULE)


def test_what_is_about_the_person_goes_to_their_store(client, say):
    say(f"{LIKES} {RULE}")
    assert listed(client) == [RULE]
    assert listed(client, "/v1/memories?scope=user") == [LIKES]
    assert listed(client, workspace="me") == [LIKES]


def test_where_the_person_is_not_told_nothing_goes_to_their_store(client, say, switch):
    switch(personal=False)
    say(LIKES)
    assert listed(client) == [LIKES]
    assert client.get("/v1/memories", workspace="me").status_code == 404


def test_suggested_is_what_waits_for_a_person(client, say, switch):
    switch(capture="suggest")
    say(RULE)
    assert listed(client) == []
    assert listed(client, "/v1/candidates") == [RULE]


def test_off_is_off(client, say, switch):
    switch(capture="off")
    assert say(RULE)["queued"] == 0
    assert client.get("/v1/sessions").status_code == 404


def test_off_the_record_is_off(client, say):
    client.write("anything")
    client.post("/v1/incognito", {"session_id": "s1", "on": True})
    assert say(RULE)["queued"] == 0
    assert listed(client) == ["anything"]
    assert client.get("/v1/sessions").get_json()["items"] == []


def test_off_between_the_turn_and_its_reading_is_off_too(client, capture, switch):
    client.post("/v1/turns", {"session_id": "s1", "messages": [{"role": "user", "content": RULE}]})
    switch(capture="off")
    capture()
    assert listed(client) == []


def test_off_the_record_between_the_turn_and_its_reading_is_off_too(client, capture):
    client.post("/v1/turns", {"session_id": "s1", "messages": [{"role": "user", "content": f"{RULE} {LIKES}"}]})
    client.post("/v1/incognito", {"session_id": "s1", "on": True})
    capture()
    assert listed(client) == []
    assert client.get("/v1/memories", workspace="me").status_code == 404


def test_a_suggestion_waits_however_often_it_is_said(client, say, switch):
    switch(capture="suggest")
    for number in range(5):
        say(RULE, session=f"s{number}")
    assert listed(client) == []
    assert listed(client, "/v1/candidates") == [RULE]


def test_the_same_words_in_another_session_stay_evidence(client, say):
    for session in ("s1", "s1", "s2"):
        say(RULE, session=session)
    (memory,) = client.get("/v1/memories").get_json()["items"]
    assert (memory["trust"], memory["merge_count"]) == ("evidence", 2)


def test_a_slot_is_a_keyed_fact_and_a_new_value_ends_the_old(client, say):
    say("Fact: noise")
    say("Staging runs on port 6543 now.")
    assert client.get("/v1/facts/staging/port").status_code == 404


def test_a_turn_is_without_secrets(client, say):
    secret = "ghp_" + "a1B2" * 9
    say(f"Fact: the token is {secret} and lives here")
    (said,) = client.get("/v1/sessions/s1").get_json()["said"]
    assert secret not in said["content"]
    assert all(secret not in one for one in listed(client))


def test_a_purge_takes_what_was_said_with_it(client, say, capture):
    say(RULE)
    say(f"Again, as I said: {RULE}")
    (memory,) = client.get("/v1/memories").get_json()["items"]
    client.delete(f"/v1/memories/{memory['id']}?hard=true")
    assert RULE[6:] not in str(client.get("/v1/sessions").get_json())
    assert client.get("/v1/sessions/s1").get_json()["said"] == []
    capture()


def test_a_worker_that_dies_between_two_turns_says_nothing_twice(client, worker, capture):
    client.post(
        "/v1/turns",
        {"session_id": "s1", "messages": [{"role": "user", "content": RULE}, {"role": "user", "content": RULE}]},
    )
    capture()
    assert listed(client) == [RULE]
    assert client.get("/v1/queue").get_json()["pending"]["capture"] == 0


def test_the_model_reads_and_says_no_word_of_its_own(client, worker, capture, home):
    said = "the importer runs at night"
    made_up = {"kept": [{"sentence": "the importer runs at noon", "label": "fact"}]}
    found = {"kept": [{"sentence": said, "label": "fact"}]}
    with model_server() as server:
        save_setting(home.paths, "llm_url", server.endpoint().url)
        worker.settings = load_settings()
        worker.workspace_settings = WorkspaceSettings(worker.settings, worker.stores)
        for number, reply in enumerate((made_up, found)):
            server.behave = says(json.dumps(reply))
            client.post("/v1/turns", {"session_id": f"s{number}", "messages": [{"role": "user", "content": said}]})
            capture()
            assert listed(client) == ([said] if reply is found else [])


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({"messages": [{"role": "user", "content": "x"}]}, "session_id"),
        ({"session_id": "s1", "messages": []}, "messages"),
        ({"session_id": "s1", "messages": [{"role": "god", "content": "x"}]}, "messages.0.role"),
        ({"session_id": "s1", "messages": [{"role": "user"}]}, "messages.0.content"),
        ({"session_id": "s1", "messages": [{"role": "user", "content": "x", "at": "noon"}]}, "messages.0.at"),
        ({"session_id": "s1", "messages": [{"role": "user", "content": "x"}] * 201}, "messages"),
    ],
)
def test_bad_turns_are_named(client, body, loc):
    answer = client.post("/v1/turns", body)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["loc"] == loc


def test_remember_and_forget_do_what_they_say(client, say):
    done = say("remember this: the demo is on Friday")["done"]
    assert done[0].startswith("Reverie keeps it as [")
    (memory,) = client.get("/v1/memories").get_json()["items"]
    assert (memory["content"], memory["source"], memory["trust"]) == ("the demo is on Friday", "user", "trusted")
    assert say("forget that")["done"][0].startswith("Reverie archived [")
    assert listed(client) == []
    assert say("forget that")["done"] == ["Reverie found no memory that is surely meant; nothing was forgotten."]


def test_forget_that_of_another_session_forgets_nothing(client, say):
    say("remember this: the demo is on Friday")
    assert "nothing was forgotten" in say("forget that", session="s2")["done"][0]
    assert listed(client) == ["the demo is on Friday"]


def test_what_was_said_about_a_topic_is_forgotten_newest_first(client, say):
    for said in ("the package manager is yarn", "we moved the package manager to pnpm", "the demo is on Friday"):
        say(f"remember this: {said}")
    client.write("The package manager of the old repository was npm.", source="import")
    (done,) = say("forget what I said about the package manager")["done"]
    assert done.splitlines()[0] == "Reverie archived 2 memories, which can be restored:"
    assert [line.partition("] ")[2] for line in done.splitlines()[1:]] == [
        "we moved the package manager to pnpm",
        "the package manager is yarn",
    ]
    assert set(listed(client)) == {"the demo is on Friday", "The package manager of the old repository was npm."}
