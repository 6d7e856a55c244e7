import re
import subprocess

import pytest

from pipeline.features.workspaces.identify import identify
from pipeline.prompt.render import ENOUGH

MESSAGE = "Which port does billing listen on?"
ABOUT = "Billing listens on port 8123"
RULE = "Billing must listen on the port that ops gave it"
LISTS = ("lessons", "decisions", "facts", "open_goals", "recent_activity", "active_arcs", "memories")


def prepare(client, message=MESSAGE, **fields):
    workspace = fields.pop("workspace", None)
    response = client.post("/v1/prepare", {"message": message, **fields}, workspace=workspace)
    assert response.status_code == 200, response.get_data(as_text=True)
    return response.get_json()


def answer(client, surface_id, *, followed):
    return client.post(f"/v1/lessons/surfaces/{surface_id}", {"followed": followed})


@pytest.fixture
def learned(client, digested):
    """A workspace with a lesson and a fact about the message."""
    client.write(ABOUT)
    lesson = client.write(RULE, kind="lesson")
    digested()
    return lesson


@pytest.mark.parametrize("message", ["thanks, looks great!", "hello there"])
def test_prepare_shows_nothing_for_small_talk(client, learned, message):
    client.write("Open the archive to everyone", kind="goal")
    told = prepare(client, message)
    assert told["relevant"] is False
    assert told["text"] == ""
    assert all(told[name] == [] for name in LISTS)
    assert client.get("/v1/lessons").get_json()["items"][0]["shown"] == 0


@pytest.fixture
def under_way(client, digested):
    """A workspace with a goal and an activity, and with a fact about something else."""
    client.write(ABOUT)
    goal = client.write("Open the archive to everyone", kind="goal")
    activity = client.write("Renamed the queue", kind="activity")
    digested()
    return [goal, activity]


@pytest.mark.parametrize("message", ["continue", "fix the tests", "go on", "mach weiter", "arregla las pruebas"])
def test_a_vague_message_is_answered_with_the_open_work(client, under_way, message):
    told = prepare(client, message)
    assert told["relevant"] is True
    assert [one["id"] for name in ("open_goals", "recent_activity") for one in told[name]] == under_way
    assert "Open the archive to everyone" in told["text"]
    assert "Renamed the queue" in told["text"]
    assert len(told["text"]) <= 900


def test_the_first_message_of_a_session_is_answered_with_the_open_work(client, under_way):
    first = prepare(client, session_id="s1")["text"]
    assert ABOUT in first
    assert "Open the archive to everyone" in first
    second = prepare(client, session_id="s1")["text"]
    assert ABOUT in second
    assert "Open the archive to everyone" not in second
    assert "Open the archive to everyone" in prepare(client, viewer={"agent": "codex"})["text"]


def test_a_follow_up_is_searched_with_the_message_before_it(client, digested):
    staging = client.write("The Postgres of staging listens on port 5544")
    production = client.write("On production, Postgres listens on port 6432")
    digested()
    first = prepare(client, "Which port does the Postgres of staging listen on?", session_id="s1")
    assert staging[-8:] in first["text"]
    assert production[-8:] in prepare(client, "and on production?", session_id="s1")["text"]


def test_prepare_returns_memories_of_every_kind(client, digested):
    lesson = client.write(RULE, kind="lesson")
    decision = client.write("Billing shall listen on port 8123", kind="decision", details={"reason": "80 is taken"})
    client.put("/v1/facts/billing/listen-port", {"value": 8123})
    memory = client.write("The port of billing is where its health check listens")
    goal = client.post("/v1/goals", {"title": "Open the archive", "progress": 0.5}).get_json()
    activity = client.write("Renamed the queue", kind="activity", session_id="s1")
    digested()
    told = prepare(client)
    assert told["relevant"] is True
    assert [hit["id"] for hit in told["lessons"]] == [lesson]
    assert [hit["id"] for hit in told["decisions"]] == [decision]
    assert [hit["content"] for hit in told["facts"]] == ["billing listen port: 8123"]
    assert [hit["id"] for hit in told["memories"]] == [memory]
    assert [(one["id"], one["progress"]) for one in told["open_goals"]] == [(goal["id"], 0.5)]
    assert [one["id"] for one in told["recent_activity"]] == [activity]
    assert told["active_arcs"] == []
    lines = told["text"].splitlines()
    assert len(lines) == 6
    assert lines[1].endswith(f"{RULE} (surface {told['lessons'][0]['surface_id']})")
    assert "Billing shall listen on port 8123 — because 80 is taken" in told["text"]
    assert "Open the archive (open, 50%)" not in told["text"]
    assert "Open the archive (open, 50%)" in prepare(client, f"{MESSAGE} What is next?")["text"]


def test_a_lesson_can_be_answered_at_once(client, learned):
    for _ in range(20):
        surface_id = prepare(client)["lessons"][0]["surface_id"]
        assert answer(client, surface_id, followed=True).get_json()["lesson_id"] == learned


