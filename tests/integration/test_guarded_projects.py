"""The guard compares each file of a call, and asks the project to which the file belongs."""

import json

import pytest

from pipeline.features.workspaces.identify import identify
from tests.fakes.in_process import flush_notes

CRITICAL = {"kind": "lesson", "details": {"severity": "critical"}}
RULE = "Never edit src/x.py by hand, it is generated."
PATCH = """*** Begin Patch
*** Update File: src/a.py
@@
-a
+b
{header}
@@
-a
+b
*** End Patch"""
HEADERS = [
    "*** Update File: src/x.py",
    "*** Add File: src/x.py",
    "*** Delete File: src/x.py",
    "*** Update File: src/old.py\n*** Move to: src/x.py",
]


def find_decision(client, tool, arguments, host="claude-code", **fields):
    """Return what is decided before a tool, None if it may run."""
    event = {"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": tool, "tool_input": arguments} | fields
    answer = client.post(f"/hooks/{host}", event).get_json(silent=True)
    return None if answer is None else answer.get("hookSpecificOutput", answer).get("permissionDecision")


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize(
    ("host", "tool", "name"),
    [
        ("codex", "apply_patch", "command"),
        ("codex", "apply_patch", "input"),
        ("opencode", "apply_patch", "patchText"),
        ("copilot", "apply_patch", "input"),
        ("claude-code", "apply_patch", "input"),
    ],
)
def test_each_file_of_a_patch_is_compared(client, host, tool, name, header):
    client.write(RULE, **CRITICAL)
    assert find_decision(client, tool, {name: PATCH.format(header=header)}, host) is not None
    assert find_decision(client, tool, {name: PATCH.format(header="*** Update File: src/y.py")}, host) is None


@pytest.mark.parametrize("header", HEADERS)
def test_each_file_of_a_patch_in_a_command_is_compared(client, header):
    client.write(RULE, **CRITICAL)
    command = f"apply_patch <<'EOF'\n{PATCH.format(header=header)}\nEOF"
    assert find_decision(client, "Bash", {"command": command}) == "ask"
    assert find_decision(client, "shell", {"command": ["apply_patch", PATCH.format(header=header)]}, "codex") == "deny"


def test_each_file_of_a_diff_in_a_command_is_compared(client):
    client.write(RULE, **CRITICAL)
    diff = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-a\n+b\n--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    assert find_decision(client, "Bash", {"command": f"git apply <<'EOF'\n{diff}EOF"}) == "ask"
    assert find_decision(client, "Bash", {"command": f"patch -p1 <<'EOF'\n{diff}EOF"}) == "ask"


@pytest.mark.parametrize(
    ("host", "tool", "arguments"),
    [
        ("claude-code", "MultiEdit", {"file_path": "src/x.py", "edits": [{"old_string": "a", "new_string": "b"}]}),
        ("claude-code", "NotebookEdit", {"notebook_path": "src/x.py", "new_source": "b"}),
        ("copilot", "multi_replace_string_in_file", {"replacements": [{"filePath": "a.py"}, {"filePath": "src/x.py"}]}),
        ("opencode", "multiedit", {"edits": [{"filePath": "a.py"}, {"filePath": "src/x.py"}]}),
        ("cline", "replace_in_file", {"path": "src/x.py", "diff": "b"}),
        ("pi", "edit", {"path": "src/x.py", "edits": [{"oldText": "a", "newText": "b"}]}),
    ],
)
def test_each_file_of_an_edit_is_compared(client, host, tool, arguments):
    client.write(RULE, **CRITICAL)
    assert find_decision(client, tool, arguments, host) is not None


def test_a_file_that_was_edited_alone_does_not_allow_a_patch_of_more_files(client, container):
    client.write(RULE, **CRITICAL)
    patch = {"command": PATCH.format(header=HEADERS[0])}
    assert find_decision(client, "apply_patch", patch) == "ask"
    edited = {"hook_event_name": "PostToolUse", "session_id": "s1", "tool_name": "Edit"}
    client.post("/hooks/claude-code", edited | {"tool_input": {"file_path": "src/a.py"}})
    flush_notes(container)
    assert find_decision(client, "apply_patch", patch) == "ask"


