"""Sessions of agents: their names, what was said, told, done and learnt in each, and what they teach."""

import json

import pytest

from config.workspace_configs import ConfigFiles, save_workspace_setting
from pipeline.features.capture import distill
from pipeline.features.model.extractor import Failure, JobModel
from tests.fakes.in_process import flush_notes
from tests.fakes.model_replies import ModelReplies, reply_with

RULE = "Never force-push to main"


def say(client, *messages, session="s1", workspace=None):
    body = {"session_id": session, "messages": [{"role": role, "content": said} for role, said in messages]}
    assert client.post("/v1/turns", body, workspace=workspace).status_code == 202


@pytest.fixture
def session(client, digested, worker):
    worker._classifier = lambda *_given: pytest.fail("nothing here is to be classified")
    client.write(RULE, kind="lesson", session_id="s1")
    hook = {"session_id": "s1", "cwd": ""}
    client.post("/hooks/claude-code", hook | {"hook_event_name": "UserPromptSubmit", "prompt": "may I force-push?"})
    done = {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": {"file_path": "a.py"}}
    client.post("/hooks/claude-code", hook | done)
    client.post("/hooks/claude-code", hook | {"hook_event_name": "PreCompact"})
    say(client, ("assistant", "May I force-push?"))


def test_session_is_listed_with_counts_and_shown_completely(client, session):
    (one,) = client.get("/v1/sessions").get_json()["items"]
    assert (one["id"], one["turns"], one["actions"], one["memories"]) == ("s1", 1, 1, 1)
    whole = client.get("/v1/sessions/s1").get_json()
    assert [one["content"] for one in whole["said"]] == ["May I force-push?"]
    assert [one["event"] for one in whole["told"]] == ["PreCompact", "PostToolUse", "UserPromptSubmit"]
    assert [one["target"] for one in whole["did"]] == ["a.py"]
    assert [one["content"] for one in whole["learnt"]] == [RULE]


def test_session_is_named_by_its_first_prompt_until_renamed(client, digested):
    client.write("anything")
    body = {"session_id": "s1", "messages": [{"role": "user", "content": "ok " * 60}]}
    client.post("/v1/turns", body)
    name = client.get("/v1/sessions").get_json()["items"][0]["name"]
    assert name.startswith("ok ok")
    assert len(name) <= 80
    assert client.patch("/v1/sessions/s1", {"name": "The parser"}).get_json()["name"] == "The parser"
    client.post("/v1/turns", body)
    assert client.get("/v1/sessions").get_json()["items"][0]["name"] == "The parser"
    assert client.patch("/v1/sessions/s1", {"name": " "}).status_code == 422
    assert client.patch("/v1/sessions/nobody", {"name": "x"}).status_code == 404
    assert client.get("/v1/sessions/nobody").status_code == 404
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.features.capture.proposals.MIN_WORDS_PER_SENTENCE", 100)
        digested()


def test_sessions_come_in_pages(client, container):
    for number in range(5):
        say(client, ("assistant", "hm"), session=f"s{number}")
    # A session that is listed only after the first page moves those after it.
    flush_notes(container)
    first = client.get("/v1/sessions?limit=3").get_json()
    rest = client.get(f"/v1/sessions?limit=3&cursor={first['next_cursor']}").get_json()
    assert {one["id"] for one in first["items"] + rest["items"]} == {f"s{n}" for n in range(5)}
    assert rest["next_cursor"] is None


def test_session_lesson_is_proposed_once_and_not_after_rejection(client, worker):
    say(client, ("assistant", "I ran npm install."))
    answer = client.post(
        "/v1/turns", {"session_id": "s1", "messages": [{"role": "user", "content": "No, use pnpm instead of npm."}]}
    )
    assert answer.get_json()["queued"] == 1
    (proposed,) = client.post("/v1/sessions/s1/distill").get_json()["proposed"]
    assert proposed["outcome"] == "candidate"
    assert client.post("/v1/sessions/s1/distill").get_json()["proposed"] == []
    (waiting,) = client.get("/v1/candidates").get_json()["items"]
    assert (waiting["kind"], waiting["details"]["rule"]) == ("lesson", "No, use pnpm instead of npm.")
    client.post(f"/v1/candidates/{waiting['id']}", {"action": "reject"})
    assert client.post("/v1/sessions/s1/distill").get_json()["proposed"] == []
    with worker.databases.get("default").write() as db:
        db.execute("DELETE FROM work WHERE stage = 'capture'")
    from tests.fakes.in_process import digest_all

    digest_all(worker)


def test_a_transcript_is_read_from_where_it_was_read_to(client, tmp_path, worker):
    worker._classifier = lambda *_given: pytest.fail("nothing here is to be classified")
    transcript = tmp_path / "projects" / "slug" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    lines = [
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "Shall I?"}]}},
        {"type": "user", "isMeta": True, "message": {"role": "user", "content": "said by the program"}},
        {"type": "user", "toolUseResult": {}, "message": {"role": "user", "content": [{"type": "tool_result"}]}},
        {"type": "assistant", "isSidechain": True, "message": {"role": "assistant", "content": "a subagent"}},
        {"type": "summary", "summary": "x"},
    ]
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"half')
    stop = {"hook_event_name": "Stop", "session_id": "s1", "cwd": "", "transcript_path": str(transcript)}
    client.write("anything")

    def said():
        client.post("/hooks/claude-code", stop)
        client.post("/hooks/claude-code", {"hook_event_name": "PreCompact", "session_id": "s1", "cwd": ""})
        return [one["content"] for one in client.get("/v1/sessions/s1").get_json()["said"]]

    assert said() == ["Shall I?"]
    assert said() == ["Shall I?"]
    transcript.write_text(
        transcript.read_text().removesuffix('{"half') + json.dumps(lines[0]).replace("Shall I", "Now") + "\n"
    )
    assert said() == ["Now?", "Shall I?"]


