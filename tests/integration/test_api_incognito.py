"""Incognito sessions: every byte of a home is looked through for what was said."""

import pytest
import tomlkit

from pipeline.features.workspaces.identify import identify
from pipeline.kernel.records import Stage
from pipeline.kernel.store import work

KNOWN = "The flumadiddle listens on port 5433."
SAID = "The qwyjibofier of Grace Xylander zubrowked in src/qwyjibofier.py and must be kept for good."
TRACES = ("qwyjibofier", "zubrowk", "xylander")
SESSION = "quiet"


@pytest.fixture
def silent(client):
    client.write(KNOWN)
    answer = client.post("/v1/incognito", {"session_id": SESSION}).get_json()
    assert answer["since"] is not None
    return client


@pytest.fixture
def silent_workspace(container, client):
    client.write(KNOWN)
    container.settings.paths.workspace("default").config.write_text(tomlkit.dumps({"incognito": True}))
    return client


def traces(container, words=TRACES):
    """List (file, word) for every file of the home, names included, that holds a word."""
    found = []
    for file in sorted(container.settings.home.rglob("*")):
        held = file.read_bytes().lower() if file.is_file() else b""
        found += [(file.name, word) for word in words if word.encode() in held + file.name.lower().encode()]
    return found


# Every way to name the session to what takes a text: by itself, as the owner of the scope, or as it is not stored.
NAMINGS = {
    "by id": {"session_id": SESSION},
    "as its scope": {"scope": {"kind": "session", "id": SESSION}},
    "by id, in its own scope": {"session_id": SESSION, "scope": {"kind": "session"}},
    "by id, in the scope of another": {"session_id": SESSION, "scope": {"kind": "session", "id": "loud"}},
    "as its scope, by another": {"session_id": "loud", "scope": {"kind": "session", "id": SESSION}},
    "by id, with space around": {"session_id": f"  {SESSION}\n"},
    "as its scope, with a sign that nobody sees": {"scope": {"kind": "session", "id": f"qui\u200bet{chr(0x2060)}"}},
}


@pytest.mark.parametrize("who", NAMINGS.values(), ids=NAMINGS.keys())
def test_nothing_of_an_incognito_session_is_stored(silent, container, digested, who):
    said = {"content": SAID, **who}
    key = {"key": "qwyjibofier.md", "digest": "d1"}
    fact = {"subject": "qwyjibofier", "attribute": "zubrowked", "value": SAID}
    answers = [
        silent.post("/v1/memories", said).get_json(),
        *silent.post(
            "/v1/memories/batch", {"items": [said, {**said, "kind": "keyed_fact", "details": fact}]}
        ).get_json()["results"],
        silent.put("/v1/facts/qwyjibofier/zubrowked", {"value": SAID, **who}).get_json(),
        *silent.put("/v1/sources/s1/items", {"items": [{**key, "memories": [said]}]}).get_json()["items"][0][
            "receipts"
        ],
    ]
    assert {answer["outcome"] for answer in answers} == {"rejected"}
    assert silent.post("/v1/goals", {"title": SAID, **who}).status_code == 409
    digested()
    container.close()
    assert traces(container) == []


@pytest.mark.parametrize(
    "who",
    [*NAMINGS.values(), {"viewer": {"session": SESSION}}, {"session_id": "loud", "viewer": {"session": SESSION}}],
    ids=str,
)
def test_no_question_of_an_incognito_session_is_stored(silent, container, digested, who):
    digested()
    assert silent.post("/v1/recall", {"query": SAID, **who}).status_code == 200
    if "scope" not in who:
        assert silent.post("/v1/prepare", {"message": SAID, **who}).status_code == 200
    container.feedback.submit(lambda: None).result(timeout=20)
    container.close()
    assert traces(container) == []


def say_everywhere(client, session):
    """Say the same by every way that takes a text and a session."""
    who = {} if session is None else {"session_id": session}
    memory = {"content": SAID, **who}
    answers = [
        client.post("/v1/memories", {**memory, "source": source}).get_json() for source in ("user", "agent", "ambient")
    ]
    answers.append(
        client.post(
            "/v1/memories",
            {**memory, "kind": "lesson", "details": {"rule": SAID}, "tags": ["qwyjibofier"], "metadata": {"x": SAID}},
        ).get_json()
    )
    answers += client.post("/v1/memories/batch", {"items": [memory, memory]}).get_json()["results"]
    answers.append(client.put("/v1/facts/qwyjibofier/zubrowked", {"value": SAID, **who}).get_json())
    client.recall(SAID, **who)
    client.post("/v1/prepare", {"message": SAID, **who})
    client.post("/v1/why", {"query": SAID, "memory_id": client.find_ids("flumadiddle")[0]})
    client.post(
        "/hooks/claude-code", {"hook_event_name": "UserPromptSubmit", "prompt": SAID, "session_id": session or ""}
    )
    client.post("/hooks/claude-code", {"hook_event_name": "Stop", "prompt": SAID, "session_id": session or ""})
    return answers


