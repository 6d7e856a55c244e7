"""What other hosts' events are called, and what becomes of an answer that a host does not take."""

import pytest

from pipeline.text.command_lines import list_patch_files
from web.hooks import gemini, other_hosts

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch"


def test_a_patch_is_about_the_file_that_it_names():
    event = {"tool_name": "apply_patch", "tool_input": {"command": PATCH}}
    files = list_patch_files(PATCH)
    assert other_hosts.read_codex(event)["tool_input"] == {"path": "src/a.py", "files": files, "patch": PATCH}
    assert other_hosts.read_codex({"tool_name": "Bash", "tool_input": {"command": PATCH}})["tool_input"] == {
        "command": PATCH
    }


def test_gemini_takes_a_decision_before_a_tool_and_no_context():
    told = {"hookEventName": "PreToolUse", "additionalContext": "a lesson"}
    assert gemini.write_gemini(told) == {}
    denied = told | {"permissionDecision": "deny", "permissionDecisionReason": "never force"}
    assert gemini.write_gemini(denied) == {"decision": "deny", "reason": "never force"}


@pytest.mark.parametrize("name", ["SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"])
def test_no_event_of_gemini_leads_to_its_transcript(name):
    """A resumed session names a transcript that stays empty; the messages are in the events."""
    read = gemini.read_gemini({"hook_event_name": name, "transcript_path": "/home/ann/.gemini/tmp/x/chats/s.json"})
    assert "transcript_path" not in read


def test_gemini_s_name_of_a_server_s_tool_is_read():
    read = gemini.read_gemini({"hook_event_name": "BeforeTool", "tool_name": "mcp_reverie_recall_more"})
    assert (read["hook_event_name"], read["tool_name"]) == ("PreToolUse", "mcp__reverie__recall_more")