def test_text_written_after_the_last_turn_is_read_at_session_end(client, container, tmp_path):
    transcript = tmp_path / "projects" / "slug" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    client.write("anything")
    for name in ("Stop", "SessionEnd"):
        event = {"hook_event_name": name, "session_id": "s1", "cwd": "", "transcript_path": str(transcript)}
        client.post("/hooks/claude-code", event)
        flush_notes(container)
        lines = [
            {"type": "user", "message": {"role": "user", "content": "Deploys go out on Tuesdays"}},
            {"type": "assistant", "message": {"role": "assistant", "content": "Noted"}},
        ]
        transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = client.get("/v1/sessions/s1").get_json()["said"]
    assert [message["content"] for message in said] == ["Noted", "Deploys go out on Tuesdays"]


@pytest.mark.parametrize("place", ["elsewhere/slug/s1.jsonl", "projects/slug/other.jsonl"])
def test_no_other_file_is_read(client, tmp_path, place):
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"type": "assistant", "message": {"role": "assistant", "content": "secret"}}) + "\n")
    client.write("anything")
    stop = {"hook_event_name": "Stop", "session_id": "s1", "cwd": "", "transcript_path": str(file)}
    client.post("/hooks/claude-code", stop)
    client.post("/hooks/claude-code", {"hook_event_name": "PreCompact", "session_id": "s1", "cwd": ""})
    assert "secret" not in str(client.get("/v1/sessions").get_json())


@pytest.fixture
def model(monkeypatch):
    """The replies of a model that distillation may ask."""
    replies = ModelReplies()
    monkeypatch.setattr("pipeline.features.model.extractor.post", replies.post)
    monkeypatch.setattr(distill, "open_model", lambda database, _settings: JobModel(database, replies.endpoint))
    return replies


def distilled(client):
    return [
        client.get(f"/v1/memories/{proposed['id']}").get_json()
        for proposed in client.post("/v1/sessions/s1/distill").get_json()["proposed"]
    ]


def word(rule, applies_when):
    return reply_with(json.dumps({"lessons": [{"rule": rule, "applies_when": applies_when}]}))


def test_the_model_words_lessons_of_a_session_from_its_words_only(client, model, home):
    save_workspace_setting(ConfigFiles(home.paths), "default", "capture_llm", True)
    client.write("Run the importer with make importer", kind="lesson")
    model.reply = word("Stop the importer first", "the importer locks the table")
    say(client, ("user", "The importer locks the table."), ("assistant", "I stop the importer first next time."))
    # The end of a turn waits for no model.
    assert model.requests == []
    (lesson,) = distilled(client)
    assert lesson["candidate"]
    assert lesson["details"]["applies_when"] == "the importer locks the table"
    prompt = json.loads(model.requests[0]["messages"][1]["content"])
    assert [memory["text"] for memory in prompt["memories"]] == ["Run the importer with make importer"]
    assert [message["by"] for message in prompt["messages"]] == ["user", "assistant"]


@pytest.mark.parametrize("reply", [word("Call Bob at 5550123", "the moon is full"), Failure.TIMEOUT, reply_with("no")])
def test_without_a_useful_model_reply_lessons_come_from_rules(client, model, home, reply):
    save_workspace_setting(ConfigFiles(home.paths), "default", "capture_llm", True)
    model.reply = reply
    say(client, ("assistant", "I ran npm install."), ("user", "No, use pnpm instead of npm."))
    assert [lesson["content"] for lesson in distilled(client)] == ["No, use pnpm instead of npm."]
    assert len(model.requests) == 1


def test_distillation_sends_no_message_without_the_switch_of_capture(client, model):
    say(client, ("assistant", "I ran npm install."), ("user", "No, use pnpm instead of npm."))
    assert len(distilled(client)) == 1
    assert model.requests == []
