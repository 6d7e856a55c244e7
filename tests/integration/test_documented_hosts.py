"""Cursor and Antigravity, by the events that they document: the answers are in their own form."""

import json

from tests.fakes.in_process import flush_notes

FACT = "The billing service uses port 8123"
PROMPT = "which port does billing use?"
SESSION = "ec33ebf9-0cba-4100-8142-c61503f6c587"
CURSOR = {"conversation_id": SESSION, "cursor_version": "3.20.17", "workspace_roots": [""]}


def test_a_prompt_and_a_call_of_cursor_are_answered_in_its_fields(client):
    client.write(FACT)
    client.write("Never git push --force here", kind="lesson", details={"severity": "critical"})
    prompt = CURSOR | {"hook_event_name": "beforeSubmitPrompt", "prompt": PROMPT}
    answer = client.post("/hooks/cursor", prompt).get_json()
    assert answer.keys() == {"continue", "additional_context"}
    assert FACT in answer["additional_context"]
    call = {"tool_name": "Shell", "tool_input": {"command": "git push --force"}, "tool_use_id": "t1"}
    denied = client.post("/hooks/cursor", CURSOR | {"hook_event_name": "preToolUse"} | call).get_json()
    assert denied["permission"] == "deny"
    assert "git push --force" in denied["agent_message"]
    assert client.post("/hooks/cursor", CURSOR | {"hook_event_name": "stop", "status": "completed"}).data == b""


def test_the_prompt_of_antigravity_is_answered_once_and_its_turn_is_stored(client, container, tmp_path):
    client.write(FACT)
    log = tmp_path / "brain" / SESSION / ".system_generated" / "logs" / "transcript.jsonl"
    log.parent.mkdir(parents=True)
    steps = [
        {"step_index": 0, "type": "USER_INPUT", "source": "USER_EXPLICIT", "content": PROMPT},
        {"step_index": 1, "type": "PLANNER_RESPONSE", "source": "MODEL", "content": "Port 8123."},
    ]
    lines = [json.dumps(step | {"created_at": "2026-11-01T10:00:00Z", "status": "DONE"}) + "\n" for step in steps]
    log.write_text(lines[0])
    common = {"conversationId": SESSION, "workspacePaths": [""], "transcriptPath": str(log)}
    answer = client.post("/hooks/antigravity", common | {"invocationNum": 0, "initialNumSteps": 1}).get_json()
    assert FACT in answer["injectSteps"][0]["ephemeralMessage"]
    assert client.post("/hooks/antigravity", common | {"invocationNum": 1, "initialNumSteps": 3}).data == b""
    log.write_text("".join(lines))
    ended = {"executionNum": 1, "terminationReason": "model_stop", "error": "", "fullyIdle": True}
    for _ in range(2):
        assert client.post("/hooks/antigravity", common | ended).data == b""
    flush_notes(container)
    said = client.get(f"/v1/sessions/{SESSION}").get_json()["said"]
    assert [(one["role"], one["content"]) for one in said] == [("assistant", "Port 8123."), ("user", PROMPT)]
