import json

import pytest
from hypothesis import given, strategies as st

from pipeline.records.transcripts import TranscriptMark
from web.hooks.codex_rollout import read_events, read_new_lines


def line(kind, **payload):
    return json.dumps({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload})


def item(kind, **fields):
    return line("event_msg", type="item_completed", thread_id="t", turn_id="1", item={"type": kind} | fields)


def command(text, code, status=None):
    words = ["/bin/bash", "-lc", text]
    return item(
        "CommandExecution", id="c", command=words, status=status or ("failed" if code else "completed"), exit_code=code
    )


def call(number, name, **given):
    kind = "custom_tool_call" if "input" in given else "function_call"
    return line("response_item", type=kind, call_id=f"c{number}", name=name, **given)


def output(number, text, kind="function_call"):
    return line("response_item", type=f"{kind}_output", call_id=f"c{number}", output=text)


def done(lines):
    return [
        (event["hook_event_name"].removeprefix("PostToolUse"), event["tool_name"], *event["tool_input"].values())
        for event in read_events(lines)
    ]


PATCH = "*** Begin Patch\n*** Add File: c.txt\n+hello\n*** End Patch"


def test_of_items_what_ran_is_a_deed_and_calls_are_not_told_twice():
    lines = [
        item("UserMessage", content=[]),
        call(1, "exec_command", arguments='{"cmd": "make test"}'),
        command("make test", 0),
        output(1, "Process exited with code 0"),
        command("make lint", 2),
        command("rm -rf build", None, "declined"),
        item(
            "FileChange",
            id="p",
            changes={"/p/a.py": {"type": "add"}, "/p/b.py": {"type": "update"}},
            status="completed",
        ),
        item("FileChange", id="q", changes={"/p/c.py": {"type": "add"}}, status="declined"),
        item("McpToolCall", id="m", server="tracker", tool="close", status="failed"),
        call(2, "apply_patch", input=PATCH),
        output(2, "unsupported custom tool call: apply_patch", "custom_tool_call"),
        item("AgentMessage", content=[]),
    ]
    assert done(lines) == [
        ("", "shell", ["/bin/bash", "-lc", "make test"]),
        ("Failure", "shell", ["/bin/bash", "-lc", "make lint"]),
        ("", "apply_patch", "/p/a.py"),
        ("", "apply_patch", "/p/b.py"),
        ("Failure", "mcp__tracker__close"),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "unsupported custom tool call: apply_patch",
        "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings",
        "apply_patch verification failed: Failed to find expected lines",
        json.dumps({"output": "error", "metadata": {"exit_code": 1}}),
        "",
    ],
)
def test_a_patch_that_was_not_made_is_no_deed(said):
    assert done([call(1, "apply_patch", input=PATCH), output(1, said, "custom_tool_call")]) == []


@pytest.mark.parametrize(
    "said",
    [
        json.dumps({"output": "Success. Updated the following files:", "metadata": {"exit_code": 0}}),
        "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess. Updated the following files:\nA c.txt\n",
        "Success. Updated the following files:\nA c.txt",
    ],
)
def test_a_patch_that_was_made_is_one(said):
    assert done([call(1, "apply_patch", input=PATCH), output(1, said, "custom_tool_call")]) == [
        ("", "apply_patch", "c.txt")
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("unsupported call: exec_command", []),
        ("approval policy is Never; reject command — you cannot ask for escalated permissions", []),
        ("exec command rejected by user", []),
        ("Process exited with code 2\nOutput:\n", ["Failure"]),
        ("Process exited with code 0\nOutput:\nrejected by user", [""]),
        ("Plan updated", [""]),
        (None, [""]),
    ],
)
def test_a_command_that_was_refused_did_not_run(said, told):
    lines = [call(1, "exec_command", arguments='{"cmd": "make x"}'), output(1, said)]
    assert [one[0] for one in done(lines)] == told


def test_a_call_without_its_output_is_no_deed_yet():
    assert done([call(1, "exec_command", arguments='{"cmd": "make x"}')]) == []


def test_without_an_offset_the_last_turn_is_read_in_either_form(tmp_path):
    rollout = tmp_path / "rollout.jsonl"
    for prompt in (line("event_msg", type="user_message", message="x"), item("UserMessage", content=[])):
        rollout.write_text("\n".join([prompt, command("make old", 0), prompt, command("make new", 0), "{ half"]))
        lines, behind = read_new_lines(rollout, None)
        assert [one[2][2] for one in done(lines)] == ["make new"]
        assert behind.offset == rollout.stat().st_size - len("{ half")


def test_a_rollout_that_was_rewritten_is_not_read_from_the_middle(tmp_path):
    rollout = tmp_path / "rollout.jsonl"
    prompt = line("event_msg", type="user_message", message="x")
    rollout.write_text("\n".join([prompt, command("make old", 0), ""]))
    _, mark = read_new_lines(rollout, None)
    rollout.write_text("\n".join([prompt, command("make another", 0), prompt, command("make new", 0), ""]))
    assert rollout.stat().st_size > mark.offset
    lines, _ = read_new_lines(rollout, mark)
    assert [one[2][2] for one in done(lines)] == ["make new"]


@given(st.lists(st.binary(max_size=30), max_size=8), st.data())
def test_every_whole_line_is_read_once_however_a_file_grows(tmp_path_factory, parts, data):
    rollout = tmp_path_factory.mktemp("r") / "rollout.jsonl"
    rollout.write_bytes(b"")
    read, mark = [], TranscriptMark(0, None)
    for part in parts:
        with rollout.open("ab") as file:
            file.write(part)
            if data.draw(st.booleans()):
                file.write(b"\n")
        lines, mark = read_new_lines(rollout, mark)
        read += lines
    whole = rollout.read_bytes()
    assert read == whole[: whole.rfind(b"\n") + 1].decode("utf-8", errors="replace").split("\n")[:-1]


@given(
    st.lists(
        st.one_of(
            st.text(max_size=40),
            st.builds(
                json.dumps,
                st.recursive(
                    st.none() | st.integers() | st.text(max_size=5),
                    lambda inner: (
                        st.lists(inner, max_size=3)
                        | st.dictionaries(
                            st.sampled_from(
                                ["payload", "type", "item", "status", "changes", "call_id", "output", "arguments"]
                            ),
                            inner,
                            max_size=4,
                        )
                    ),
                    max_leaves=8,
                ),
            ),
        )
    )
)
def test_no_line_upsets_the_reading(lines):
    read_events(lines)
