"""Each switch of a workspace does what it says, and nothing else."""

import json

import pytest

from config.workspace_configs import ConfigFiles, save_workspace_setting
from tests.fakes.in_process import flush_notes

PROMPT = "which port does billing use?"
FACT = "The billing service uses port 8123"


@pytest.fixture
def switch(home, client):
    client.write(FACT)

    def run(**values):
        for name, value in values.items():
            save_workspace_setting(ConfigFiles(home.paths), "default", name, value)

    return run


def hook(client, event, **fields):
    body = {"hook_event_name": event, "session_id": "s1", "cwd": "", **fields}
    return client.post("/hooks/claude-code", body).get_data(as_text=True)


def edit(client):
    hook(client, "PostToolUse", tool_name="Edit", tool_input={"file_path": "a.py"})
    hook(client, "PreCompact")
    return client.get("/v1/journal").get_json()["items"]


def reasons(client):
    return [one["reason"] for one in client.get("/v1/hook-runs").get_json()["items"]]


def test_all_is_on_without_any(client, switch):
    assert FACT in hook(client, "UserPromptSubmit", prompt=PROMPT)
    assert len(edit(client)) == 1


def test_with_reverie_disabled_nothing_is_injected_or_recorded(client, switch):
    switch(enabled=False)
    assert hook(client, "UserPromptSubmit", prompt=PROMPT) == ""
    assert hook(client, "SessionStart", source="startup") == ""
    assert edit(client) == []
    assert "Reverie is off here (setting enabled)" in reasons(client)


def test_messages_of_the_time_without_hooks_are_not_stored_later(client, container, switch, tmp_path):
    transcript = tmp_path / "projects" / "slug" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.touch()
    for said, is_on in (("Builds run at night", True), ("The key hangs at the door", False), ("Port 8123", True)):
        switch(enabled=is_on, incognito=not is_on)
        with transcript.open("a") as lines:
            for role, content in (("user", said), ("assistant", "Noted")):
                lines.write(json.dumps({"type": role, "message": {"role": role, "content": content}}) + "\n")
        hook(client, "Stop", transcript_path=str(transcript))
        flush_notes(container)
    said = [message["content"] for message in client.get("/v1/sessions/s1").get_json()["said"]]
    assert [content for content in said if content != "Noted"] == ["Port 8123", "Builds run at night"]


def test_without_recall_in_hooks_the_journal_goes_on(client, switch):
    switch(hook_recall=False)
    assert hook(client, "UserPromptSubmit", prompt=PROMPT) == ""
    assert len(edit(client)) == 1
    assert "recall in hooks is off" in reasons(client)
    assert client.find_ids("billing port")


def test_with_the_journal_off_memories_are_still_injected(client, switch):
    switch(journal=False)
    assert FACT in hook(client, "UserPromptSubmit", prompt=PROMPT)
    assert edit(client) == []


def test_imports_are_shown_with_prompts_unless_they_are_switched_off(client, switch):
    prompt = "Where do pallets of the harbour docs go?"
    document = client.write("Pallets of the harbour go to hall nine", source="import")
    switch(imports_in_prompts=False)
    assert hook(client, "UserPromptSubmit", prompt=prompt) == ""
    run = client.get("/v1/hook-runs").get_json()["items"][0]
    left = client.get(f"/v1/hook-runs/{run['id']}").get_json()["left_out"]
    assert [(one["key"], one["reason"]) for one in left] == [(document, "imports in prompts are off")]
    switch(imports_in_prompts=True)
    assert "hall nine" in hook(client, "UserPromptSubmit", prompt=prompt, session_id="s2")


def test_agents_tools_may_be_kept_from_writing(client, switch):
    switch(write_tools=False)
    as_tool = {"X-Reverie-Caller": "mcp"}
    refused = client.post("/v1/memories", {"content": "x"}, headers=as_tool)
    assert refused.status_code == 409
    assert "write_tools" in refused.get_json()["detail"]
    assert client.post("/v1/recall", {"query": "billing"}, headers=as_tool).status_code == 200
    assert client.post("/v1/memories", {"content": "x"}).status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/memories", {"content": "x"}),
        ("POST", "/v1/memories", {"content": "x", "scope": {"kind": "user"}}),
        ("POST", "/v1/goals", {"title": "x"}),
        ("PUT", "/v1/facts/db/port", {"value": 1}),
        ("PUT", "/v1/sources/a/items", {"items": []}),
    ],
)
def test_a_workspace_that_is_read_only_is_asked_and_not_written_to(client, switch, method, path, body):
    switch(read_only=True)
    assert client.call(method, path, json=body).status_code == 409
    assert client.find_ids("billing port")
    assert FACT in hook(client, "UserPromptSubmit", prompt=PROMPT)
    assert edit(client) == []
    turns = {"session_id": "s1", "messages": [{"role": "user", "content": "remember this: x"}]}
    says = "Reverie changes nothing here: the workspace is read only."
    assert client.post("/v1/turns", turns).get_json() == {"queued": 0, "done": [says]}
    assert says in hook(client, "UserPromptSubmit", prompt="Remember this: the moon is full.")
    assert len(client.get("/v1/memories").get_json()["items"]) == 1


def test_read_only_setting_rejects_edits_and_deletions(client, switch):
    (memory,) = client.get("/v1/memories").get_json()["items"]
    switch(read_only=True)
    assert client.delete(f"/v1/memories/{memory['id']}").status_code == 409
    assert client.patch(f"/v1/memories/{memory['id']}", {"content": "y"}).status_code == 409
