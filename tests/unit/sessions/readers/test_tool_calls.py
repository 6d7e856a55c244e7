"""Tool calls of all agents in Claude Code's names."""

import pytest

from pipeline.sessions.readers.reader import SessionHead
from pipeline.sessions.readers.session_log import SessionLog
from pipeline.sessions.readers.tool_calls import translate_call


def describe(name, arguments, agent="cursor", **result):
    log = SessionLog(SessionHead(agent, "s"), {})
    log.record_call("c", name, arguments, None)
    log.record_result("c", **({"ok": True} | result))
    return [(use.tool, dict(use.arguments), use.ok, use.exit_code, use.replaced) for use in log.entries]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("Shell", {"command": "ls"}, ("Bash", {"command": "ls"}, "")),
        ("execute_command", {"command": "ls", "cwd": "/w"}, ("Bash", {"command": "ls", "cwd": "/w"}, "")),
        ("run_commands", {"commands": ["a", {"command": "b"}]}, ("Bash", {"command": "a && b"}, "")),
        ("bash", '{"command": ["git", "log"]}', ("Bash", {"command": "git log"}, "")),
        ("search_replace", {"file_path": "a", "old_string": "x"}, ("Edit", {"file_path": "a"}, "x")),
        (
            "multi_edit",
            {"path": "a", "edits": [{"oldText": "x"}, {"oldText": "y"}]},
            ("Edit", {"file_path": "a"}, "x\ny"),
        ),
        ("str_replace_editor", {"command": "create", "path": "a"}, ("Write", {"file_path": "a"}, "")),
        ("str_replace_editor", {"command": "view", "path": "a"}, ("Read", {"file_path": "a"}, "")),
        (
            "replace_in_file",
            {"path": "a", "diff": "------- SEARCH\nx\n=======\ny\n+++++++ REPLACE"},
            ("Edit", {"file_path": "a"}, "x\n"),
        ),
        ("web_search", {"query": "x", "content": "body"}, ("web_search", {"query": "x"}, "")),
    ],
)
def test_a_call_is_translated(name, arguments, expected):
    ((tool, kept, ok, code, replaced),) = describe(name, arguments)
    assert (tool, kept, replaced) == expected
    assert (ok, code) == (True, None)


@pytest.mark.parametrize(
    ("agent", "name", "arguments", "expected"),
    [
        ("pi", "exec", {"cmd": "ls", "timeout": 5}, ("Bash", {"command": "ls", "timeout": 5}, "")),
        ("openclaw", "edit", {"path": "a", "edits": [{"oldText": "x"}]}, ("Edit", {"file_path": "a"}, "x")),
        ("pi", "Edit", {"path": "a"}, ("Edit", {"file_path": "a"}, "")),
        ("gemini-cli", "replace", {"file_path": "a", "old_string": "x"}, ("Edit", {"file_path": "a"}, "x")),
        ("qwen-code", "bash", {"cmd": "ls"}, ("bash", {"cmd": "ls"}, "")),
        (
            "antigravity",
            "replace_file_content",
            {"TargetFile": "a", "TargetContent": "x", "ReplacementContent": "y"},
            ("Edit", {"file_path": "a"}, "x"),
        ),
        ("claude-code", "mcp__files__edit", {"path": "a", "old_string": "x"}, ("mcp__files__edit", {"path": "a"}, "x")),
    ],
)
def test_an_agent_may_have_its_own_names(agent, name, arguments, expected):
    ((tool, kept, _, _, replaced),) = describe(name, arguments, agent)
    assert (tool, kept, replaced) == expected


def test_a_patch_without_files_changes_nothing():
    assert describe("apply_patch", {"input": "*** Begin Patch"}) == []
    assert translate_call("apply_patch", {}) == ("apply_patch", {})


def test_a_line_that_a_patch_adds_names_no_file():
    patch = "*** Begin Patch\n*** Update File: a\n+*** Add File: b\n*** End Patch"
    assert [kept for _, kept, *_ in describe("apply_patch", {"input": patch})] == [{"file_path": "a"}]


def test_a_patch_is_an_edit_of_each_file():
    patch = "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** Add File: b\n+z\n*** Delete File: c\n*** End Patch"
    calls = describe("apply_patch", {"patchText": patch}, ok=False, output="conflict")
    assert [(tool, kept["file_path"], ok) for tool, kept, ok, _, _ in calls] == [
        ("Edit", "a", False), ("Write", "b", False), ("Edit", "c", False)
    ]  # fmt: skip
    assert calls[0][4] == "x"


@pytest.mark.parametrize(
    ("result", "ok", "code"),
    [
        ({"ok": True, "exit_code": 0}, True, 0),
        ({"ok": True, "exit_code": 2}, False, 2),
        ({"ok": None, "output": "Exit code: 1\nfailed"}, False, 1),
        ({"ok": False, "exit_code": 0}, False, 0),
        ({"ok": None}, None, None),
        ({"ok": True, "exit_code": True}, True, None),
    ],
)
def test_the_exit_code_of_a_command_decides(result, ok, code):
    ((_, _, *outcome, _),) = describe("bash", {"command": "x"}, **result)
    assert outcome == [ok, code]
