"""What hosts and their plugins sent to hooks, and what hosts wrote to their logs, read as events of Claude Code."""

import json
from pathlib import Path

import pytest

from pipeline.kernel.errors import UnreadableTranscript
from tests.fakes.read_messages import read_messages
from web.hooks.copilot import read_copilot
from web.hooks.event import read_event, read_outcome
from web.hooks.event_fields import unify_fields
from web.hooks.other_hosts import read_cline, read_opencode, read_qwen
from web.hooks.plugin_events import translate_tool
from web.hooks.session_files import read_session
from web.http.json_text import read_object

RECORDS = Path(__file__).parents[2] / "data" / "host_records"
PROMPT, ANSWER = "Which port does staging use?", "Done here."
COMMANDS = ["touch made.txt", "false && ls missing-file"]
READ = {"qwen-code": read_qwen, "copilot": read_copilot, "opencode": read_opencode, "pi": translate_tool} | {
    "cline": read_cline
}
# Hosts whose plugins send what was said.
PLUGINS = ("opencode", "pi", "cline")
LOGS = {
    "qwen-code": ("qwen-code-chat.jsonl", "projects/-home-dev-project/chats/{id}.jsonl"),
    "copilot": ("copilot-log.jsonl", "session-state/{id}/events.jsonl"),
}


def list_events(host):
    lines = (RECORDS / f"{host}-events.jsonl").read_bytes().splitlines()
    return [read_event(READ[host](unify_fields(read_object(line)).fields), can_ask=True, host=host) for line in lines]


def place_log(tmp_path, host, session_id):
    name, place = LOGS[host]
    file = tmp_path / place.format(id=session_id)
    file.parent.mkdir(parents=True)
    file.write_bytes((RECORDS / name).read_bytes())
    return file


def find_session(host):
    records = [json.loads(line) for line in (RECORDS / LOGS[host][0]).read_text(encoding="utf-8").splitlines()]
    return records[0].get("sessionId") or records[0]["data"]["sessionId"]


@pytest.mark.parametrize("host", READ)
def test_every_event_has_a_name_a_folder_and_a_session(host):
    events = list_events(host)
    assert {event.cwd for event in events} == {"/home/dev/project"}
    assert len({event.session_id for event in events}) == 1
    assert events[0].name == "SessionStart"
    assert "Stop" in [event.name for event in events]
    assert all(not event.dropped for event in events)


@pytest.mark.parametrize("host", READ)
def test_only_text_typed_by_the_user_is_a_prompt(host):
    prompts = [event.prompt for event in list_events(host) if event.name == "UserPromptSubmit"]
    assert [prompt for prompt in prompts if prompt] == [PROMPT]


def test_the_prompt_of_qwen_code_is_the_submitted_one():
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "typed, and what a command added"}
    assert read_qwen(event | {"submitted_prompt": "typed"})["prompt"] == "typed"
    assert read_qwen(event)["prompt"] == event["prompt"]


@pytest.mark.parametrize("host", READ)
def test_a_shell_command_is_read_with_its_result(host):
    tools = [event for event in list_events(host) if event.name.startswith("PostToolUse")]
    assert [(event.tool_name, event.tool_input["command"]) for event in tools] == [("Bash", word) for word in COMMANDS]
    outcomes = [read_outcome(event, failed=event.name == "PostToolUseFailure") for event in tools]
    assert [outcome.ok for outcome in outcomes] == [True, False]
    assert outcomes[1].exit_code == 1


@pytest.mark.parametrize("host", PLUGINS)
def test_plugin_sends_turn_messages_with_host_ids(host):
    [said] = [event.said for event in list_events(host) if event.name == "Stop"]
    assert [(message["role"], message["content"]) for message in said] == [("user", PROMPT), ("assistant", ANSWER)]
    assert all(message["id"] and message["at"] for message in said)


@pytest.mark.parametrize("tool", ["reverie_remember_batch", "mcp__reverie__remember_batch"])
def test_reverie_s_own_tools_are_known_in_opencode(tool):
    arguments = {"items": []}
    event = read_opencode({"tool_name": tool, "tool_input": arguments})
    assert (event["tool_name"], event["tool_input"]) == ("mcp__reverie__remember_batch", arguments)


def test_a_patch_is_an_edit_of_its_first_file():
    patch = "*** Begin Patch\n*** Update File: src/a.py\n-old\n+new\n*** End Patch"
    event = read_opencode({"tool_name": "apply_patch", "tool_input": {"patchText": patch}})
    assert (event["tool_name"], event["tool_input"]) == ("Edit", {"file_path": "src/a.py", "old_string": "old"})


@pytest.mark.parametrize("host", LOGS)
def test_session_log_yields_each_message_once_without_hook_text(tmp_path, host):
    session_id = find_session(host)
    file = place_log(tmp_path, host, session_id)
    messages, _, mark = read_messages(read_session(host, file, session_id, None))
    assert [(message.role, message.content) for message in messages] == [("user", PROMPT), ("assistant", ANSWER)]
    assert all(message.at and len(message.names) == 2 for message in messages)
    assert read_messages(read_session(host, file, session_id, mark))[0] == []


@pytest.mark.parametrize("host", LOGS)
def test_a_path_that_is_no_log_of_the_session_is_refused(tmp_path, host):
    session_id = find_session(host)
    file = place_log(tmp_path, host, session_id)
    link = tmp_path / "link.jsonl"
    link.write_text("{}")
    for path, session in ((file, "another"), (link, session_id), (Path("relative.jsonl"), session_id)):
        with pytest.raises(UnreadableTranscript):
            next(read_session(host, path, session, None))
    assert list(read_session(host, Path(str(file).replace(session_id, "gone")), "gone", None)) == []


@pytest.mark.parametrize("host", LOGS)
def test_a_prompt_without_an_answer_is_said(tmp_path, host):
    session_id = find_session(host)
    file = place_log(tmp_path, host, session_id)
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    end = next(number for number, line in enumerate(lines) if '"assistant' in line)
    file.write_text("".join(lines[:end]), encoding="utf-8")
    messages, _, _ = read_messages(read_session(host, file, session_id, None))
    assert [message.content for message in messages] == [PROMPT]
