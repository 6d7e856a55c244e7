"""Events of Cursor and Antigravity in the form that their documentation describes; neither program was run."""

import json
from functools import partial
from pathlib import Path

import pytest

from pipeline.kernel.errors import UnreadableTranscript
from tests.fakes.read_messages import read_messages
from web.hooks.antigravity import read_antigravity, write_antigravity
from web.hooks.cursor import read_cursor, write_cursor
from web.hooks.event import read_event, read_outcome
from web.hooks.event_fields import unify_fields
from web.hooks.session_files import read_session
from web.http.json_text import read_object

SESSION = "ec33ebf9-0cba-4100-8142-c61503f6c587"
COMMON = {
    "conversation_id": SESSION,
    "generation_id": "g1",
    "model": "m",
    "cursor_version": "3.20.17",
    "workspace_roots": ["/project"],
    "user_email": None,
    "transcript_path": f"/home/ann/.cursor/projects/project/agent-transcripts/{SESSION}.jsonl",
}


def read(translate, fields):
    return read_event(translate(unify_fields(read_object(json.dumps(fields).encode())).fields), can_ask=True)


def of_cursor(name, **fields):
    return read(read_cursor, COMMON | {"hook_event_name": name} | fields)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("sessionStart", "SessionStart"),
        ("beforeSubmitPrompt", "UserPromptSubmit"),
        ("preToolUse", "PreToolUse"),
        ("postToolUse", "PostToolUse"),
        ("postToolUseFailure", "PostToolUseFailure"),
        ("preCompact", "PreCompact"),
        ("stop", "Stop"),
        ("sessionEnd", "SessionEnd"),
    ],
)
def test_an_event_of_cursor_has_a_session_and_a_folder_but_no_transcript(theirs, ours):
    event = of_cursor(theirs)
    assert (event.name, event.session_id, event.cwd) == (ours, SESSION, "/project")
    assert (event.transcript_path, event.dropped) == ("", frozenset())


def test_a_call_of_cursor_is_in_the_folder_of_the_tool():
    event = of_cursor("preToolUse", tool_name="Shell", tool_input={"command": "npm i"}, cwd="/project/web")
    assert (event.tool_name, event.tool_input, event.cwd) == ("Bash", {"command": "npm i"}, "/project/web")


@pytest.mark.parametrize(("code", "ok"), [(0, True), (2, False)])
def test_the_result_of_a_call_of_cursor_is_json_in_a_text(code, ok):
    output = json.dumps({"exitCode": code, "stdout": "2 failed"})
    event = of_cursor("postToolUse", tool_name="Shell", tool_input={"command": "npm test"}, tool_output=output)
    outcome = read_outcome(event, failed=False)
    assert (outcome.ok, outcome.exit_code, outcome.output) == (ok, code, "" if ok else "2 failed")


def test_a_failed_call_of_cursor_has_its_message():
    event = of_cursor("postToolUseFailure", tool_name="Shell", tool_input={}, error_message="timed out", duration=1)
    assert read_outcome(event, failed=True).output == "timed out"


def test_cursor_gets_context_and_decisions_in_its_own_fields():
    assert write_cursor({"hookEventName": "SessionStart", "additionalContext": "a"}) == {"additional_context": "a"}
    prompt = {"hookEventName": "UserPromptSubmit", "additionalContext": "a"}
    assert write_cursor(prompt) == {"continue": True, "additional_context": "a"}
    denied = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "never"}
    assert write_cursor(denied) == {"permission": "deny", "user_message": "never", "agent_message": "never"}


STEPS = [
    ("USER_INPUT", "USER_EXPLICIT", "<USER_REQUEST>Which port does staging use?</USER_REQUEST>"),
    ("PLANNER_RESPONSE", "MODEL", "Port 8123."),
    ("EPHEMERAL_MESSAGE", "SYSTEM", "shown by a hook"),
]