@pytest.fixture
def projects(client, tmp_path):
    """The folders of two repositories; the rule is one of beta."""
    for name in ("alpha", "beta"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "src").mkdir()
    workspace = identify(tmp_path / "beta").id
    client.call(
        "POST",
        "/v1/memories",
        data=json.dumps({"content": RULE, **CRITICAL}),
        headers={"X-Reverie-Workspace": workspace, "Content-Type": "application/json"},
    )
    return tmp_path


CALLS = [
    ("Edit", {"file_path": "{beta}/src/x.py"}),
    ("Edit", {"file_path": "../beta/src/x.py"}),
    ("Bash", {"command": "sed -i s/1/2/ {beta}/src/x.py"}),
    ("Bash", {"command": "cd {beta} && sed -i s/1/2/ src/x.py"}),
    ("Bash", {"command": "cd ../beta; cd src; sed -i s/1/2/ x.py"}),
    ("Bash", {"command": "echo 1 > ../beta/src/x.py"}),
    ("Bash", {"command": "git -C ../beta rm src/x.py"}),
    ("Bash", {"command": "bash -c 'cd {beta} && rm src/x.py'"}),
    ("Bash", {"command": "sudo cp a.py --target-directory={beta}/src x.py"}),
    ("Bash", {"command": "B={beta}; rm $B/src/x.py"}),
]


def fill(arguments, projects):
    return {name: value.replace("{beta}", str(projects / "beta")) for name, value in arguments.items()}


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_the_project_of_a_named_file_is_asked(client, projects, tool, arguments):
    given = fill(arguments, projects)
    assert find_decision(client, tool, given, cwd=str(projects / "alpha")) == "ask"
    assert find_decision(client, tool, given, "codex", cwd=str(projects / "alpha")) == "deny"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Edit", {"file_path": "beta/src/x.py"}),
        ("Bash", {"command": "sed -i s/1/2/ beta/src/x.py"}),
        ("Bash", {"command": "cd beta && sed -i s/1/2/ src/x.py"}),
        ("Bash", {"command": "(cd beta/src; rm x.py)"}),
    ],
)
def test_an_agent_in_the_parent_folder_asks_the_project_too(client, projects, tool, arguments):
    assert find_decision(client, tool, arguments, cwd=str(projects)) == "ask"


def test_a_file_of_the_same_name_in_the_sessions_project_may_be_edited(client, projects):
    alpha = str(projects / "alpha")
    assert find_decision(client, "Edit", {"file_path": f"{alpha}/src/x.py"}, cwd=alpha) is None
    assert find_decision(client, "Bash", {"command": "sed -i s/1/2/ src/x.py"}, cwd=alpha) is None
    assert find_decision(client, "Bash", {"command": "cat ../beta/src/x.py"}, cwd=alpha) is None


def test_a_call_that_was_allowed_in_another_project_is_not_asked_again(client, container, projects):
    given, alpha = {"file_path": f"{projects}/beta/src/x.py"}, str(projects / "alpha")
    assert find_decision(client, "Edit", given, cwd=alpha) == "ask"
    edited = {"hook_event_name": "PostToolUse", "session_id": "s1", "tool_name": "Edit", "tool_input": given}
    client.post("/hooks/claude-code", edited | {"cwd": alpha})
    flush_notes(container)
    assert find_decision(client, "Edit", given, cwd=alpha) is None
    assert find_decision(client, "Edit", given, cwd=alpha, session_id="s2") == "ask"


@pytest.mark.parametrize("setting", ['lesson_guard = "off"', "enabled = false", "incognito = true"])
def test_another_project_that_is_off_is_not_asked(client, container, projects, setting):
    workspace = identify(projects / "beta").id
    container.settings.paths.workspace(workspace).config.write_text(setting + "\n")
    given = {"file_path": f"{projects}/beta/src/x.py"}
    assert find_decision(client, "Edit", given, cwd=str(projects / "alpha")) is None
