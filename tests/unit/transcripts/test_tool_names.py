"""Tool calls of all agents in Claude Code's names."""

import pytest

from pipeline.transcripts.reader import SessionHead
from pipeline.transcripts.session_log import SessionLog
from pipeline.transcripts.tool_names import record_call, record_result


def describe(name, arguments, **result):
    log = SessionLog(SessionHead("x", "s"), {})
    record_call(log, "c", name, arguments, None)
    record_result(log, "c", **({"ok": True} | result))
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