@pytest.fixture
def log(tmp_path):
    """The log of a conversation of Antigravity with the first of these steps."""

    def write(count, name="transcript.jsonl"):
        file = tmp_path / "brain" / SESSION / ".system_generated" / "logs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        steps = [
            {"step_index": n, "type": kind, "source": source, "created_at": f"2026-11-01T10:0{n}:00Z", "content": text}
            for n, (kind, source, text) in enumerate(STEPS[:count])
        ]
        file.write_text("".join(json.dumps(step) + "\n" for step in steps), encoding="utf-8")
        return file

    return write


def of_antigravity(file, *, is_local=True, **fields):
    common = {"conversationId": SESSION, "workspacePaths": ["/project"], "transcriptPath": str(file)}
    return read(partial(read_antigravity, is_local=is_local), common | fields)


def test_the_first_call_of_the_model_has_the_prompt_that_has_no_answer(log):
    event = of_antigravity(log(1), invocationNum=0, initialNumSteps=1)
    assert (event.name, event.session_id, event.cwd) == ("UserPromptSubmit", SESSION, "/project")
    assert event.prompt == "Which port does staging use?"
    assert of_antigravity(log(2), invocationNum=0, initialNumSteps=2).prompt == ""
    assert of_antigravity(log(1), invocationNum=0, is_local=False).prompt == ""


def test_a_later_call_of_the_model_follows_no_prompt(log):
    event = of_antigravity(log(1), invocationNum=1, initialNumSteps=4)
    assert (event.name, event.prompt) == ("PreInvocation", "")


def test_a_call_of_antigravity_has_claude_codes_names(log):
    call = {"name": "run_command", "args": {"CommandLine": "npm test", "Cwd": "/project", "WaitMsBeforeAsync": 5}}
    event = of_antigravity(log(1), toolCall=call, stepIdx=19)
    assert (event.name, event.tool_name, event.tool_input["command"]) == ("PreToolUse", "Bash", "npm test")
    edit = {"name": "write_to_file", "args": {"TargetFile": "/project/a.py", "CodeContent": "x"}}
    assert of_antigravity(log(1), toolCall=edit, stepIdx=20).tool_input["file_path"] == "/project/a.py"


def test_the_end_of_a_turn_names_the_complete_log(log):
    cut, complete = log(1), log(3, "transcript_full.jsonl")
    event = of_antigravity(cut, terminationReason="model_stop", error="", executionNum=1, fullyIdle=True)
    assert (event.name, event.transcript_path) == ("Stop", str(complete))


def test_antigravity_turn_is_read_once_with_times_without_step_numbers(log):
    file = log(3)
    messages, _, mark = read_messages(read_session("antigravity", file, SESSION, None))
    assert [(message.role, message.content, message.at) for message in messages] == [
        ("user", "Which port does staging use?", "2026-11-01T10:00:00.000Z"),
        ("assistant", "Port 8123.", "2026-11-01T10:01:00.000Z"),
    ]
    assert all(len(message.names) == 1 for message in messages)
    assert read_messages(read_session("antigravity", file, SESSION, mark))[0] == []


def test_the_log_of_another_conversation_is_not_read(log, tmp_path):
    other = tmp_path / "notes.jsonl"
    other.write_text("{}\n")
    for file, session_id in ((log(1), "another"), (other, SESSION), (Path("transcript.jsonl"), SESSION)):
        with pytest.raises(UnreadableTranscript):
            next(read_session("antigravity", file, session_id, None))


def test_antigravity_gets_a_message_of_the_system_or_a_decision():
    output = {"hookEventName": "UserPromptSubmit", "additionalContext": "a"}
    assert write_antigravity(output) == {"injectSteps": [{"ephemeralMessage": "a"}]}
    asked = {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "never"}
    assert write_antigravity(asked) == {"decision": "ask", "reason": "never"}
    assert write_antigravity({"hookEventName": "Stop"}) == {}