def test_a_lesson_that_is_always_ignored_is_shown_no_more(client, learned):
    for _ in range(ENOUGH):
        answer(client, prepare(client)["lessons"][0]["surface_id"], followed=False)
    told = prepare(client)
    assert told["lessons"] == []
    assert [hit["content"] for hit in told["memories"]] == [ABOUT]
    assert RULE not in told["text"]
    lesson = client.get("/v1/lessons").get_json()["items"][0]
    assert (lesson["usefulness"], lesson["shown"]) == ("dead", ENOUGH)


def test_nothing_is_noted_of_an_incognito_session(client, learned):
    client.post("/v1/incognito", {"session_id": "s1", "on": True})
    told = prepare(client, session_id="s1")
    assert RULE in told["text"]
    assert answer(client, told["lessons"][0]["surface_id"], followed=True).status_code == 404
    assert client.get("/v1/lessons").get_json()["items"][0]["shown"] == 0
    client.post("/v1/incognito", {"session_id": "s1", "on": False})
    assert (
        answer(client, prepare(client, session_id="s1")["lessons"][0]["surface_id"], followed=True).status_code == 200
    )


def test_a_lesson_from_an_import_is_a_rule_only_once_it_is_confirmed(client, digested):
    lesson = client.write(RULE, kind="lesson", source="import")
    digested()
    told = prepare(client)
    assert told["lessons"] == []
    assert f"import noted: “{RULE}”" in told["text"]
    client.patch(f"/v1/memories/{lesson}", {"trust": "trusted"})
    told = prepare(client)
    assert [hit["id"] for hit in told["lessons"]] == [lesson]
    assert "noted" not in told["text"]


def test_code_that_changed_is_marked_in_the_text(client, digested, tmp_path):
    file = tmp_path / "billing.py"
    file.write_text("PORT = 8123\n")
    client.write(
        "Billing listens on the port named in this line", kind="code", anchor={"path": str(file), "lines": [1, 1]}
    )
    digested()
    file.write_text("PORT = 9000\n")
    told = prepare(client)
    assert told["memories"][0]["stale"] is True
    assert f"({file}:1) (stale)" in told["text"]


def test_prepare_includes_session_memories_also_with_a_viewer(client, digested):
    client.write(ABOUT, scope={"kind": "session", "id": "s1"})
    digested()
    assert prepare(client)["relevant"] is False
    assert prepare(client, session_id="s1")["relevant"] is True
    assert prepare(client, session_id="s1", viewer={"agent": "a"})["relevant"] is True
    assert prepare(client, session_id="s1", viewer={"session": "s2"})["relevant"] is False


def test_the_folder_names_the_project(client, tmp_path, digested):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/feature\n")
    workspace = identify(project).id
    client.write(ABOUT, workspace=workspace)
    digested(workspace)
    told = prepare(client, cwd=str(project))
    assert told["project"] == {"workspace": workspace, "branch": "feature"}
    assert told["relevant"] is True


def test_the_text_keeps_the_limit_of_the_workspace(client, digested, home):
    (home.paths.workspace("small").config).parent.mkdir(parents=True)
    home.paths.workspace("small").config.write_text("hook_max_chars = 300\n")
    for number in range(9):
        client.write(f"Billing listens on port {8120 + number}", workspace="small")
        client.write(f"{RULE}: rule {number}", kind="lesson", workspace="small")
    digested("small")
    told = prepare(client, workspace="small")
    assert 0 < len(told["text"]) <= 300
    assert told["text"].count("(surface ") == len(told["lessons"]) > 0


def test_prompt_hook_and_prepare_return_the_same_text(client, learned):
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": MESSAGE}
    hook = client.post("/hooks/claude-code", event).get_json()["hookSpecificOutput"]["additionalContext"]
    told = prepare(client, session_id="s1")
    assert [line.partition(" (surface")[0] for line in hook.splitlines()] == [
        line.partition(" (surface")[0] for line in told["text"].splitlines()
    ]
    answer(client, told["lessons"][0]["surface_id"], followed=True)
    assert client.get("/v1/lessons").get_json()["items"][0]["shown"] == 2


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({}, "message"),
        ({"message": " "}, "message"),
        ({"message": "x" * 4001}, "message"),
        ({"message": "x", "session_id": ""}, "session_id"),
        ({"message": "x", "nonsense": 1}, "nonsense"),
    ],
)
def test_invalid_prepare_fields_are_rejected_by_name(client, body, loc):
    response = client.post("/v1/prepare", body)
    assert response.status_code == 422
    assert [error["loc"] for error in response.get_json()["errors"]] == [loc]


@pytest.mark.parametrize("cwd", ["relative", "~", "../elsewhere"])
def test_a_relative_folder_is_refused(shared, cwd):
    response = shared.post("/v1/prepare", {"message": MESSAGE, "cwd": cwd})
    assert response.status_code == 422
    assert response.get_json()["errors"] == [{"loc": "cwd", "msg": "must be an absolute path"}]