def test_nothing_that_a_silent_session_says_is_stored(silent, container, digested):
    sent = list(container.notify.sent)
    before = silent.get("/v1/admissions").get_json()
    for answer in say_everywhere(silent, SESSION):
        assert (answer["outcome"], answer["reason"]) == ("rejected", "incognito")
    assert container.notify.sent == sent
    assert silent.get("/v1/admissions").get_json() == before
    digested()
    assert traces(container) == []
    container.close()
    assert traces(container) == []


def test_nothing_is_stored_in_a_silent_workspace(silent_workspace, container, digested):
    before = silent_workspace.get("/v1/stats").get_json()["generation"]
    for answer in say_everywhere(silent_workspace, None):
        assert (answer["outcome"], answer["reason"]) == ("rejected", "incognito")
    digested()
    assert silent_workspace.get("/v1/stats").get_json()["generation"] == before
    assert traces(container) == []


@pytest.mark.parametrize(
    "text", ["incognito = true\nrecall_budget = 3\n", "incognito = true\n[", "review = 'perhaps'\n", b"\xff"]
)
def test_workspace_with_invalid_settings_stores_nothing_and_names_the_file(client, container, digested, text):
    client.write(KNOWN)
    digested()
    generation = client.get("/v1/stats").get_json()["generation"]
    file = container.settings.paths.workspace("default").config
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    memory = {"content": SAID, "session_id": "s1"}
    for method, path, body in (
        ("POST", "/v1/memories", memory),
        ("POST", "/v1/memories/batch", {"items": [memory]}),
        ("PUT", "/v1/facts/qwyjibofier/zubrowked", {"value": SAID}),
        ("POST", "/v1/goals", {"title": SAID}),
    ):
        answer = client.call(method, path, json=body)
        assert answer.status_code == 503
        assert str(file) in answer.get_json()["detail"]
    for event in ("UserPromptSubmit", "PostToolUse", "Stop"):
        given = {"tool_name": "Edit", "tool_input": {"file_path": "qwyjibofier.py"}, "prompt": SAID}
        said = client.post("/hooks/claude-code", {"hook_event_name": event, "session_id": "s1", "cwd": "", **given})
        assert said.status_code == 200
    # Recall goes on.
    assert [hit["content"] for hit in client.recall("flumadiddle port")["results"]] == [KNOWN]
    assert KNOWN in client.post("/v1/prepare", {"message": KNOWN}).get_json()["text"]
    container.feedback.submit(lambda: None).result(timeout=20)
    digested()
    assert client.get("/v1/stats").get_json()["generation"] == generation
    assert traces(container) == []
    # The web server says it once, and so does the worker.
    [logged] = {e["message"] for e in client.get("/v1/errors").get_json()["items"] if e["component"] == "settings"}
    assert str(file) in logged
    file.write_text("review = true\n")
    assert client.post("/v1/memories", memory).get_json()["outcome"] == "created"


def test_nor_do_its_jobs_make_anything_new_of_it(client, container, worker):
    client.write(KNOWN)
    container.settings.paths.workspace("default").config.write_text("incognito = true\n[")
    assert worker.context("default").settings.incognito is True
    assert [error.component for error in worker.operations.errors(workspace="default", limit=5)] == ["settings"]


def test_incognito_settings_apply_before_the_first_memory_of_a_project(client, container, tmp_path):
    """Somebody may make a project incognito before anything was ever done in it."""
    client.write(KNOWN)
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    own = container.settings.paths.workspace(identify(project).id)
    own.root.mkdir()
    own.config.write_text("incognito = true\n")
    edit = {"tool_name": "Edit", "tool_input": {"file_path": "qwyjibofier.py"}}
    event = {"hook_event_name": "PostToolUse", "session_id": "s1", "cwd": str(project), **edit}
    assert client.post("/hooks/claude-code", event).status_code == 200
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(project)}
    client.post("/hooks/claude-code", prompt | {"prompt": "remember this: the qwyjibofier zubrowked"})
    container.feedback.submit(lambda: None).result(timeout=20)
    assert container.settings.paths.workspace_ids() == ["default"]
    assert traces(container) == []


def test_a_note_about_a_lesson_is_not_stored_in_a_silent_workspace(client, container, digested):
    client.write("Never restart the flumadiddle while it listens on port 5433.", kind="lesson")
    digested()
    told = client.post("/v1/prepare", {"message": "flumadiddle port 5433 restart"}).get_json()
    container.settings.paths.workspace("default").config.write_text("incognito = true\n")
    surface_id = told["lessons"][0]["surface_id"]
    answer = client.post(f"/v1/lessons/surfaces/{surface_id}", {"followed": False, "note": SAID})
    assert answer.status_code == 200
    assert traces(container) == []