def test_a_project_without_memories_gets_an_empty_answer(client, tmp_path):
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    client.write("Billing listens on port 8123")
    answer = client.post("/v1/prepare", {"message": MESSAGE, "cwd": str(tmp_path)})
    assert (answer.status_code, answer.get_json()["relevant"], answer.get_json()["text"]) == (200, False, "")


@pytest.mark.parametrize("cwd", ["/dev/null/x", "/proc/1/root/x", "\x00", "/" + "x" * 4000])
def test_a_strange_folder_is_answered(shared, cwd):
    assert shared.post("/v1/prepare", {"message": MESSAGE, "cwd": cwd}).status_code in {200, 422}


def test_prepare_in_an_unknown_workspace_is_not_found(client):
    assert client.post("/v1/prepare", {"message": MESSAGE}, workspace="nowhere").status_code == 404


def test_changed_code_is_stale_when_the_same_question_is_repeated(client, digested, tmp_path):
    file = tmp_path / "billing.py"
    file.write_text("PORT = 8123\n")
    client.write("Billing listens on the port of this file", kind="code", anchor={"path": str(file)})
    digested()
    assert client.recall(MESSAGE)["results"][0]["stale"] is False
    assert "(stale)" not in prepare(client)["text"]
    file.write_text("PORT = 9000\n")
    assert client.recall(MESSAGE)["results"][0]["stale"] is True
    assert "(stale)" in prepare(client)["text"]


def test_shown_text_of_any_kind_is_not_learned_again(client, digested):
    client.write("Billing shall listen on port 8123", kind="decision", details={"reason": "80 is taken"})
    client.write(RULE, kind="lesson", details={"rule": "Ask ops", "applies_when": "billing needs a port"})
    client.post("/v1/goals", {"title": "Open the archive", "progress": 0.5})
    digested()
    text = prepare(client, f"{MESSAGE} What is next?")["text"]
    assert len(text.splitlines()) == 5
    assert client.post("/v1/memories", {"content": text, "source": "agent"}).get_json()["outcome"] == "merged"


STANDING = ("Run make lint before every commit", "Money is stored in cents", "Ship the importer")


@pytest.fixture
def standing(client, digested):
    """A workspace with a rule, a decision and a goal, none of them about the message."""
    client.write(STANDING[0], kind="lesson")
    client.write(STANDING[1], kind="decision", details={"reason": "floats lose them"})
    client.write(STANDING[2], kind="goal")
    client.write(ABOUT)
    digested()


def start_of(client, session):
    """Return what a hook shows at the start of a session."""
    event = {"hook_event_name": "SessionStart", "session_id": session, "source": "startup"}
    return client.post("/hooks/claude-code", event).get_json()["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("message", [MESSAGE, "hello there", "go on"])
@pytest.mark.parametrize("session", [{"session_id": "s1"}, {"viewer": {"agent": "zed"}, "cwd": "/p"}])
def test_first_prepare_of_a_session_returns_the_session_start_text(client, standing, message, session):
    first = prepare(client, message, workspace="default", **session)
    assert first["relevant"] is True
    assert all(statement in first["start"] for statement in STANDING)
    shown, of_hooks = (re.sub(r"surface \w+", "surface", text) for text in (first["start"], start_of(client, "hooks")))
    assert shown == of_hooks
    surface_id = re.search(r"surface (\w+)", first["start"])[1]
    assert answer(client, surface_id, followed=True).status_code == 200
    assert first["text"].startswith(first["start"])
    assert (ABOUT in first["text"].removeprefix(first["start"])) == (message == MESSAGE)
    second = prepare(client, message, workspace="default", **session)
    assert second["start"] == ""
    assert STANDING[0] not in second["text"]


def test_each_session_gets_the_standing_rules_once(client, standing):
    starts = [bool(prepare(client, session_id=session)["start"]) for session in ("s1", "s1", "s2", "s1", "s2")]
    assert starts == [True, False, True, False, False]


def test_a_call_that_names_no_session_gets_no_start(client, standing):
    assert prepare(client)["start"] == ""


def test_an_incognito_session_gets_no_start(client, standing):
    client.post("/v1/incognito", {"session_id": "s1", "on": True})
    assert prepare(client, session_id="s1")["start"] == ""


def test_a_session_with_hooks_is_not_shown_its_start_twice(client, standing):
    start_of(client, "s1")
    client.post("/hooks/claude-code", {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": MESSAGE})
    assert prepare(client, session_id="s1")["start"] == ""


def test_the_start_keeps_the_limit_of_the_workspace(client, digested, home):
    (home.paths.workspace("small").config).parent.mkdir(parents=True)
    home.paths.workspace("small").config.write_text("hook_max_chars = 300\n")
    for number in range(9):
        client.write(f"{RULE}: rule {number}", kind="lesson", workspace="small")
    digested("small")
    assert 0 < len(prepare(client, workspace="small", session_id="s1")["start"]) <= 300