def test_the_same_is_found_when_it_is_said_aloud(silent, container):
    silent.write(SAID, session_id="loud")
    assert {word for _, word in traces(container)} == set(TRACES)


def test_recall_goes_on_in_a_silent_session(silent, digested):
    digested()
    told = silent.post("/v1/prepare", {"message": KNOWN, "session_id": SESSION}).get_json()
    assert KNOWN in told["text"]
    assert len(silent.recall("flumadiddle port", viewer={"session": SESSION})["results"]) == 1


def test_recall_goes_on_in_a_silent_workspace(silent_workspace):
    assert [hit["content"] for hit in silent_workspace.recall("flumadiddle port")["results"]] == [KNOWN]


def test_other_sessions_are_heard(silent):
    assert silent.post("/v1/memories", {"content": SAID, "session_id": "loud"}).get_json()["outcome"] == "created"
    assert silent.post("/v1/memories", {"content": f"{SAID} Twice."}).get_json()["outcome"] == "created"


def test_batch_with_an_incognito_session_stores_other_sessions(silent, container):
    items = [{"content": SAID, "session_id": SESSION}, {"content": "The gazump is green.", "session_id": "loud"}]
    results = silent.post("/v1/memories/batch", {"items": items}).get_json()["results"]
    assert [result["outcome"] for result in results] == ["rejected", "created"]
    assert traces(container) == []


def test_a_session_is_stored_again_afterwards(silent):
    assert [item["session_id"] for item in silent.get("/v1/incognito").get_json()["items"]] == [SESSION]
    answer = silent.post("/v1/incognito", {"session_id": SESSION, "on": False}).get_json()
    assert answer == {"session_id": SESSION, "since": None}
    assert silent.get("/v1/incognito").get_json()["items"] == []
    memory_id = silent.write(SAID, session_id=SESSION)
    assert memory_id in silent.find_ids("qwyjibofier")


def test_a_workspace_is_stored_again_afterwards(silent_workspace, container):
    container.settings.paths.workspace("default").config.unlink()
    assert silent_workspace.find_ids("qwyjibofier") == []
    memory_id = silent_workspace.write(SAID)
    assert memory_id in silent_workspace.find_ids("qwyjibofier")


def test_ending_incognito_of_an_unknown_session_creates_no_workspace(client, container):
    answer = client.post("/v1/incognito", {"session_id": SESSION, "on": False})
    assert answer.get_json() == {"session_id": SESSION, "since": None}
    assert container.settings.paths.workspace_ids() == []


def test_silence_may_be_asked_for_twice(silent):
    first = silent.get("/v1/incognito").get_json()
    silent.post("/v1/incognito", {"session_id": SESSION})
    assert silent.get("/v1/incognito").get_json() == first
    for _ in range(2):
        assert silent.post("/v1/incognito", {"session_id": SESSION, "on": False}).status_code == 200


@pytest.mark.parametrize("spelled", ["quiet ", " quiet", "qui\u200bet", "quiet\n"])
def test_a_session_is_silent_however_its_name_is_spelled(silent, container, spelled):
    answer = silent.post("/v1/memories", {"content": SAID, "session_id": spelled}).get_json()
    assert answer["outcome"] == "rejected"
    assert traces(container) == []


def test_silence_begins_before_the_first_word_of_a_workspace(client, container):
    client.post("/v1/incognito", {"session_id": SESSION})
    assert client.post("/v1/memories", {"content": SAID, "session_id": SESSION}).get_json()["outcome"] == "rejected"
    assert traces(container) == []


def test_that_a_lesson_was_shown_to_a_silent_session_is_not_stored(silent, container, digested):
    lesson = silent.write("Never restart the flumadiddle while it listens on port 5433.", kind="lesson")
    digested()
    for session, status, note in ((SESSION, 404, SAID), ("loud", 200, "fine")):
        asked = {"message": "flumadiddle port 5433 restart", "session_id": session}
        told = silent.post("/v1/prepare", asked).get_json()
        [surface_id] = [one["surface_id"] for one in told["lessons"] if one["id"] == lesson]
        answer = silent.post(f"/v1/lessons/surfaces/{surface_id}", {"followed": True, "note": note})
        assert answer.status_code == status
    assert traces(container) == []


def test_work_queued_before_incognito_is_digested(silent, worker, digested):
    database = worker.databases.get("default")
    for left in (1, 0):
        with database.read() as db:
            assert work.count_pending(db)[Stage.EMBED] == left
        digested()
